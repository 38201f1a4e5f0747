// The clock of slow paths: see core/tick.h.
#include "core/tick.h"

#include <limits.h>

#include "core/arena.h"
#include "core/large.h"
#include "core/os.h"

enum {
  PERIODS = 4, // ticks per idle time: memory leaves at most a quarter late
  MAX_PERIOD_MS = 250,
};

uint64_t hz_purge_idle_ms = 500;
void (*hz_tick_hook)(uint64_t now_ms);

static _Atomic uint64_t next_due_ms;

static HZ_SLOW void tick(uint64_t now_ms) {
  bool more = false;
  hz_arena_purge(now_ms, hz_purge_idle_ms, HZ_TICK_CALLS, &more);
  hz_large_purge(now_ms, hz_purge_idle_ms);
  if (more) atomic_store_explicit(&next_due_ms, now_ms, memory_order_relaxed);
  if (hz_tick_hook != NULL) hz_tick_hook(now_ms);
}

bool hz_tick(void) {
  const uint64_t now_ms = hz_os.now_ms();
  uint64_t due = atomic_load_explicit(&next_due_ms, memory_order_relaxed);
  if (hz_likely(now_ms < due)) return false;
  const uint64_t period = hz_min(hz_max(hz_purge_idle_ms / PERIODS, 1), MAX_PERIOD_MS);
  // One thread does the work, the others go on.
  if (!atomic_compare_exchange_strong_explicit(&next_due_ms, &due, now_ms + period,
                                               memory_order_relaxed, memory_order_relaxed))
    return false;
  tick(now_ms);
  return true;
}

size_t hz_purge_all(void) {
  bool more;
  return hz_arena_purge(UINT64_MAX, 0, UINT_MAX, &more) + hz_large_purge(UINT64_MAX, 0);
}
