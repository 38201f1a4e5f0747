// Options and profiles of hz6: data only.
#include "lines/hz6/hz6_options.h"

struct hz6_options hz6_options;

#define ROW(field, type, unit, value, min, max, help)                                              \
  { "hz6", #field, type, unit, value, min, max, NULL, &hz6_options.field, help }

static const struct hz_option options[] = {
    ROW(front_blocks, HZ_OPTION_COUNT, "blocks", 64, 4, HZ6_MAX_FRONT_BLOCKS,
        "Most free blocks of one size class in a front cache, and in a magazine that changes "
        "threads."),
    ROW(front_bytes, HZ_OPTION_BYTES, "bytes", HZ_MIB, 4 * HZ_KIB, 64 * HZ_MIB,
        "Most bytes of one size class in a front cache (but never under four blocks)."),
    ROW(refill_blocks, HZ_OPTION_COUNT, "blocks", 32, 1, HZ6_MAX_FRONT_BLOCKS,
        "Blocks that an empty front cache takes from the runs at once."),
    ROW(transfer_bytes, HZ_OPTION_BYTES, "bytes", 64 * HZ_MIB, 0, 64 * HZ_GIB,
        "Most bytes of one size class that wait in magazines between threads; 0: none do."),
    ROW(scavenge_bytes, HZ_OPTION_BYTES, "bytes", 4 * HZ_MIB, 64 * HZ_KIB, HZ_GIB,
        "Most bytes of waiting magazines that one slow path moves down to the runs."),
    ROW(spread_bytes, HZ_OPTION_BYTES, "bytes", HZ6_SPREAD_BYTES, 64, 64 * HZ_KIB,
        "A block's records take a byte per so many bytes of it, at most 64; the closer they lie, "
        "the "
        "less memory they take, and the more do threads disturb each other."),
    ROW(per_cpu, HZ_OPTION_BOOL, "", 0, 0, 1,
        "A front cache per processor instead of per thread, if the C library registers "
        "restartable sequences."),
    ROW(owners, HZ_OPTION_BOOL, "", 0, 0, 1,
        "Blocks that another thread frees go back to the runs that they were taken from, and each "
        "free asks the run's descriptor. Nothing waits between threads then, and caches are "
        "threads'."),
    ROW(growth_room, HZ_OPTION_BOOL, "", 0, 0, 1,
        "Blocks that realloc grows are made larger than asked for, and so are blocks of 4 and 8 "
        "KiB while such blocks are grown."),
};

#define END                                                                                        \
  { NULL, NULL, 0 }

// Blocks above 64 KiB pass between threads as the others do.
#define SELECTED                                                                                   \
  {"cache", "run_batch", 8}, {                                                                     \
    "cache", "run_transfer", 1024                                                                  \
  }
static const struct hz_setting selected[] = {SELECTED, END};
static const struct hz_setting speed[] = {
    SELECTED,
    {"hz6", "front_blocks", 128},
    {"hz6", "front_bytes", 2 * HZ_MIB},
    {"hz6", "refill_blocks", 64},
    {"purge", "idle_ms", 10000},
    END,
};
#define REMOTE                                                                                     \
  {"hz6", "transfer_bytes", 256 * HZ_MIB}, {"cache", "run_batch", 16}, {                           \
    "cache", "run_transfer", 4096                                                                  \
  }
static const struct hz_setting remote[] = {REMOTE, END};
static const struct hz_setting percpu[] = {
    {"hz6", "per_cpu", 1},
    {"hz6", "spread_bytes", 64 * HZ_KIB},
    REMOTE,
    END,
};
static const struct hz_setting rss[] = {
    {"hz6", "front_blocks", 16},          {"hz6", "front_bytes", 32 * HZ_KIB},
    {"hz6", "refill_blocks", 8},          {"hz6", "transfer_bytes", 256 * HZ_KIB},
    {"hz6", "spread_bytes", 64 * HZ_KIB}, {"purge", "idle_ms", 50},
    {"cache", "run_bytes", 256 * HZ_KIB}, {"cache", "run_transfer", 64},
    {"cache", "large_bytes", 0},          END,
};
static const struct hz_setting strict[] = {
    {"hz6", "owners", 1},
    END,
};
static const struct hz_setting realloc_boundary[] = {{"hz6", "growth_room", 1}, END};

// What each gives is measured by bench/traits.sh.
static const struct hz_profile profiles[] = {
    {"hz6", "for threads that allocate and free for each other in all directions",
     "A free block belongs to nobody: it stays with the thread that freed it, or goes on in a "
     "magazine to the next that needs one. A double free is refused at once.",
     selected},
    {"hz6-speed", "the same, with the fewest slow paths",
     "Magazines of twice the blocks, slow purging: most idle memory of this line.", speed},
    {"hz6-remote", "the same where nearly all blocks change threads",
     "Four times as much may wait between the threads.", remote},
    {"hz6-percpu", "the same with many more threads than processors",
     "Front caches of processors, not of threads: memory does not grow with the threads; a few "
     "instructions more per call.",
     percpu},
    {"hz6-rss", "the same in small containers",
     "Small magazines, little between the threads, early purging: lower peaks, more slow paths.",
     rss},
    {"hz6-strict", "for programs under suspicion",
     "Each free asks the descriptor, and another thread's block goes back to its run: bad frees "
     "are found with the most knowledge, calls take longer.",
     strict},
    {"hz6-realloc-boundary", "for buffers that grow step by step",
     "What realloc grows gets room for its next growths: a third of the copies, up to two thirds "
     "of a block unused.",
     realloc_boundary},
};

const struct hz_line_info hz6_info = {
    .name = "hz6",
    .title = "contract-first",
    .summary = "Free blocks belong to nobody and pass between threads in whole magazines; a byte "
               "per place refuses double and foreign frees at once.",
    .options = options,
    .option_count = hz_count_of(options),
    .profiles = profiles,
    .profile_count = hz_count_of(profiles),
};
