// Memory on its way back: what waits for threads that do not come goes to the pages, pages that are
// empty to the arena, idle slabs to the kernel.
#include "lines/hz4/hz4_model.h"

#include <limits.h>

#include "core/misuse.h"
#include "core/tick.h"

enum { VISITS = 1024 }; // heaps that one tick looks at

enum { CHECK_ALL_EVERY = 256 }; // debug builds: slow steps between two walks of all heaps

// A thread that sees a new number at the end of a slow path follows: after a call of hz4_reclaim it
// empties its heap, after a tick, whoever's it was, it sends its packets.
static _Atomic uint32_t trims, periods;

// ---- Slow paths end here ------------------------------------------------------------------------

static void check(struct hz4_heap *heap) {
  static _Atomic uint32_t steps;
  const char *broken = heap != NULL ? hz4_check_heap(heap) : NULL;
  const uint32_t step = atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
  if (broken == NULL && step % CHECK_ALL_EVERY == 0) broken = hz4_check();
  if (broken != NULL) hz_broken(__FILE__, __LINE__, broken);
}

static void decay(bool period) {
  if (period) hz4_adopt_orphans();
  unsigned calls = HZ_TICK_CALLS;
  static hz4_round round;
  struct hz4_heap *heap, *first = NULL;
  for (unsigned i = 0; i < VISITS && (heap = hz4_heaps_next(&round, &first)) != NULL; i++) {
    if (period && !hz4_heap_settle(heap)) hz4_settle_waiting(heap);
    hz4_pages_decay(heap, false, period, &calls);
  }
  if (calls == 0) hz_tick_rest();
}

void hz4_heap_up_to_date(struct hz4_heap *heap) {
  heap->trims_seen = atomic_load_explicit(&trims, memory_order_relaxed);
  heap->periods_seen = atomic_load_explicit(&periods, memory_order_relaxed);
}

static void follow(struct hz4_heap *heap) {
  const bool trim = heap->trims_seen != atomic_load_explicit(&trims, memory_order_relaxed);
  const bool period = heap->periods_seen != atomic_load_explicit(&periods, memory_order_relaxed);
  if (hz_likely(!trim && !period)) return;
  hz4_heap_up_to_date(heap);
  if (trim) hz4_heap_flush(heap);
  else hz4_send_all(heap);
}

void hz4_slow_path_done(struct hz4_heap *heap) {
  const enum hz_tick tick = hz_tick();
  if (hz_unlikely(tick == HZ_TICK_PERIOD))
    atomic_fetch_add_explicit(&periods, 1, memory_order_relaxed);
  if (heap != NULL) follow(heap);
  if (hz_unlikely(tick != HZ_TICK_NONE)) decay(tick == HZ_TICK_PERIOD);
  if (HZ_DEBUG) check(heap);
}

// ---- All at once --------------------------------------------------------------------------------

bool hz4_reclaim(void) {
  const uint32_t now = atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed) + 1;
  const struct hz4_heap *mine = hz4_heap;
  if (mine != &hz4_empty_heap && mine != &hz4_dead_heap) {
    ((struct hz4_heap *)mine)->trims_seen = now;
    hz4_heap_flush((struct hz4_heap *)mine);
  }
  hz4_adopt_orphans();
  size_t bytes = 0;
  for (struct hz4_heap *heap = hz4_heaps_all(); heap != NULL; heap = heap->next) {
    unsigned calls = UINT_MAX;
    if (!hz4_heap_settle(heap)) hz4_settle_all_waiting(heap);
    bytes += hz4_pages_decay(heap, true, false, &calls);
  }
  return bytes + hz_purge_all() != 0;
}

bool hz4_last_resort(void) {
  const bool conceded = hz_arena_concede();
  return hz4_reclaim() || conceded;
}

// keep_bytes is the padding that glibc keeps at the top of its heap: there is no such top here.
bool hz4_trim(size_t keep_bytes) {
  (void)keep_bytes;
  return hz4_reclaim();
}
