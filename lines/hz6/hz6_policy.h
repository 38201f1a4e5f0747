// Policy: what the options mean for each layer, worked out once at start and constant then. A layer
// reads its own figures here and asks no option.
#ifndef HZ_LINES_HZ6_POLICY_H
#define HZ_LINES_HZ6_POLICY_H

#include "core/size_class.h"

struct hz6_policy {
  bool per_cpu;     // front caches of processors
  bool owners;      // blocks go back to the home of their run
  bool growth_room; // what realloc grows gets room
  uint32_t homes;   // that runs may have: 1, nobody's; with owners, HZ_HOMES (core/central.h)
  size_t scavenge_bytes;
  struct {
    uint16_t capacity; // blocks of a magazine
    uint16_t refill;   // blocks that Source is asked for at once
    uint32_t transfer; // magazines that may wait
    // Larger blocks have a row of marks (hz6_route.h), of which the first is theirs: so many. Dense,
    // threads that free different blocks would write to the same cache lines. A power of two that
    // divides the block.
    uint32_t spread;
  } of[HZ_CLASS_COUNT];
};
extern struct hz6_policy hz6_policy;

void hz6_policy_start(void);

#endif
