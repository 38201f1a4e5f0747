// Options and profiles of hz3: data only.
#include "lines/hz3/hz3_options.h"

struct hz3_options hz3_options;

#define ROW(field, type, unit, value, min, max, help)                                              \
  { "hz3", #field, type, unit, value, min, max, NULL, &hz3_options.field, help }

static const struct hz_option options[] = {
    ROW(shards, HZ_OPTION_COUNT, "shards", 64, 1, HZ3_MAX_SHARDS,
        "Groups of threads that own slabs together; threads beyond this number share."),
    ROW(magazine_blocks, HZ_OPTION_COUNT, "blocks", 64, 4, 1024,
        "Most free blocks of one size class that a thread keeps at hand."),
    ROW(magazine_bytes, HZ_OPTION_BYTES, "bytes", 256 * HZ_KIB, 4 * HZ_KIB, 64 * HZ_MIB,
        "Most bytes of one size class that a thread keeps at hand (but never under four blocks)."),
    ROW(refill_blocks, HZ_OPTION_COUNT, "blocks", 32, 1, 1024,
        "Blocks that an empty magazine takes from the runs at once."),
    ROW(packet_blocks, HZ_OPTION_COUNT, "blocks", 32, 1, 1024,
        "Foreign blocks of one owner and class that a thread collects before it hands them over."),
    ROW(stash_slots, HZ_OPTION_COUNT, "packets", 128, 1, HZ3_MAX_STASH_SLOTS,
        "Packets that a thread fills at the same time, one per owner and class."),
    ROW(stash_bytes, HZ_OPTION_BYTES, "bytes", 4 * HZ_MIB, 0, HZ_GIB,
        "Most bytes of one class that wait for an owner; what comes on top serves all threads."),
    ROW(depot_bytes, HZ_OPTION_BYTES, "bytes", HZ_MIB, 0, HZ_GIB,
        "Most bytes of one class in full magazines that a shard keeps between threads and runs."),
    ROW(verify, HZ_OPTION_BOOL, "", 0, 0, 1,
        "No magazines: every free is checked exactly, in the call that makes it; many times "
        "slower."),
};

#define END                                                                                        \
  { NULL, NULL, 0 }

static const struct hz_setting no_settings[] = {END};

static const struct hz_setting fast[] = {{"hz3", "magazine_blocks", 128},
                                         {"hz3", "refill_blocks", 64},
                                         {"purge", "idle_ms", 10000},
                                         END};
static const struct hz_setting r50[] = {{"hz3", "packet_blocks", 64}, END};
static const struct hz_setting r90[] = {
    {"hz3", "magazine_blocks", 128},
    {"hz3", "refill_blocks", 64},
    {"hz3", "packet_blocks", 128},
    {"hz3", "stash_bytes", 8 * HZ_MIB},
    END,
};
static const struct hz_setting lowmem[] = {
    {"hz3", "magazine_blocks", 16},
    {"hz3", "magazine_bytes", 32 * HZ_KIB},
    {"hz3", "refill_blocks", 8},
    {"hz3", "packet_blocks", 8},
    {"hz3", "stash_slots", 16},
    {"hz3", "stash_bytes", 64 * HZ_KIB},
    {"hz3", "depot_bytes", 0},
    {"purge", "idle_ms", 50},
    {"cache", "run_bytes", 256 * HZ_KIB},
    {"cache", "large_bytes", 0},
    END,
};

// What each gives is measured by bench/traits.sh.
static const struct hz_profile profiles[] = {
    {"hz3", "for programs whose threads free what they allocate",
     "Few instructions per call; memory of a few hundred KiB per busy size class stays at hand.",
     no_settings},
    {"hz3-fast", "for single-threaded work with large swings",
     "Magazines of twice the blocks and slow purging: fewest slow paths, most idle memory.", fast},
    {"hz3-r50", "for about half of the frees by other threads",
     "Packets twice as large: half the hand-overs between threads, more memory under way.", r50},
    {"hz3-r90", "for most frees by other threads",
     "Packets four times as large: fewest hand-overs of this line, most memory under way.", r90},
    {"hz3-lowmem", "for small containers",
     "Small caches, early purging: the lowest memory of this line, more slow paths.", lowmem},
};

const struct hz_line_info hz3_info = {
    .name = "hz3",
    .title = "lookup-first",
    .summary = "A table of page tags answers free() without touching the block's page; fastest for "
               "local work.",
    .options = options,
    .option_count = hz_count_of(options),
    .profiles = profiles,
    .profile_count = hz_count_of(profiles),
};
