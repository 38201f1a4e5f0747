// The options of hz4 as numbers. Written by configuration before the line starts, constant then.
#ifndef HZ_LINES_HZ4_OPTIONS_H
#define HZ_LINES_HZ4_OPTIONS_H

#include "core/base.h"
#include "lines/catalog.h"

struct hz4_options {
  uint64_t magazine_blocks, magazine_bytes;
  uint64_t refill_blocks;
  uint64_t packet_blocks, packets_bytes;
  uint64_t queue_bytes;
  uint64_t verify;
};
extern struct hz4_options hz4_options;
extern const struct hz_line_info hz4_info;

enum { HZ4_MAGAZINE_BLOCKS = 256 };

#endif
