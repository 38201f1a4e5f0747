// From options to figures: see lines/hz6/hz6_policy.h.
#include "lines/hz6/hz6_policy.h"

#include "core/central.h"
#include "lines/hz6/hz6_options.h"

struct hz6_policy hz6_policy;

static size_t clamp(size_t value, size_t low, size_t high) {
  return hz_min(hz_max(value, low), high);
}

// At most a cache line: more would change nothing.
static uint32_t spread_of(size_t bytes) {
  const size_t marks = hz_min(bytes / hz6_options.spread_bytes, HZ_CACHE_LINE);
  return marks <= 1 ? 1 : 1u << hz_log2_floor(marks);
}

void hz6_policy_start(void) {
  const struct hz6_options *o = &hz6_options;
  hz6_policy = (struct hz6_policy){
      .per_cpu = o->per_cpu && !o->owners,
      .owners = o->owners,
      .growth_room = o->growth_room,
      .homes = o->owners ? HZ_HOMES : 1,
      .scavenge_bytes = o->scavenge_bytes,
  };
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    // Four at least: with fewer, every other call of a large class would be a slow one.
    const size_t capacity = clamp(o->front_bytes / bytes, 4, o->front_blocks);
    hz6_policy.of[c].capacity = (uint16_t)capacity;
    hz6_policy.of[c].refill = (uint16_t)clamp(o->refill_blocks, 1, capacity);
    hz6_policy.of[c].spread = spread_of(bytes);
    // A magazine that changed threads would bring blocks of another home.
    const size_t transfer = o->owners ? 0 : o->transfer_bytes / (capacity * bytes);
    hz6_policy.of[c].transfer = (uint32_t)clamp(transfer, 0, UINT32_MAX);
  }
}
