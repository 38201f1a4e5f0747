// The way down of hz4: an empty magazine, a full one.
#include "lines/hz4/hz4_model.h"

#include <string.h>

#include "core/counter.h"
#include "core/misuse.h"

enum { VISITS = 32 }; // heaps that one refill looks at

// ---- Up -----------------------------------------------------------------------------------------

// Pages of heaps that no thread attends, before a new one is cut. With very many heaps some are
// looked at, others the next time.
static bool take_over(struct hz4_heap *heap, unsigned class_id) {
  static hz4_round round;
  if (!hz4_heaps_idle()) return false;
  struct hz4_heap *other, *first = NULL;
  for (unsigned i = 0; i < VISITS && (other = hz4_heaps_next(&round, &first)) != NULL; i++)
    if (hz4_heap_settle(other) && hz4_pages_move(other, heap, class_id, false)) return true;
  return false;
}

// Pages of any heap. The thread of an attended one then finds its own blocks foreign: only when
// there is no other memory.
static bool take_away(struct hz4_heap *heap, unsigned class_id) {
  for (struct hz4_heap *other = hz4_heaps_all(); other != NULL; other = other->next)
    if (hz4_pages_move(other, heap, class_id, true)) return true;
  return false;
}

// Up to `want` blocks into out, from anywhere below the magazines; 0: no memory.
static uint32_t take_blocks(struct hz4_heap *heap, unsigned class_id, void **out, uint32_t want) {
  uint32_t got = hz4_pages_take(heap, class_id, out, want);
  if (got == 0) hz4_adopt_orphans();
  if (got == 0 && take_over(heap, class_id)) got = hz4_pages_take(heap, class_id, out, want);
  if (got == 0) got = hz4_pages_carve(heap, class_id, out, want);
  // The kernel gives nothing more: everything that lies in caches comes down, then once again.
  if (hz_unlikely(got == 0)) {
    hz4_last_resort();
    take_away(heap, class_id);
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
    // The older half has waited longest, and is the coldest. The magazine is not loaded meanwhile:
    // a fork must not find a block in it twice.
    const uint32_t all = (uint32_t)(heap->top[class_id] - m->slots), older = (all + 1) / 2;
    heap->loaded[class_id] = NULL;
    heap->top[class_id] = HZ_NO_TOP;
    atomic_signal_fence(memory_order_release);
    hz4_pages_give(m->slots + 1, older, "found when a thread's cache was emptied");
    m->count = all - older;
    memmove(m->slots + 1, m->slots + 1 + older, m->count * sizeof *m->slots);
    atomic_signal_fence(memory_order_release);
    hz4_magazine_load(heap, class_id, m);
  }
  hz_magazine_push(&heap->top[class_id], p);
}
