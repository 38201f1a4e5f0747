// Runs, their homes, and the way to the arena: see lines/hz6/hz6_source.h.
#include "lines/hz6/hz6_source.h"

#include "core/counter.h"
#include "lines/hz6/hz6_route.h"

static _Atomic uint32_t living[HZ_HOMES]; // threads in each home

void hz6_source_join(unsigned home) {
  atomic_fetch_add_explicit(&living[home], 1, memory_order_relaxed);
}
void hz6_source_leave(unsigned home) {
  atomic_fetch_sub_explicit(&living[home], 1, memory_order_relaxed);
}

// Other homes, a bit each: all of them, or those in which nobody lives.
static uint64_t other_homes(unsigned home, bool dead) {
  uint64_t homes = 0;
  for (unsigned h = 0; h < hz6_policy.homes; h++)
    if (!dead || atomic_load_explicit(&living[h], memory_order_relaxed) == 0)
      homes |= UINT64_C(1) << h;
  return homes & ~(UINT64_C(1) << home);
}

// Blocks of a run of one of these homes. The run becomes this home's: one of its blocks is in our
// hands, so it cannot vanish.
static uint32_t take_over(uint64_t homes, unsigned home, unsigned class_id, void **out,
                          uint32_t want) {
  if (homes == 0) return 0;
  const unsigned other = hz_central_find_home(class_id, homes);
  struct hz_run *run;
  const uint32_t got = other < HZ_HOMES ? hz_central_take(class_id, other, out, want, &run) : 0;
  if (got == 0) return 0;
  hz_central_move(run, home);
  hz_count(HZ_COUNT_taken_over, 1);
  return got;
}

static uint32_t open_run(unsigned class_id, unsigned home, void **out, uint32_t want) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  if (run == NULL) return 0;
  if (!hz6_route_open(run) || !hz_central_carve(run, class_id, home)) {
    hz_arena_give(run);
    return 0;
  }
  HZ_ASSERT(hz6_route_is_clear(run));
  hz_count(HZ_COUNT_runs_carved, 1);
  return hz_central_take_new(run, out, want);
}

uint32_t hz6_source_take(unsigned class_id, unsigned home, void **out, uint32_t want) {
  struct hz_run *last;
  uint32_t got = hz_central_take(class_id, home, out, want, &last);
  if (got == 0) got = take_over(other_homes(home, true), home, class_id, out, want);
  if (got == 0) got = open_run(class_id, home, out, want);
  if (got == 0) got = take_over(other_homes(home, false), home, class_id, out, want);
  return got;
}

void hz6_source_give(unsigned class_id, void *const *blocks, uint32_t count) {
  static const char when[] = "two threads at once, or found when a cache was emptied";
  struct hz_run *empty = hz_central_give(class_id, blocks, count, when);
  if (empty == NULL) return;
  if (HZ_DEBUG)
    for (const struct hz_run *run = empty; run != NULL; run = run->next)
      HZ_CHECK(hz6_route_is_clear(run));
  hz_central_release(empty);
}
