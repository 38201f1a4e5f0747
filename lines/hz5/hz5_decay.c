// Memory on its way back: what waits for threads is taken in, runs that nobody needs go from the
// pools to the arena, idle pages to the kernel.
#include "lines/hz5/hz5_model.h"

#include <limits.h>

#include "core/counter.h"
#include "core/idle_blocks.h"
#include "core/os.h"
#include "core/tick.h"

enum { CHECK_EVERY = 256 }; // debug builds: slow steps between two walks of all invariants

// A thread that sees a new number at the end of a slow path follows: after a trim it gives back
// what its heap has free, after a tick what its heap has had free for long.
static _Atomic uint32_t trims, periods;

// ---- Runs ---------------------------------------------------------------------------------------

static bool is_free(const void *run, uint32_t index) {
  const struct hz5_slab *of = run;
  return (atomic_load_explicit(&of->bits[index / 64].idle, memory_order_relaxed) >> index % 64 &
          1) != 0;
}

size_t hz5_run_decay(struct hz5_slab *run, bool all, bool tick, unsigned *calls) {
  const struct hz_size_class *sc = hz5_class(run);
  // Frees do not say that the run is busy; that it has changed shows here.
  if (run->until_seen != *hz5_until(run)) run->idle_ticks = 0;
  run->until_seen = *hz5_until(run);
  const struct hz_idle_blocks blocks = {hz5_base(run), sc->bytes, sc->blocks, is_free, run};
  return hz_idle_blocks_decay(&blocks, &run->idle_ticks, all, tick, calls);
}

// A run that has been quiet for so long is for whoever needs one, if there are others.
static size_t list_decay(struct hz5_list *list, bool all, bool tick, unsigned *calls) {
  const bool alone = hz_thread_count() <= 1;
  size_t purged = 0;
  for (struct hz5_slab *run = hz5_named(list->first), *next; run != NULL; run = next) {
    next = hz5_named(run->next);
    purged += hz5_run_decay(run, all, tick, calls);
    if (alone || run->idle_ticks < HZ_IDLE_TICKS) continue;
    hz5_run_unlist(list, run);
    hz5_pool_give(run);
  }
  return purged;
}

// The calling thread's own.
static size_t heap_decay(struct hz5_heap *heap, bool all, bool tick) {
  unsigned calls = all ? UINT_MAX : HZ_TICK_CALLS;
  size_t purged = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz5_slab *current = hz5_named(heap->cursor[c].run);
    // A current run is given up now and then: it turns out empty, or idle, or is taken again.
    if (all || (current != NULL && tick && ++current->idle_ticks >= HZ_IDLE_TICKS))
      hz5_retire_current(heap, c);
    purged += list_decay(&heap->listed[c], all, tick, &calls);
  }
  if (calls == 0) hz_tick_rest();
  if (purged != 0) hz_count(HZ_COUNT_purged, purged);
  return purged;
}

// ---- Slow paths end here ------------------------------------------------------------------------

static void check_sometimes(void) {
  static _Atomic uint32_t steps;
  if (atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed) % CHECK_EVERY != 0) return;
  const char *broken = hz5_check();
  if (broken != NULL) hz_broken(__FILE__, __LINE__, broken);
}

static void follow(struct hz5_heap *heap) {
  const uint32_t trim = atomic_load_explicit(&trims, memory_order_relaxed);
  const uint32_t period = atomic_load_explicit(&periods, memory_order_relaxed);
  if (hz_likely(heap->trims_seen == trim && heap->periods_seen == period)) return;
  const bool all = heap->trims_seen != trim;
  heap->trims_seen = trim;
  heap->periods_seen = period;
  hz5_send(heap);
  hz5_collect(heap);
  if (all) hz_run_cache_flush(&heap->above);
  heap_decay(heap, all, !all);
}

void hz5_slow_path_done(struct hz5_heap *heap) {
  const enum hz_tick tick = hz_tick();
  if (hz_unlikely(tick == HZ_TICK_PERIOD)) {
    atomic_fetch_add_explicit(&periods, 1, memory_order_relaxed);
    hz5_adopt_vanished();
  }
  if (heap != NULL) follow(heap);
  if (hz_unlikely(tick != HZ_TICK_NONE)) {
    unsigned calls = HZ_TICK_CALLS;
    const size_t purged = hz5_pools_decay(false, tick == HZ_TICK_PERIOD, &calls);
    if (purged != 0) hz_count(HZ_COUNT_purged, purged);
    if (calls == 0) hz_tick_rest();
  }
  if (HZ_DEBUG) check_sometimes();
}

// ---- All at once --------------------------------------------------------------------------------

static bool reclaim(void) {
  const uint32_t now = atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed) + 1;
  size_t bytes = 0;
  if (hz5_heap != &hz5_empty_heap && hz5_heap != &hz5_dead_heap) {
    struct hz5_heap *mine = (struct hz5_heap *)hz5_heap;
    mine->trims_seen = now;
    hz5_send(mine);
    hz5_collect(mine);
    hz_run_cache_flush(&mine->above);
    bytes += heap_decay(mine, true, false);
  }
  bool any = hz5_adopt_vanished();
  unsigned calls = UINT_MAX;
  any |= hz5_pools_empty();
  const size_t purged = hz5_pools_decay(true, false, &calls);
  if (purged != 0) hz_count(HZ_COUNT_purged, purged);
  return bytes + purged + hz_purge_all() != 0 || any;
}

bool hz5_last_resort(void) {
  const bool conceded = hz_arena_concede();
  return reclaim() || conceded;
}

// keep_bytes is the padding that glibc keeps at the top of its heap: there is no such top here.
bool hz5_trim(size_t keep_bytes) {
  (void)keep_bytes;
  return reclaim();
}
