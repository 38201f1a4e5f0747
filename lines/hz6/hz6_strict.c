// A free that asks the descriptor: what `owners` puts in the place of hz6_release.
//
// The descriptor says to which home the block's run belongs, and the mark goes by an exchange: of
// two threads that free a block at the same moment, one is refused here.
#include "lines/hz6/hz6_model.h"

void hz6_strict_release(void *p) {
  if (p == NULL) return;
  struct hz6_heap *heap = hz6_front_get();
  const struct hz6_route r = hz6_route(p);
  if (r.answer != HZ6_VALID || r.kind != HZ6_KIND_CLASS) {
    hz6_release_above(heap, p);
    return;
  }
  struct hz6_item item = {.block = p};
  if (hz6_route_unmark(p, &item.mark) == 0) {
    hz_misuse(HZ_MISUSE_DOUBLE, p, "by two threads at the same moment");
    return;
  }
  const struct hz_run *run = r.descriptor;
  const uint16_t home = __atomic_load_n(&run->home, __ATOMIC_RELAXED); // advice: it may move
  if (heap == NULL) hz6_source_give(r.class_id, &item, 1);
  else if (home != heap->home) hz6_front_foreign(heap, r.class_id, item);
  else if (hz6_magazine_push(&heap->top[r.class_id + 1], item)) return;
  else hz6_front_overflow(heap, r.class_id, item);
  hz6_scavenge_pause(heap != NULL ? &heap->calls_seen : NULL);
}
