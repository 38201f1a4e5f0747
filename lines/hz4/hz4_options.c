// Options and profiles of hz4: data only.
#include "lines/hz4/hz4_options.h"

struct hz4_options hz4_options;

#define ROW(field, type, unit, value, min, max, help)                                              \
  { "hz4", #field, type, unit, value, min, max, NULL, &hz4_options.field, help }

static const struct hz_option options[] = {
    ROW(magazine_blocks, HZ_OPTION_COUNT, "blocks", HZ4_MAGAZINE_BLOCKS, 4, HZ4_MAGAZINE_BLOCKS,
        "Most free blocks of one size class that a thread keeps at hand."),
    ROW(magazine_bytes, HZ_OPTION_BYTES, "bytes", 512 * HZ_KIB, 4 * HZ_KIB, 64 * HZ_MIB,
        "Most bytes of one size class that a thread keeps at hand (but never under four blocks)."),
    ROW(refill_blocks, HZ_OPTION_COUNT, "blocks", 32, 1, HZ4_MAGAZINE_BLOCKS,
        "Blocks that an empty magazine takes from the thread's pages at once."),
    ROW(packet_blocks, HZ_OPTION_COUNT, "blocks", HZ4_MAGAZINE_BLOCKS, 1, HZ4_MAGAZINE_BLOCKS,
        "Blocks of one owner that a thread collects before it sends them."),
    ROW(packets_bytes, HZ_OPTION_BYTES, "bytes", 512 * HZ_KIB, 0, HZ_GIB,
        "Bytes of all other owners together that a thread collects before it sends them."),
    ROW(queue_bytes, HZ_OPTION_BYTES, "bytes", 4 * HZ_MIB, 0, HZ_GIB,
        "About how much may wait for an owner; who sends more puts it all back into the pages."),
    ROW(verify, HZ_OPTION_BOOL, "", 0, 0, 1,
        "No magazines: every free is checked exactly, in the call that makes it; many times "
        "slower."),
};

#define END                                                                                        \
  { NULL, NULL, 0 }

static const struct hz_setting no_settings[] = {END};
static const struct hz_setting rss[] = {
    {"hz4", "magazine_blocks", 32},
    {"hz4", "magazine_bytes", 32 * HZ_KIB},
    {"hz4", "refill_blocks", 8},
    {"hz4", "packet_blocks", 32},
    {"hz4", "packets_bytes", 64 * HZ_KIB},
    {"hz4", "queue_bytes", 256 * HZ_KIB},
    {"purge", "idle_ms", 50},
    {"cache", "run_bytes", 256 * HZ_KIB},
    {"cache", "large_bytes", 0},
    END,
};

// What each gives is measured by bench/traits.sh.
static const struct hz_profile profiles[] = {
    {"hz4", "for programs where one thread allocates and another frees",
     "Blocks go back to their owner in packets; memory of a few hundred KiB per busy size class "
     "stays at hand.",
     no_settings},
    {"hz4-rss", "the same in small containers",
     "Small magazines and packets, early purging: lower peaks, more slow paths.", rss},
};

const struct hz_line_info hz4_info = {
    .name = "hz4",
    .title = "remote-free-first",
    .summary = "What other threads free goes back to its owner in packets; no collapse when one "
               "thread allocates and another frees.",
    .options = options,
    .option_count = hz_count_of(options),
    .profiles = profiles,
    .profile_count = hz_count_of(profiles),
};
