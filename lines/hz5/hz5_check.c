// Every invariant of lines/hz5/hz5_model.h, walked. Other threads' runs are only looked at where
// nobody else writes.
#include "lines/hz5/hz5_model.h"

static const char *check_slabs(const struct hz5_slab *run) {
  const struct hz_size_class *sc = hz5_class(run);
  for (unsigned i = 0; i < sc->slabs; i++) {
    if (run[i].at != i << HZ_SLAB_SHIFT) return "hz5: a slab is at another place of its run";
    if (run[i].bits != run->bits || run[i].class_id != run->class_id)
      return "hz5: slabs of a run disagree";
    if (hz5_owner(&run[i]) != hz5_owner(run)) return "hz5: slabs of a run name other owners";
  }
  const struct hz_run *below = hz_run_of(hz5_base(run));
  if (below == NULL || below->state != HZ_RUN_CLASS || below->slabs != sc->slabs)
    return "hz5: a run is none of the arena's";
  return NULL;
}

static const char *check_bits(const struct hz5_slab *run) {
  for (uint32_t w = 0; w < run->words; w++) {
    const uint64_t none = ~hz5_blocks_of(run, w);
    const uint64_t idle = atomic_load_explicit(&run->bits[w].idle, memory_order_relaxed);
    const uint64_t kept = atomic_load_explicit(&run->bits[w].kept, memory_order_relaxed);
    if (((idle | kept) & none) != 0) return "hz5: a bit that stands for no block is free or live";
  }
  return NULL;
}

static const char *check_until(const struct hz5_slab *run) {
  const uint32_t live = hz5_run_live(run);
  if (live == 0 || live == hz5_class(run)->blocks) return "hz5: a listed run is empty or full";
  return *hz5_until(run) == (int32_t)live ? NULL : "hz5: a listed run miscounts its live blocks";
}

const char *hz5_check_list(const struct hz5_list *list, uint32_t token, unsigned class_id) {
  uint32_t before = 0, count = 0;
  for (uint32_t name = list->first; name != 0; before = name, name = hz5_named(name)->next) {
    const struct hz5_slab *run = hz5_named(name);
    count++;
    if (hz5_owner(run) != token) return "hz5: a run is in the list of another owner";
    if (run->class_id != class_id) return "hz5: a run is in another class's list";
    if (hz5_state(run) != HZ5_LISTED) return "hz5: a run is in a list and does not know it";
    if (run->prev != before) return "hz5: a list is not linked both ways";
    const char *broken = check_slabs(run);
    if (broken == NULL) broken = check_bits(run);
    if (broken == NULL) broken = check_until(run);
    if (broken != NULL) return broken;
  }
  if (list->last != before) return "hz5: a list ends elsewhere";
  return list->count == count ? NULL : "hz5: a list is miscounted";
}

static const char *check_current(const struct hz5_heap *heap, unsigned class_id) {
  const struct hz5_cursor *cursor = &heap->cursor[class_id];
  const struct hz5_slab *run = hz5_named(cursor->run);
  if (run == NULL) return NULL;
  if (hz5_owner(run) != heap->token || hz5_state(run) != HZ5_CURRENT || run->class_id != class_id)
    return "hz5: a cursor names a run that is not current";
  const size_t w = (size_t)(cursor->bits - run->bits);
  if (w >= run->words || cursor->bytes != hz5_class(run)->bytes ||
      cursor->base != hz5_base(run) + w * 64 * cursor->bytes)
    return "hz5: a cursor does not fit its run";
  const char *broken = check_slabs(run);
  return broken != NULL ? broken : check_bits(run);
}

static const char *check_mine(const struct hz5_heap *heap) {
  const char *broken = NULL;
  for (unsigned c = 0; c < HZ_CLASS_COUNT && broken == NULL; c++) {
    broken = check_current(heap, c);
    if (broken == NULL) broken = hz5_check_list(&heap->listed[c], heap->token, c);
  }
  return broken;
}

const char *hz5_check(void) {
  const char *broken = hz_arena_check();
  if (broken == NULL) broken = hz5_pools_check();
  if (broken == NULL && hz5_heap != &hz5_empty_heap && hz5_heap != &hz5_dead_heap)
    broken = check_mine(hz5_heap);
  return broken;
}
