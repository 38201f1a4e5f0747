// The way down of hz5: the current word has no free block left.
#include "lines/hz5/hz5_model.h"

#include "core/counter.h"

// The lowest free block of word w and those behind it: the cursor passes through a run once, and
// what is freed behind it is found when the run's turn comes again.
static void *take_from(struct hz5_cursor *cursor, const struct hz5_slab *run, uint32_t w) {
  for (; w < run->words; w++) {
    const struct hz5_free free = hz5_free_of(&run->bits[w]);
    if (free.blocks == 0) continue;
    cursor->bits = &run->bits[w];
    cursor->base = hz5_base(run) + (size_t)w * 64 * cursor->bytes;
    return hz5_take_lowest(cursor, free);
  }
  return NULL;
}

static void *take_current(struct hz5_cursor *cursor) {
  const struct hz5_slab *run = hz5_named(cursor->run);
  return run == NULL ? NULL : take_from(cursor, run, (uint32_t)(cursor->bits - run->bits));
}

static void *take_first(struct hz5_cursor *cursor, struct hz5_slab *run) {
  cursor->run = hz5_name(run);
  cursor->bits = run->bits;
  cursor->base = hz5_base(run);
  cursor->bytes = hz5_class(run)->bytes;
  run->idle_ticks = 0;
  return take_from(cursor, run, 0);
}

void hz5_retire_current(struct hz5_heap *heap, unsigned class_id) {
  struct hz5_slab *run = hz5_named(heap->cursor[class_id].run);
  if (run == NULL) return;
  hz5_cursor_reset(heap, class_id);
  hz5_run_leave(&heap->listed[class_id], run, hz5_run_live(run));
}

// There is no current run. A listed run may have no block to give after all, if its idle ones were
// freed by two threads at once and the second is still to be told: here and now, then.
static void *take_listed(struct hz5_heap *heap, unsigned class_id) {
  struct hz5_list *list = &heap->listed[class_id];
  struct hz5_slab *run = hz5_named(list->first);
  if (run == NULL) return NULL;
  hz5_run_unlist(list, run);
  void *p = take_first(&heap->cursor[class_id], run);
  if (hz_likely(p != NULL)) return p;
  hz5_run_take_in(list, run);
  return take_first(&heap->cursor[class_id], run);
}

// From a run that comes to the heap. NULL: no memory.
static void *take_new(struct hz5_heap *heap, unsigned class_id) {
  struct hz5_slab *run = hz5_pool_take(class_id, heap->token);
  if (run == NULL) run = hz5_run_open(class_id, heap->token);
  return run == NULL ? NULL : take_first(&heap->cursor[class_id], run);
}

HZ_SLOW void *hz5_refill(struct hz5_heap *heap, unsigned class_id) {
  hz_count(HZ_COUNT_refills, 1);
  void *p = take_current(&heap->cursor[class_id]);
  if (p != NULL) return p;
  hz5_collect(heap);
  hz5_retire_current(heap, class_id);
  p = take_listed(heap, class_id);
  if (p != NULL) return p;
  hz5_retire_current(heap, class_id);
  hz5_adopt_vanished();
  p = take_new(heap, class_id);
  // The kernel gives nothing more: everything that is free comes down, then once again.
  if (hz_unlikely(p == NULL) && hz5_last_resort()) {
    hz5_retire_current(heap, class_id);
    p = take_listed(heap, class_id);
    if (p == NULL) p = take_new(heap, class_id);
  }
  return p;
}

// A thread that has no heap leaves its runs to nobody at once.
HZ_SLOW void *hz5_take_single(unsigned class_id) {
  void *p = hz5_pool_block(class_id);
  if (p != NULL) return p;
  struct hz5_slab *run = hz5_run_open(class_id, HZ5_ORPHAN);
  if (run == NULL && hz5_last_resort()) run = hz5_run_open(class_id, HZ5_ORPHAN);
  if (run == NULL) return NULL;
  hz5_take(run, 0);
  p = hz5_base(run);
  hz5_pool_give(run);
  return p;
}
