// The options of hz6 as numbers. Written by configuration before the line starts, constant then.
#ifndef HZ_LINES_HZ6_OPTIONS_H
#define HZ_LINES_HZ6_OPTIONS_H

#include "core/base.h"
#include "lines/catalog.h"

struct hz6_options {
  uint64_t front_blocks, front_bytes;
  uint64_t refill_blocks;
  uint64_t transfer_bytes;
  uint64_t scavenge_bytes;
  uint64_t spread_bytes;
  uint64_t per_cpu;
  uint64_t owners;
  uint64_t growth_room;
};
extern struct hz6_options hz6_options;
extern const struct hz_line_info hz6_info;

enum {
  HZ6_MAX_FRONT_BLOCKS = 128,
  HZ6_SPREAD_BYTES = 64, // unless a profile says otherwise
};

#endif
