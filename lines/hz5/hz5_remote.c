// Blocks of runs that the calling thread does not own. Nobody's run becomes the thread's; in
// another's the block is marked, and the run goes to its owner's queue (hz5_queue.c).
#include "lines/hz5/hz5_model.h"

#include "core/counter.h"

// ---- Refusing -----------------------------------------------------------------------------------

HZ_SLOW void hz5_refuse(const struct hz5_slab *slab, const void *p) {
  uint32_t index;
  const bool block = hz5_begins(slab, p, &index) && index < hz5_class(slab)->blocks;
  hz_misuse(block ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR, p,
            block ? "a block of a run" : "in a run of smaller blocks");
}

void hz5_tell_stray(const void *p) {
  if (hz_unlikely(p != NULL)) hz_misuse(HZ_MISUSE_DOUBLE, p, "freed by two threads at once");
}

// ---- Frees --------------------------------------------------------------------------------------

// Clears the block's kept bit. False: it is not live. If another free of the same block is taken in
// while we look, the bit of a free block is cleared: hz5_run_absorb finds it.
static bool mark(const struct hz5_slab *slab, const void *p) {
  struct hz5_bits *const bits = slab->bits;
  uint32_t index;
  if (!hz5_is_live(slab, p, &index)) return false;
  const uint64_t bit = UINT64_C(1) << index % 64;
  return (atomic_fetch_and_explicit(&bits[index / 64].kept, ~bit, memory_order_seq_cst) & bit) != 0;
}

// Once the block is marked the run may go, and with it what the slab says.
static void release_marked(struct hz5_heap *heap, struct hz5_slab *slab, void *p) {
  struct hz5_slab *const run = hz5_first(slab);
  if (mark(slab, p)) hz5_queue(heap, run);
  else hz5_refuse(slab, p);
}

// Free blocks of a class that the thread does not allocate are for others. Blocks come back in
// about the order in which they went, so the last run in the list has what stays.
static void leave_oldest(struct hz5_heap *heap, unsigned class_id) {
  struct hz5_list *list = &heap->listed[class_id];
  if (heap->cursor[class_id].run != 0 || list->count <= HZ5_UNUSED_RUNS) return;
  struct hz5_slab *run = hz5_named(list->last);
  hz5_run_unlist(list, run);
  hz5_pool_give(run);
}

// The run has just become the heap's, with so many live blocks, and is in no list. What was marked
// while it had another owner, perhaps by this thread, is taken in: a thread that only frees does
// not look into its queue often.
static void release_adopted(struct hz5_heap *heap, struct hz5_slab *slab, void *p, uint32_t live) {
  struct hz5_slab *run = hz5_first(slab);
  const unsigned class_id = run->class_id;
  struct hz5_list *list = &heap->listed[class_id];
  uint32_t index;
  const void *stray = NULL;
  const bool good = hz5_is_live(slab, p, &index);
  const uint32_t marked = hz5_run_absorb(run, &stray);
  live -= marked;
  if (good) {
    hz5_give(run, index);
    live--;
  }
  hz5_run_leave(list, run, live);
  if (marked != 0) hz_count(HZ_COUNT_remote_frees, marked);
  if (!good) hz5_refuse(slab, p);
  hz5_tell_stray(stray);
  leave_oldest(heap, class_id);
  hz5_collect(heap);
}

// Nobody's run becomes the heap's. False: it has an owner.
static bool adopt(struct hz5_heap *heap, struct hz5_slab *run, uint32_t owner, uint32_t *live) {
  if (owner == HZ5_FULL) {
    *live = hz5_class(run)->blocks;
    return hz5_run_adopt(run, heap->token);
  }
  const bool orphan = hz5_pool_adopt(run, heap->token);
  if (orphan) *live = hz5_run_live(run);
  return orphan;
}

HZ_SLOW void hz5_release_foreign(struct hz5_heap *heap, struct hz5_slab *slab, void *p) {
  for (;;) {
    struct hz5_slab *run = hz5_first(slab);
    const uint32_t owner = atomic_load_explicit(&run->owner, memory_order_acquire);
    uint32_t index, live;
    if (owner == HZ5_NOBODY || !hz5_is_live(slab, p, &index)) {
      hz5_refuse(slab, p);
      return;
    }
    if (owner >= HZ5_TOKENS) {
      release_marked(heap, slab, p);
      return;
    }
    if (heap == NULL) {
      if (hz5_pool_release(slab, p)) return;
    } else if (adopt(heap, run, owner, &live)) {
      release_adopted(heap, slab, p, live);
      return;
    }
  }
}
