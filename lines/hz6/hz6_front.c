// Front caches of threads: see lines/hz6/hz6_front.h.
#include "lines/hz6/hz6_front.h"

#include <string.h>

#include "core/counter.h"
#include "core/meta.h"
#include "lines/hz6/hz6_source.h"
#include "lines/hz6/hz6_transfer.h"

#define NO_TOPS                                                                                    \
  { [0 ... HZ6_MARKS - 1] = HZ6_NO_TOP }

const struct hz6_item hz6_no_items[2] = {{NULL, NULL}, {HZ6_FULL, NULL}};

const struct hz6_heap hz6_empty_heap = {.top = NO_TOPS};
const struct hz6_heap hz6_dead_heap = {.top = NO_TOPS};
__thread const struct hz6_heap *hz6_heap = &hz6_empty_heap;

// ---- Magazines ----------------------------------------------------------------------------------

static void load(struct hz6_heap *heap, unsigned class_id, struct hz6_magazine *m) {
  heap->loaded[class_id] = m;
  heap->top[class_id + 1] = m->items + m->count;
}

// Takes the magazine out of the heap, its count set. NULL: none is loaded.
static struct hz6_magazine *unload(struct hz6_heap *heap, unsigned class_id) {
  struct hz6_magazine *m = heap->loaded[class_id];
  if (m == NULL) return NULL;
  m->count = (uint32_t)(heap->top[class_id + 1] - m->items);
  heap->loaded[class_id] = NULL;
  heap->top[class_id + 1] = HZ6_NO_TOP;
  return m;
}

static void give_to_source(unsigned class_id, struct hz6_magazine *m) {
  hz6_source_give(class_id, m->items + 1, m->count);
  m->count = 0;
}

struct hz6_magazine *hz6_front_give(unsigned class_id, struct hz6_magazine *m) {
  struct hz6_magazine *empty;
  if (hz6_transfer_put(class_id, m, &empty)) return empty;
  give_to_source(class_id, m);
  return m;
}

struct hz6_item hz6_front_refill(struct hz6_heap *heap, unsigned class_id) {
  struct hz6_magazine *m = unload(heap, class_id);
  hz_count(HZ_COUNT_refills, 1);
  struct hz6_magazine *full = hz6_transfer_get(class_id, m);
  if (full == NULL) {
    full = m != NULL ? m : hz6_transfer_take_empty(class_id);
    if (full == NULL) { // no memory even for a magazine
      struct hz6_item item = {NULL, NULL};
      hz6_source_take(class_id, heap->home, &item, 1);
      return item;
    }
    full->count =
        hz6_source_take(class_id, heap->home, full->items + 1, hz6_policy.of[class_id].refill);
  }
  load(heap, class_id, full);
  return hz6_magazine_pop(&heap->top[class_id + 1]);
}

void hz6_front_overflow(struct hz6_heap *heap, unsigned class_id, struct hz6_item item) {
  struct hz6_magazine *full = unload(heap, class_id);
  hz_count(HZ_COUNT_overflows, 1);
  struct hz6_magazine *empty = full != NULL ? hz6_front_give(class_id, full) : NULL;
  if (empty == NULL) empty = hz6_transfer_take_empty(class_id);
  if (empty == NULL) { // no memory even for this: the block itself can always go down
    hz6_source_give(class_id, &item, 1);
    return;
  }
  load(heap, class_id, empty);
  hz6_magazine_push(&heap->top[class_id + 1], item);
}

void hz6_front_foreign(struct hz6_heap *heap, unsigned class_id, struct hz6_item item) {
  struct hz6_magazine *m = heap->foreign[class_id];
  if (m == NULL) m = heap->foreign[class_id] = hz6_transfer_take_empty(class_id);
  if (m == NULL) {
    hz6_source_give(class_id, &item, 1);
    return;
  }
  m->items[m->count + 1] = item;
  atomic_signal_fence(memory_order_release); // a fork must not find a count without its block
  if (++m->count < m->capacity) return;
  hz_count(HZ_COUNT_remote_frees, m->count);
  hz_count(HZ_COUNT_remote_batches, 1);
  heap->foreign[class_id] = NULL; // a fork must not find blocks that are on their way
  atomic_signal_fence(memory_order_release);
  give_to_source(class_id, m);
  atomic_signal_fence(memory_order_release); // nor a count that has not been set back
  heap->foreign[class_id] = m;
}

// ---- Life of a heap -----------------------------------------------------------------------------

static void flush(struct hz6_heap *heap) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz6_magazine *m = unload(heap, c);
    if (m != NULL && m->count != 0) m = hz6_front_give(c, m);
    if (m != NULL) hz6_transfer_put_empty(c, m);
    m = heap->foreign[c];
    heap->foreign[c] = NULL;
    if (m != NULL) give_to_source(c, m);
    if (m != NULL) hz6_transfer_put_empty(c, m);
  }
  hz_run_cache_flush(&heap->above);
}

static void join(struct hz6_heap *heap, unsigned home) {
  heap->home = home;
  hz6_source_join(home);
  heap->joined = true;
}

static void leave(struct hz6_heap *heap) {
  if (!heap->joined) return; // a fork caught the thread just behind the next line
  heap->joined = false;
  atomic_signal_fence(memory_order_release);
  hz6_source_leave(heap->home);
}

static void end(struct hz6_heap *heap) {
  leave(heap);
  hz_thread_detach(&heap->thread);
  hz_meta_give(heap, sizeof *heap);
}

static void init(struct hz6_heap *heap) {
  memset(heap, 0, sizeof *heap);
  for (unsigned i = 0; i < sizeof heap->mark_by_16; i++)
    heap->mark_by_16[i] = (uint8_t)(hz_class_by_16[i] + 1);
  for (unsigned mark = 0; mark < HZ6_MARKS; mark++) heap->top[mark] = HZ6_NO_TOP;
}

// The heap of a thread that calls us for the first time.
static HZ_SLOW struct hz6_heap *attach(void) {
  struct hz6_heap *heap = hz_meta_take(sizeof *heap);
  if (heap == NULL) return NULL;
  init(heap);
  join(heap, 0);
  hz6_heap = heap; // attaching may call malloc
  if (!hz_thread_attach(&heap->thread)) {
    hz6_heap = &hz6_empty_heap;
    flush(heap);
    leave(heap);
    hz_meta_give(heap, sizeof *heap);
    return NULL;
  }
  const unsigned home = heap->thread.slot % hz6_policy.homes;
  if (home != heap->home) {
    leave(heap);
    join(heap, home);
  }
  return heap;
}

struct hz6_heap *hz6_front_get(void) {
  const struct hz6_heap *heap = hz6_heap;
  if (hz_likely(heap != &hz6_empty_heap && heap != &hz6_dead_heap)) return (struct hz6_heap *)heap;
  return heap == &hz6_dead_heap ? NULL : attach();
}

void hz6_front_flush(void) {
  const struct hz6_heap *heap = hz6_heap;
  if (heap != &hz6_empty_heap && heap != &hz6_dead_heap) flush((struct hz6_heap *)heap);
}

static struct hz6_heap *heap_of(struct hz_thread *thread) {
  return (struct hz6_heap *)((char *)thread - offsetof(struct hz6_heap, thread));
}

// What the thread still frees or allocates from here on goes to and comes from Source, one by one.
static void on_thread_exit(struct hz_thread *thread) {
  hz6_heap = &hz6_dead_heap;
  flush(heap_of(thread));
  end(heap_of(thread));
  hz_count(HZ_COUNT_threads_ended, 1);
}

// A fork may have caught the orphan's thread between any two stores of a slow path. So a magazine
// is believed only where top lies inside of it, its record is never used again, and what the thread
// had in its hands is lost. What is given is forgotten first: another fork may catch us here.
static void salvage(struct hz6_heap *heap) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz6_magazine *m = heap->loaded[c], *foreign = heap->foreign[c];
    struct hz6_item *top = heap->top[c + 1];
    heap->loaded[c] = heap->foreign[c] = NULL;
    atomic_signal_fence(memory_order_release);
    if (m != NULL && top >= m->items && top <= m->items + m->capacity)
      hz6_source_give(c, m->items + 1, (uint32_t)(top - m->items));
    if (foreign != NULL) hz6_source_give(c, foreign->items + 1, foreign->count);
  }
  hz_run_cache_flush(&heap->above);
}

bool hz6_front_adopt(void) {
  bool any = false;
  for (struct hz_thread *t; (t = hz_thread_take_orphan()) != NULL; any = true) {
    salvage(heap_of(t));
    end(heap_of(t));
    hz_count(HZ_COUNT_adopted, 1);
  }
  return any;
}

void hz6_front_start(void) {
  hz_threads_on_exit(on_thread_exit);
}
