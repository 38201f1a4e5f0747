// Options and profiles of hz5: data only.
#include "lines/hz5/hz5_options.h"

struct hz5_options hz5_options;

static const struct hz_option options[] = {
    {"hz5", "block_bytes", HZ_OPTION_BYTES, "bytes", 64 * HZ_KIB, HZ_KIB, 64 * HZ_KIB, NULL,
     &hz5_options.block_bytes,
     "Blocks up to this size share runs, several to a run; larger ones get slabs of 64 KiB each."},
};

#define END                                                                                        \
  { NULL, NULL, 0 }

static const struct hz_setting no_settings[] = {END};
static const struct hz_setting cross128[] = {
    {"cache", "run_batch", 16},
    {"cache", "run_transfer", 4096},
    END,
};
static const struct hz_setting large128_rss[] = {
    {"cache", "run_bytes", 0},
    {"cache", "large_bytes", 0},
    {"purge", "idle_ms", 50},
    END,
};
static const struct hz_setting large128_source16[] = {
    {"cache", "run_batch", 16},
    {"cache", "run_bytes", 8 * HZ_MIB},
    END,
};
static const struct hz_setting large128_transfer128[] = {
    {"cache", "run_batch", 16},
    {"cache", "run_bytes", 8 * HZ_MIB},
    {"cache", "run_transfer", 128},
    END,
};
static const struct hz_setting local2p[] = {
    {"hz5", "block_bytes", 32 * HZ_KIB},
    {"cache", "run_bytes", 128 * HZ_MIB},
    {"cache", "run_batch", 16},
    END,
};

// What each gives is measured by bench/traits.sh.
static const struct hz_profile profiles[] = {
    {"hz5", "for small memory, and for programs that must not get a free wrong",
     "No caches above the bitmaps: every bad free is refused in its call, and memory is as small "
     "as "
     "the blocks in use.",
     no_settings},
    {"hz5-pagerun64-cross128", "the same where blocks up to 128 KiB pass between many threads",
     "Free blocks above 64 KiB wait for whichever thread needs one.", cross128},
    {"hz5-large128-rss", "lowest memory for blocks of 64 KiB to 1 MiB",
     "No thread keeps any: what is free serves all sizes, or leaves within 50 ms.", large128_rss},
    {"hz5-large128-source16", "speed for blocks of 64 KiB to 1 MiB",
     "Threads fetch sixteen at once, and keep twice as much.", large128_source16},
    {"hz5-large128-transfer128", "the same where other threads free them",
     "Besides, up to 128 of each size wait for whichever thread needs one.", large128_transfer128},
    {"hz5-local2p", "buffers of 64 KiB, aligned or not, used again and again",
     "Each is a slab of its own and stays with its thread: memory reaches a plateau and stays "
     "there.",
     local2p},
};

const struct hz_line_info hz5_info = {
    .name = "hz5",
    .title = "ownership-first",
    .summary = "Every free is checked exactly, at once; memory stays as low as the blocks in use.",
    .options = options,
    .option_count = hz_count_of(options),
    .profiles = profiles,
    .profile_count = hz_count_of(profiles),
};
