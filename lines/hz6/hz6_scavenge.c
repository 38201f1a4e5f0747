// Quiet points: see lines/hz6/hz6_scavenge.h.
#include "lines/hz6/hz6_scavenge.h"

#include "core/arena.h"
#include "core/counter.h"
#include "core/misuse.h"
#include "core/tick.h"
#include "lines/hz6/hz6_route.h"
#include "lines/hz6/hz6_source.h"
#include "lines/hz6/hz6_transfer.h"

enum { CHECK_EVERY = 256 }; // debug builds: slow steps between two walks of all invariants

static const struct hz6_scavenge_front *front;

// Calls for all memory so far.
static _Atomic uint32_t calls_for_all;

void hz6_scavenge_start(const struct hz6_scavenge_front *of) {
  front = of;
}

// ---- Transfer cache to runs ---------------------------------------------------------------------

static size_t give_list(unsigned class_id, struct hz6_magazine *list) {
  size_t blocks = 0;
  while (list != NULL) {
    struct hz6_magazine *next = list->next;
    blocks += list->count;
    hz6_source_give(class_id, list->items + 1, list->count);
    hz6_magazine_drop(list);
    list = next;
  }
  const size_t bytes = blocks * hz_class_bytes(class_id);
  if (bytes != 0) hz_count(HZ_COUNT_scavenged, bytes);
  return bytes;
}

// What is due, within the budget. False: something may be left.
static bool drain_due(void) {
  size_t budget = hz6_policy.scavenge_bytes;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    // Magazines that are not full come to less than was asked for.
    for (struct hz6_magazine *due; (due = hz6_transfer_due(c, budget, false)) != NULL;) {
      budget -= hz_min(budget, give_list(c, due));
      if (budget == 0) return false;
    }
  return true;
}

static void drain_all(void) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) give_list(c, hz6_transfer_due(c, 0, true));
}

// ---- Slow paths end here ------------------------------------------------------------------------

static void decay(bool period) {
  if (period) {
    front->adopt();
    front->period();
    hz6_transfer_period();
  }
  const bool drained = drain_due();
  unsigned calls = HZ_TICK_CALLS;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) hz_central_decay(c, period, &calls);
  if (!drained || calls == 0) hz_tick_rest();
}

static void check_sometimes(void) {
  static _Atomic uint32_t steps;
  if (atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed) % CHECK_EVERY != 0) return;
  const char *broken = front->check();
  if (broken != NULL) hz_broken(__FILE__, __LINE__, broken);
}

void hz6_scavenge_pause(uint32_t *seen) {
  const uint32_t now = atomic_load_explicit(&calls_for_all, memory_order_relaxed);
  if (seen != NULL && hz_unlikely(__atomic_load_n(seen, __ATOMIC_RELAXED) != now)) {
    __atomic_store_n(seen, now, __ATOMIC_RELAXED);
    front->flush();
  }
  const enum hz_tick tick = hz_tick();
  if (hz_unlikely(tick != HZ_TICK_NONE)) decay(tick == HZ_TICK_PERIOD);
  if (HZ_DEBUG) check_sometimes();
}

// ---- All at once --------------------------------------------------------------------------------

bool hz6_scavenge_all(void) {
  atomic_fetch_add_explicit(&calls_for_all, 1, memory_order_relaxed);
  front->flush();
  front->adopt();
  drain_all();
  size_t bytes = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) bytes += hz_central_purge(c);
  return bytes + hz_purge_all() != 0;
}

bool hz6_scavenge_last_resort(void) {
  const bool conceded = hz_arena_concede();
  if (conceded) hz6_route_concede();
  return hz6_scavenge_all() || conceded;
}

// keep_bytes is the padding that glibc keeps at the top of its heap: there is no such top here.
bool hz6_scavenge_trim(size_t keep_bytes) {
  (void)keep_bytes;
  return hz6_scavenge_all();
}
