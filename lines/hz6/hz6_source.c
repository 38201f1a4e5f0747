// Runs, their homes, and the way to the arena: see lines/hz6/hz6_source.h.
#include "lines/hz6/hz6_source.h"

#include "core/counter.h"
#include "lines/hz6/hz6_options.h"
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
  const bool entered = hz6_route_open(run, class_id);
  if (!entered || !hz_central_carve(run, class_id, home)) {
    if (entered) hz6_route_close(run, class_id);
    hz_arena_give(run);
    return 0;
  }
  hz_count(HZ_COUNT_runs_carved, 1);
  return hz_central_take_new(run, out, want);
}

static uint32_t take(unsigned class_id, unsigned home, void **out, uint32_t want) {
  struct hz_run *last;
  uint32_t got = hz_central_take(class_id, home, out, want, &last);
  if (got == 0) got = take_over(other_homes(home, true), home, class_id, out, want);
  if (got == 0) got = open_run(class_id, home, out, want);
  if (got == 0) got = take_over(other_homes(home, false), home, class_id, out, want);
  return got;
}

uint32_t hz6_source_take(unsigned class_id, unsigned home, struct hz6_item *out, uint32_t want) {
  void *blocks[HZ6_MAX_FRONT_BLOCKS];
  HZ_ASSERT(want <= HZ6_MAX_FRONT_BLOCKS);
  const uint32_t got = take(class_id, home, blocks, want);
  for (uint32_t i = 0; i < got; i++)
    out[i] = (struct hz6_item){blocks[i], hz6_route_mark(blocks[i])};
  return got;
}

static void give(unsigned class_id, void *const *blocks, uint32_t count) {
  static const char when[] = "two threads at once, or found when a cache was emptied";
  struct hz_run *empty = hz_central_give(class_id, blocks, count, when);
  for (struct hz_run *run = empty; run != NULL; run = run->next) {
    HZ_ASSERT(hz6_route_check(run) == NULL);
    hz6_route_close(run, class_id);
  }
  hz_central_release(empty);
}

void hz6_source_give(unsigned class_id, const struct hz6_item *items, uint32_t count) {
  void *blocks[HZ6_MAX_FRONT_BLOCKS];
  HZ_ASSERT(count <= HZ6_MAX_FRONT_BLOCKS);
  for (uint32_t i = 0; i < count; i++) blocks[i] = items[i].block;
  give(class_id, blocks, count);
}
