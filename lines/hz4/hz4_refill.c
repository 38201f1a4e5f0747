// The way down of hz4: an empty magazine, a full one.
#include "lines/hz4/hz4_model.h"

#include <string.h>

#include "core/counter.h"
#include "core/misuse.h"

// ---- Up -----------------------------------------------------------------------------------------

// Pages of heaps that no thread attends, before a new one is cut. `any`: of attended ones too, whose
// threads would then find their own blocks foreign: only when there is no other memory.
static bool take_over(struct hz4_heap *heap, unsigned class_id, bool any) {
  if (!any && !hz4_heaps_idle()) return false;
  for (struct hz4_heap *other = hz4_heaps_all(); other != NULL; other = other->next) {
    if (!any && !hz4_heap_settle(other)) continue;
    if (hz4_pages_move(other, heap, class_id, any)) return true;
  }
  return false;
}

// Up to `want` blocks into out, from anywhere below the magazines; 0: no memory.
static uint32_t take_blocks(struct hz4_heap *heap, unsigned class_id, void **out, uint32_t want) {
  uint32_t got = hz4_pages_take(heap, class_id, out, want);
  if (got == 0 && (hz4_adopt_orphans() | take_over(heap, class_id, false)))
    got = hz4_pages_take(heap, class_id, out, want);
  if (got == 0) got = hz4_pages_carve(heap, class_id, out, want);
  // The kernel gives nothing more: everything that lies in caches comes down, then once again.
  if (hz_unlikely(got == 0)) {
    hz4_last_resort();
    take_over(heap, class_id, true);
    got = hz4_pages_take(heap, class_id, out, want);
    if (got == 0) got = hz4_pages_carve(heap, class_id, out, want);
  }
  return got;
}

HZ_SLOW void *hz4_take_single(unsigned class_id) {
  void *p = NULL;
  struct hz4_heap *heap = hz4_heap_get();
  if (heap == NULL) heap = hz4_heap_any();
  return heap != NULL && take_blocks(heap, class_id, &p, 1) == 1 ? p : NULL;
}

HZ_SLOW void *hz4_refill(struct hz4_heap *heap, unsigned class_id) {
  hz_count(HZ_COUNT_refills, 1);
  if (hz4_collect(heap, class_id)) return hz_magazine_pop(&heap->top[class_id]);
  struct hz_magazine *m = heap->loaded[class_id];
  if (m == NULL) m = hz4_magazine_take(heap, hz4_limits[class_id].capacity);
  if (m == NULL) return hz4_take_single(class_id);
  heap->loaded[class_id] = NULL; // so that a flush on the way leaves it alone
  heap->top[class_id] = HZ_NO_TOP;
  m->count = take_blocks(heap, class_id, m->slots + 1, hz4_limits[class_id].refill);
  hz4_magazine_load(heap, class_id, m);
  return hz_magazine_pop(&heap->top[class_id]);
}

// ---- Down ---------------------------------------------------------------------------------------

HZ_SLOW void hz4_overflow(struct hz4_heap *heap, unsigned class_id, void *p) {
  struct hz_magazine *m = heap->loaded[class_id];
  hz_count(HZ_COUNT_overflows, 1);
  if (m == NULL) {
    m = hz4_magazine_take(heap, hz4_limits[class_id].capacity);
    if (m == NULL) { // no memory even for this: the block itself can always go down
      hz4_pages_give(&p, 1, NULL);
      return;
    }
    hz4_magazine_load(heap, class_id, m);
  } else {
    // The older half has waited longest, and is the coldest.
    const uint32_t all = (uint32_t)(heap->top[class_id] - m->slots), older = (all + 1) / 2;
    void *blocks[HZ4_MAGAZINE_BLOCKS];
    memcpy(blocks, m->slots + 1, older * sizeof *blocks);
    memmove(m->slots + 1, m->slots + 1 + older, (all - older) * sizeof *blocks);
    heap->top[class_id] = m->slots + (all - older);
    hz4_pages_give(blocks, older, "found when a thread's cache was emptied");
  }
  hz_magazine_push(&heap->top[class_id], p);
}
