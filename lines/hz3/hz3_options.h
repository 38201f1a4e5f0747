// The options of hz3 as numbers. Written by configuration before the line starts, constant then.
#ifndef HZ_LINES_HZ3_OPTIONS_H
#define HZ_LINES_HZ3_OPTIONS_H

#include "core/base.h"
#include "lines/catalog.h"

struct hz3_options {
  uint64_t shards;
  uint64_t magazine_blocks, magazine_bytes;
  uint64_t refill_blocks;
  uint64_t packet_blocks;
  uint64_t stash_slots;
  uint64_t stash_bytes;
  uint64_t depot_bytes;
  uint64_t verify;
};
extern struct hz3_options hz3_options;
extern const struct hz_line_info hz3_info;

enum { HZ3_MAX_SHARDS = 64, HZ3_MAX_STASH_SLOTS = 128 };

#endif
