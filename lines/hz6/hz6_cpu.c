// Front caches of processors: see lines/hz6/hz6_cpu.h.
#include "lines/hz6/hz6_cpu.h"

#include <string.h>

#include "core/counter.h"
#include "core/meta.h"
#include "core/misuse.h"
#include "core/os.h"
#include "lines/hz6/hz6_model.h"
#include "lines/hz6/hz6_rseq.h"

struct hz6_item **_Atomic *hz6_cpu_tops;
ptrdiff_t hz6_rseq_offset;

struct cpu {
  struct hz6_item *top[HZ6_MARKS]; // hz6_cpu_tops points here
  uint32_t calls_seen;             // hz6_scavenge_pause
};

// The row of processors that have no cache, for ever empty and full. Its top is not HZ6_NO_TOP, so
// that no exchange can take it for that of a cache without a magazine, and write here.
static const struct hz6_item nobodys_items[2] = {{NULL, NULL}, {HZ6_FULL, NULL}};
#define NOBODYS_TOP ((struct hz6_item *)nobodys_items)
static const struct cpu nobody = {.top = {[0 ... HZ6_MARKS - 1] = NOBODYS_TOP}};

static _Atomic uint32_t cpus_in_use;

// ---- Start --------------------------------------------------------------------------------------

#if HZ6_RSEQ
#include <sys/rseq.h>
#pragma weak __rseq_offset
#pragma weak __rseq_size

bool hz6_rseq_start(void) {
  if (&__rseq_size == NULL || __rseq_size == 0) return false; // glibc before 2.35; or refused
  hz6_rseq_offset = __rseq_offset;
  const struct rseq *area =
      (const struct rseq *)((char *)__builtin_thread_pointer() + hz6_rseq_offset);
  return (int32_t)area->cpu_id >= 0; // else this thread is not registered, and none will be
}
#else
bool hz6_rseq_start(void) {
  return false;
}
#endif

bool hz6_cpu_start(void) {
  if (!hz6_rseq_start()) return false;
  hz6_cpu_tops = hz_os.map((HZ6_CPUS + 1) * sizeof *hz6_cpu_tops);
  if (hz6_cpu_tops == NULL) return false;
  for (unsigned i = 0; i <= HZ6_CPUS; i++)
    atomic_init(&hz6_cpu_tops[i], (struct hz6_item **)nobody.top);
  return true;
}

uint64_t hz6_cpu_count(void) {
  return atomic_load_explicit(&cpus_in_use, memory_order_relaxed);
}

// The cache of the processor that the thread is on, made if it has none yet. NULL: it cannot have
// one. A moment later the thread may be on another, which has none.
static struct cpu *cpu_here(void) {
  uint32_t number;
  struct hz6_item **row = hz6_rseq_row(&number);
  if (hz_likely(row != nobody.top)) return (struct cpu *)row;
  if (number == HZ6_CPUS) return NULL;
  struct cpu *cpu = hz_meta_take(sizeof *cpu);
  if (cpu == NULL) return NULL;
  cpu->calls_seen = 0;
  for (unsigned mark = 0; mark < HZ6_MARKS; mark++) cpu->top[mark] = HZ6_NO_TOP;
  if (!atomic_compare_exchange_strong_explicit(&hz6_cpu_tops[number], &row, cpu->top,
                                               memory_order_release, memory_order_acquire)) {
    hz_meta_give(cpu, sizeof *cpu);
    return (struct cpu *)row;
  }
  atomic_fetch_add_explicit(&cpus_in_use, 1, memory_order_relaxed);
  return cpu;
}

static struct hz6_item *top_of(const struct cpu *cpu, unsigned class_id) {
  return __atomic_load_n(&cpu->top[class_id + 1], __ATOMIC_RELAXED);
}

// The magazine under a top that an exchange has taken out of a cache, its count set. What it holds
// is believed now and not before: until the exchange others may have changed it, or given its record
// another use.
static struct hz6_magazine *taken_out(struct hz6_item *top) {
  struct hz6_item *lowest = top;
  while (lowest->block != NULL) lowest--;
  struct hz6_magazine *m =
      (struct hz6_magazine *)((char *)lowest - offsetof(struct hz6_magazine, items));
  m->count = (uint32_t)(top - lowest);
  return m;
}

static void pause_here(void) {
  uint32_t number;
  struct hz6_item **row = hz6_rseq_row(&number);
  hz6_scavenge_pause(row != nobody.top ? &((struct cpu *)row)->calls_seen : NULL);
}

// ---- Up -----------------------------------------------------------------------------------------

static void give(unsigned class_id, struct hz6_magazine *m) {
  if (m->count != 0) m = hz6_front_give(class_id, m);
  if (m != NULL) hz6_transfer_put_empty(class_id, m);
}

// Loads a magazine in the place of an empty one, or of none; in the end it may be of no use here.
static void load(unsigned class_id, struct hz6_magazine *m) {
  const struct cpu *cpu = cpu_here();
  struct hz6_item *old = cpu != NULL ? top_of(cpu, class_id) : NOBODYS_TOP;
  if (old->block != NULL || old == NOBODYS_TOP ||
      !hz6_rseq_exchange(class_id + 1, old, m->items + m->count)) {
    give(class_id, m);
    return;
  }
  if (old != HZ6_NO_TOP) give(class_id, taken_out(old));
}

static struct hz6_magazine *from_source(unsigned class_id) {
  struct hz6_magazine *m = hz6_transfer_take_empty(class_id);
  if (m == NULL) return NULL;
  m->count = hz6_source_take(class_id, 0, m->items + 1, hz6_policy.of[class_id].refill);
  if (m->count != 0) return m;
  hz6_transfer_put_empty(class_id, m);
  return NULL;
}

static struct hz6_item take(unsigned class_id) {
  struct hz6_item item = {NULL, NULL};
  if (cpu_here() != NULL) item = hz6_rseq_pop(class_id + 1);
  if (item.block != NULL) return item;
  hz_count(HZ_COUNT_refills, 1);
  struct hz6_magazine *m = hz6_transfer_get(class_id, NULL);
  if (m == NULL) m = from_source(class_id);
  if (m == NULL) { // perhaps a magazine was all that there was no memory for
    hz6_source_take(class_id, 0, &item, 1);
    return item;
  }
  item = m->items[m->count--];
  load(class_id, m);
  return item;
}

static HZ_SLOW void *refill(unsigned class_id) {
  struct hz6_item item = take(class_id);
  if (hz_unlikely(item.block == NULL) && hz6_scavenge_last_resort()) item = take(class_id);
  if (hz_likely(item.block != NULL)) hz6_mark_set(item.mark, class_id + 1);
  pause_here();
  return hz_likely(item.block != NULL) ? item.block : hz_no_memory();
}

static HZ_SLOW void *alloc_slow(size_t bytes) {
  if (bytes <= HZ_CLASS_BY_16_MAX) return refill(hz_class_by_16[(bytes + 15) >> 4]);
  if (bytes <= HZ_CLASS_MAX_BYTES) return refill(hz6_medium_mark(bytes) - 1);
  return hz6_alloc_above(NULL, HZ_MIN_ALIGN, bytes, false);
}

HZ_HOT void *hz6_cpu_alloc(size_t bytes) {
  unsigned mark;
  if (hz_likely(bytes <= HZ_CLASS_BY_16_MAX)) mark = hz_class_by_16[(bytes + 15) >> 4] + 1u;
  else if (hz_likely(bytes <= HZ_CLASS_MAX_BYTES)) mark = hz6_medium_mark(bytes);
  else return alloc_slow(bytes);
  const struct hz6_item item = hz6_rseq_pop(mark);
  if (hz_unlikely(item.block == NULL)) return alloc_slow(bytes);
  hz6_mark_set(item.mark, mark);
  return item.block;
}

void *hz6_cpu_alloc_zeroed(size_t bytes) {
  if (hz_unlikely(bytes > HZ_CLASS_MAX_BYTES))
    return hz6_alloc_above(NULL, HZ_MIN_ALIGN, bytes, true);
  void *p = hz6_cpu_alloc(bytes);
  return hz_likely(p != NULL) ? memset(p, 0, bytes) : NULL;
}

void *hz6_cpu_alloc_aligned(size_t align, size_t bytes) {
  const unsigned class_id = hz_class_of_aligned(align, bytes);
  if (hz_unlikely(class_id == HZ_CLASS_COUNT)) return hz6_alloc_above(NULL, align, bytes, false);
  const struct hz6_item item = hz6_rseq_pop(class_id + 1);
  if (hz_unlikely(item.block == NULL)) return refill(class_id);
  hz6_mark_set(item.mark, class_id + 1);
  return item.block;
}

// ---- Down ---------------------------------------------------------------------------------------

// An empty magazine with the item in it in the place of a full one, or of none. False: neither is
// there.
static bool exchange_full(const struct cpu *cpu, unsigned class_id, struct hz6_magazine *empty,
                          struct hz6_item item) {
  struct hz6_item *old = top_of(cpu, class_id);
  if (old[1].block != HZ6_FULL || old == NOBODYS_TOP) return false;
  empty->items[1] = item;
  if (!hz6_rseq_exchange(class_id + 1, old, empty->items + 1)) return false;
  if (old != HZ6_NO_TOP) give(class_id, taken_out(old));
  return true;
}

// The item is not marked.
static HZ_SLOW void overflow(unsigned class_id, struct hz6_item item) {
  enum { TRIES = 4 }; // the thread is moved, or another one of this processor is faster: seldom
  hz_count(HZ_COUNT_overflows, 1);
  struct hz6_magazine *empty = hz6_transfer_take_empty(class_id);
  bool done = false;
  for (unsigned i = 0; i < TRIES && empty != NULL && !done; i++) {
    const struct cpu *cpu = cpu_here();
    if (cpu == NULL) break;
    if (exchange_full(cpu, class_id, empty, item)) empty = NULL, done = true;
    else done = hz6_rseq_push(class_id + 1, item);
  }
  if (empty != NULL) hz6_transfer_put_empty(class_id, empty);
  if (!done) hz6_source_give(class_id, &item, 1);
  pause_here();
}

static HZ_SLOW void release_slow(void *p) {
  if (p == NULL) return;
  struct hz6_item item = {.block = p};
  const unsigned mark = hz6_route_unmark(p, &item.mark);
  if (mark == 0) hz6_release_above(NULL, p);
  else if (!hz6_rseq_push(mark, item)) overflow(mark - 1, item);
}

// The mark goes first: once the block is in the cache, another thread may have it.
HZ_HOT void hz6_cpu_release(void *p) {
  struct hz6_item item;
  if (hz_unlikely(!hz6_item_of(p, &item))) {
    release_slow(p);
    return;
  }
  const unsigned mark = hz6_mark_at(item.mark);
  if (hz_unlikely(mark == 0)) {
    release_slow(p);
    return;
  }
  hz6_mark_set(item.mark, 0);
  if (hz_unlikely(!hz6_rseq_push(mark, item))) overflow(mark - 1, item);
}

void hz6_cpu_flush(void) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const struct cpu *cpu = cpu_here();
    struct hz6_item *top = cpu != NULL ? top_of(cpu, c) : HZ6_NO_TOP;
    if (top == HZ6_NO_TOP || !hz6_rseq_exchange(c + 1, top, HZ6_NO_TOP)) continue;
    give(c, taken_out(top));
  }
}
