// The page map and the descriptors behind it: see lines/hz6/hz6_route.h.
#include "lines/hz6/hz6_route.h"

#include <string.h>

#include "core/class_run.h"
#include "core/large.h"
#include "core/lock.h"
#include "core/meta.h"
#include "core/os.h"
#include "lines/hz6/hz6_policy.h"

struct hz6_page *hz6_pages;

static struct {
  struct hz_lock lock;
  size_t slabs;     // that the table reaches
  size_t committed; // slabs whose records are writable
} map;

// ---- The table ----------------------------------------------------------------------------------

bool hz6_route_start(void) {
  hz_locks_register(HZ_RANK_TABLE, &map.lock, 1, sizeof map.lock);
  map.slabs = hz_arena.slab_count;
  hz6_pages = hz_os.reserve_table(map.slabs * sizeof *hz6_pages);
  return hz6_pages != NULL;
}

// The arena ends earlier now: what lies behind was never in use.
void hz6_route_concede(void) {
  hz_lock(&map.lock);
  const size_t keep = hz_max(hz_min(hz_arena.slab_count, map.slabs), map.committed);
  const size_t from = hz_align_up(keep * sizeof *hz6_pages, hz_page_bytes);
  const size_t to = hz_align_up(map.slabs * sizeof *hz6_pages, hz_page_bytes);
  if (from < to) hz_os.abandon((char *)hz6_pages + from, to - from);
  map.slabs = keep;
  hz_unlock(&map.lock);
}

static bool commit_to(size_t slabs) {
  if (hz_likely(slabs <= __atomic_load_n(&map.committed, __ATOMIC_ACQUIRE))) return true;
  hz_lock(&map.lock);
  const size_t from = hz_align_down(map.committed * sizeof *hz6_pages, hz_page_bytes);
  const size_t to = hz_align_up(slabs * sizeof *hz6_pages, hz_page_bytes);
  const bool done = to <= from || hz_os.commit((char *)hz6_pages + from, to - from);
  if (done && to > from) __atomic_store_n(&map.committed, to / sizeof *hz6_pages, __ATOMIC_RELEASE);
  hz_unlock(&map.lock);
  return done;
}

static size_t first_slab(const struct hz_run *run) {
  return hz_slab_of(hz_run_base(run));
}

// Those of one block more than there are: what is left of a run behind the last may look like it.
static size_t mark_count(unsigned class_id) {
  return (hz_size_classes[class_id].blocks + (size_t)1) * hz6_policy.of[class_id].spread;
}

// 2^64 / bytes per mark, rounded up.
static uint64_t reciprocal_of(unsigned class_id) {
  const size_t bytes = hz_class_bytes(class_id) / hz6_policy.of[class_id].spread;
  return (uint64_t)((((unsigned __int128)1 << 64) + bytes - 1) / bytes);
}

bool hz6_route_open(struct hz_run *run, unsigned class_id) {
  const size_t first = first_slab(run), count = mark_count(class_id);
  if (!commit_to(first + run->slabs)) return false;
  struct hz6_page *page = &hz6_pages[first];
  _Atomic uint8_t *marks = hz_meta_take(count);
  if (marks == NULL) return false;
  memset((void *)marks, 0, count);
  for (uint32_t i = 0; i < run->slabs; i++) {
    page[i].marks = marks;
    page[i].base = (uintptr_t)hz_run_base(run);
    page[i].reciprocal = reciprocal_of(class_id);
  }
  run->generation++;
  return true;
}

void hz6_route_close(const struct hz_run *run, unsigned class_id) {
  struct hz6_page *page = &hz6_pages[first_slab(run)];
  for (uint32_t i = 0; i < run->slabs; i++) page[i].reciprocal = 0;
  hz_meta_give((void *)page->marks, mark_count(class_id));
}

// ---- The answer ---------------------------------------------------------------------------------

_Atomic uint8_t *hz6_route_mark(const void *p) {
  struct hz6_item item;
  return hz6_item_of((void *)p, &item) ? item.mark : NULL;
}

unsigned hz6_route_unmark(const void *p, _Atomic uint8_t **at) {
  *at = hz6_route_mark(p);
  return *at != NULL ? atomic_exchange_explicit(*at, 0, memory_order_relaxed) : 0;
}

// Inside a run of a class, where no live block begins.
static enum hz_misuse_kind why_not(const struct hz_run *run, const void *p) {
  const size_t offset = (size_t)((const char *)p - (const char *)hz_run_base(run));
  const uint32_t index = hz_class_index(run->class_id, offset);
  const bool begins = index < run->blocks && index * hz_class_bytes(run->class_id) == offset;
  return begins ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR;
}

static struct hz6_route of_class(struct hz_run *run, const void *p) {
  const _Atomic uint8_t *mark = hz6_route_mark(p);
  const bool live = mark != NULL && hz6_mark_at(mark) != 0;
  return (struct hz6_route){.answer = live ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_CLASS,
                            .class_id = run->class_id,
                            .generation = run->generation,
                            .descriptor = run,
                            .why = why_not(run, p)};
}

static struct hz6_route of_run(struct hz_run *run, const void *p) {
  const bool begins = p == hz_run_base(run);
  const bool live = begins && run->state == HZ_RUN_LIVE;
  return (struct hz6_route){.answer = live ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_RUN,
                            .class_id = HZ_CLASS_COUNT,
                            .generation = run->generation,
                            .descriptor = run,
                            .why = begins ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR};
}

static struct hz6_route of_large(struct hz_large *large, const void *base, const void *p) {
  const bool begins = p == base;
  return (struct hz6_route){.answer = begins && hz_large_live(large) ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_LARGE,
                            .class_id = HZ_CLASS_COUNT,
                            .descriptor = large,
                            .why = begins ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR};
}

struct hz6_route hz6_route(const void *p) {
  struct hz_run *run = hz_run_of(p);
  if (run != NULL) return run->state == HZ_RUN_CLASS ? of_class(run, p) : of_run(run, p);
  void *base;
  struct hz_large *large = hz_large_of(p, &base);
  if (large != NULL) return of_large(large, base, p);
  return (struct hz6_route){.answer = hz_slab_of(p) < hz_arena.slab_count ? HZ6_INVALID : HZ6_MISS,
                            .class_id = HZ_CLASS_COUNT,
                            .why = hz_arena_run_began(p) ? HZ_MISUSE_DOUBLE : HZ_MISUSE_FOREIGN};
}

// ---- Check --------------------------------------------------------------------------------------

static const char *check_block(const struct hz_run *run, uint32_t index) {
  const char *block = (const char *)hz_run_base(run) + index * hz_class_bytes(run->class_id);
  const _Atomic uint8_t *at = hz6_route_mark(block);
  if (at == NULL) return "hz6: a block has no mark";
  const unsigned mark = hz6_mark_at(at);
  if (mark != 0 && mark != run->class_id + 1u) return "hz6: a block is marked as of another class";
  if (mark != 0 && hz_class_run_has(run, block))
    return "hz6: a block of a run is free and marked as live";
  return NULL;
}

const char *hz6_route_check(const struct hz_run *run) {
  const struct hz6_page *page = &hz6_pages[first_slab(run)];
  for (uint32_t i = 0; i < run->slabs; i++)
    if (page[i].marks != page->marks || page[i].reciprocal != page->reciprocal ||
        page[i].base != (uintptr_t)hz_run_base(run))
      return "hz6: the slabs of a run disagree about it";
  if (page->marks[run->blocks * hz6_policy.of[run->class_id].spread] != 0)
    return "hz6: what is behind the last block is marked";
  for (uint32_t i = 0; i < run->blocks; i++) {
    const char *broken = check_block(run, i);
    if (broken != NULL) return broken;
  }
  return NULL;
}
