// Options that every line shares: their rows and where their effective values are kept.
#ifndef HZ_CONFIG_OPTIONS_H
#define HZ_CONFIG_OPTIONS_H

#include "config/option.h"

enum hz_stats_mode { HZ_STATS_OFF, HZ_STATS_TEXT, HZ_STATS_JSON };
enum hz_deepbind { HZ_DEEPBIND_STRIP, HZ_DEEPBIND_KEEP };

// Written by hz_config_load before the line starts, read only after that.
struct hz_common {
  uint64_t stats;           // enum hz_stats_mode
  uint64_t on_misuse;       // enum hz_misuse_action (core/misuse.h)
  uint64_t dlopen_deepbind; // enum hz_deepbind
  uint64_t strict;
  uint64_t arena_reserve; // bytes
  uint64_t purge_idle_ms;
  uint64_t cache_run_bytes; // per thread
  uint64_t cache_run_batch;
  uint64_t cache_run_transfer; // per slab count
  uint64_t cache_large_bytes;
  uint64_t stats_exact;
  uint64_t stats_interval_s; // 0: no reports while the process runs
};

extern struct hz_common hz_common;
extern const struct hz_option_group hz_common_options;

#endif
