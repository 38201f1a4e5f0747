// The clock of slow paths: see core/tick.h.
#include "core/tick.h"

#include <limits.h>

#include "core/arena.h"
#include "core/large.h"
#include "core/os.h"
#include "core/run_transfer.h"

enum {
  PERIODS = 4, // ticks per idle time: memory leaves at most a quarter late
  MAX_PERIOD_MS = 250,
  REST_PAUSE_MS = 1,
};

uint64_t hz_purge_idle_ms = 500;
void (*hz_tick_hook)(uint64_t now_ms);

static _Atomic uint64_t next_due_ms;
static _Atomic uint64_t rest_due_ms = UINT64_MAX; // UINT64_MAX: nothing is left over

// True for one of the threads that find the time has come: it does the work, the others go on.
static bool is_due(_Atomic uint64_t *due_ms, uint64_t now_ms, uint64_t next_ms) {
  uint64_t due = atomic_load_explicit(due_ms, memory_order_relaxed);
  return hz_unlikely(now_ms >= due) &&
         atomic_compare_exchange_strong_explicit(due_ms, &due, next_ms, memory_order_relaxed,
                                                 memory_order_relaxed);
}

void hz_tick_rest(void) {
  atomic_store_explicit(&rest_due_ms, hz_os.now_ms() + REST_PAUSE_MS, memory_order_relaxed);
}

static HZ_SLOW enum hz_tick work(enum hz_tick kind, uint64_t now_ms) {
  bool more = false;
  hz_arena_purge(now_ms, hz_purge_idle_ms, HZ_TICK_CALLS, &more);
  if (more) hz_tick_rest();
  if (kind == HZ_TICK_PERIOD) {
    hz_large_purge(now_ms, hz_purge_idle_ms);
    hz_run_transfer_decay();
    if (hz_tick_hook != NULL) hz_tick_hook(now_ms);
  }
  return kind;
}

enum hz_tick hz_tick(void) {
  const uint64_t now_ms = hz_os.now_ms();
  const uint64_t period = hz_min(hz_max(hz_purge_idle_ms / PERIODS, 1), MAX_PERIOD_MS);
  if (is_due(&next_due_ms, now_ms, now_ms + period)) return work(HZ_TICK_PERIOD, now_ms);
  if (is_due(&rest_due_ms, now_ms, UINT64_MAX)) return work(HZ_TICK_REST, now_ms);
  return HZ_TICK_NONE;
}

size_t hz_purge_all(void) {
  bool more;
  const size_t passed_on = hz_run_transfer_flush();
  return passed_on + hz_arena_purge(UINT64_MAX, 0, UINT_MAX, &more) + hz_large_purge(UINT64_MAX, 0);
}
