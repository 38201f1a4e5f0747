// The options of hz5 as numbers. Written by configuration before the line starts, constant then.
#ifndef HZ_LINES_HZ5_OPTIONS_H
#define HZ_LINES_HZ5_OPTIONS_H

#include "core/base.h"
#include "lines/catalog.h"

struct hz5_options {
  uint64_t block_bytes;
};
extern struct hz5_options hz5_options;
extern const struct hz_line_info hz5_info;

#endif
