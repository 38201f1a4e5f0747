// Rows that say everything once; what follows from them by rule (the threads, the share of remote
// frees, the touched twin of each lane) is filled in here.
#include "tools/bench/lanes.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/result.h"
#include "tools/print.h"
#include "tools/text.h"

// The ranges of sizes of the `remote` lanes, in bytes.
static const struct {
  const char *name;
  unsigned min, max;
} sizes[] = {
    {"guard", 16, 2048},    {"main", 16, 32768},      {"mid", 2049, 32768},
    {"cross64", 16, 65536}, {"cross128", 16, 131072}, {"large128", 65537, 131072},
};

static const unsigned remote_shares[] = {0, 50, 90};

// Each of these comes twice: with blocks that nobody writes to, and with the first 64 bytes of each
// block written and verified.
static const struct {
  const char *name, *group, *about, *command;
} twins[] = {
    {"larson_t2", "larson", "blocks handed to successor threads, 2 at a time",
     "larson seconds=%s threads=2 min=16 max=1024 blocks=1000"},
    {"larson_t8", "larson", "blocks handed to successor threads, 8 at a time",
     "larson seconds=%s threads=8 min=16 max=1024 blocks=1000"},
    {"pipeline_t2", "producer and consumer", "1 thread allocates, 1 frees",
     "pipeline seconds=%s pairs=1 min=16 max=1024 ring=4096"},
    {"pipeline_t16", "producer and consumer", "8 threads allocate, 8 free",
     "pipeline seconds=%s pairs=8 min=16 max=1024 ring=4096"},
    {"pipeline64_t2", "producer and consumer", "the same with 64 bytes, 2 threads",
     "pipeline seconds=%s pairs=1 min=64 max=64 ring=4096"},
    {"pipeline64_t16", "producer and consumer", "the same with 64 bytes, 16 threads",
     "pipeline seconds=%s pairs=8 min=64 max=64 ring=4096"},
    {"churn", "threads that come and go", "each allocates 100 blocks and leaves some behind",
     "churn seconds=%s threads=4 blocks=100 min=16 max=2048"},
    {"random_small", "one thread", "random slots, 16 to 2048 bytes",
     "random_mixed seconds=%s ws=400 min=16 max=2048"},
    {"random_medium", "one thread", "random slots, 4 to 32 KiB",
     "random_mixed seconds=%s ws=400 min=4096 max=32768"},
    {"random_mixed", "one thread", "random slots, 16 bytes to 32 KiB",
     "random_mixed seconds=%s ws=400 min=16 max=32768"},
    {"random_app", "one thread", "random slots, small ones most of the time",
     "random_mixed seconds=%s ws=400 min=16 max=32768 dist=app"},
    {"aligned", "one thread", "aligned_alloc, 16 bytes to 64 KiB",
     "aligned seconds=%s ws=400 min=16 max=4096"},
};

// What a lane of each kind is measured in.
static const struct {
  const char *unit;
  bool more_is_better;
} units[] = {
    [HZ_LANE_PROGRAM] = {"Mops/s", true},
    [HZ_LANE_COMMAND] = {"s", false},
    [HZ_LANE_SERVICE] = {"kreq/s", true},
    [HZ_LANE_INSTRUCTIONS] = {"instructions", false},
};

// Lanes that write to every block by their nature, real programs, and counted instructions.
static const struct single {
  const char *name, *group, *about, *command, *input;
  enum hz_lane_kind kind;
  unsigned rest_ms;
} singles[] = {
    {.name = "grow",
     .group = "one thread",
     .about = "realloc, step by step to 1 MiB",
     .command = "grow seconds=%s ws=16 min=16 max=1048576"},
    {.name = "zeroed",
     .group = "one thread",
     .about = "calloc, verified, written to",
     .command = "zeroed seconds=%s min=16 max=32768"},
    {.name = "redislike",
     .group = "services",
     .about = "SET, GET, LPUSH, LPOP and a mix of strings, 4 threads",
     .command = "redislike seconds=%s threads=4"},
    {.name = "plateau",
     .group = "services",
     .about = "64 MiB allocated, 98 of 100 blocks freed, then rest",
     .command = "plateau seconds=%s mib=64 min=16 max=32768 keep=2",
     .rest_ms = 3000},
    {.name = "redis",
     .group = "real programs",
     .about = "redis-server under redis-benchmark",
     .command = "bench/real/redis.sh %s",
     .kind = HZ_LANE_SERVICE},
    {.name = "memcached",
     .group = "real programs",
     .about = "memcached under load",
     .command = "bench/real/memcached.sh %s",
     .kind = HZ_LANE_SERVICE},
    {.name = "python",
     .group = "real programs",
     .about = "python3, its own pools above malloc",
     .command = "PYTHONHASHSEED=0 PYTHONMALLOC= /usr/bin/python3 -S bench/real/work.py 1",
     .kind = HZ_LANE_COMMAND},
    {.name = "python_malloc",
     .group = "real programs",
     .about = "python3, every object from malloc",
     .command = "PYTHONHASHSEED=0 PYTHONMALLOC=malloc /usr/bin/python3 -S "
                "bench/real/work.py 1",
     .kind = HZ_LANE_COMMAND},
    {.name = "sqlite",
     .group = "real programs",
     .about = "sqlite3, tables in memory",
     .command = "sqlite3 -batch :memory:",
     .input = "bench/real/work.sql",
     .kind = HZ_LANE_COMMAND},
    {.name = "gcc",
     .group = "real programs",
     .about = "g++ -O1 of a file full of templates",
     .command = "g++ -std=c++17 -O1 -c -o /dev/null bench/real/work.cc",
     .kind = HZ_LANE_COMMAND},
    {.name = "pair_64",
     .group = "instructions",
     .about = "malloc and free, 64 bytes, one live block",
     .command = "pair loop=single",
     .kind = HZ_LANE_INSTRUCTIONS},
    {.name = "pair_1024",
     .group = "instructions",
     .about = "100 blocks of 16 to 1024 bytes, then 100 frees",
     .command = "pair loop=batch",
     .kind = HZ_LANE_INSTRUCTIONS},
    {.name = "pair_32768",
     .group = "instructions",
     .about = "400 slots, 16 to 32768 bytes",
     .command = "pair loop=slots",
     .kind = HZ_LANE_INSTRUCTIONS},
    {.name = "pair_remote",
     .group = "instructions",
     .about = "100 blocks of 16 to 1024 bytes, freed by another thread",
     .command = "pair loop=remote",
     .kind = HZ_LANE_INSTRUCTIONS},
};

static struct hz_lane lanes[HZ_LANES_MOST];
static size_t lane_count;

// Appends a lane of the program kind; the caller changes what differs.
static struct hz_lane *add(const char *name, const char *group, const char *about,
                           const char *command) {
  struct hz_lane *lane = &lanes[lane_count++];
  *lane = (struct hz_lane){.group = group, .about = about, .kind = HZ_LANE_PROGRAM};
  hz_format(lane->name, sizeof lane->name, "%s", name);
  hz_format(lane->command, sizeof lane->command, "%s", command);
  return lane;
}

// A lane whose blocks nobody writes to is also run with blocks that are written and read back: an
// allocator that hands out memory twice, or that profits from blocks being left alone, shows there.
static void add_with_twin(const char *name, const char *group, const char *about,
                          const char *command) {
  add(name, group, about, command);
  struct hz_lane *twin = add(name, group, hz_text("%s, touched", about), command);
  hz_format(twin->name, sizeof twin->name, "%s_touch", name);
  hz_format(twin->command, sizeof twin->command, "%s touch=64", command);
}

static void add_remote(size_t size, unsigned threads, unsigned share) {
  char name[40], command[200];
  bool crowded = threads == 16; // the paper's lanes have rings of 65536 entries
  hz_format(name, sizeof name, "t%u_%s_r%u", threads, sizes[size].name, share);
  hz_format(command, sizeof command,
            "remote seconds=%%s threads=%u ws=400 min=%u max=%u remote=%u ring=%u", threads,
            sizes[size].min, sizes[size].max, share, crowded ? 65536U : 4096U);
  add_with_twin(name, crowded ? "16 threads" : "2 threads",
                hz_text("%u to %u bytes, %u of 100 frees by the next thread", sizes[size].min,
                        sizes[size].max, share),
                command);
}

static void add_all_remote(unsigned threads) {
  for (size_t size = 0; size < hz_count_of(sizes); size++)
    for (size_t r = 0; r < hz_count_of(remote_shares); r++)
      add_remote(size, threads, remote_shares[r]);
}

static void add_single(const struct single *row) {
  struct hz_lane *lane = add(row->name, row->group, row->about, row->command);
  lane->kind = row->kind;
  lane->input = row->input;
  lane->rest_ms = row->rest_ms;
}

const struct hz_lane *hz_lanes(size_t *count) {
  if (lane_count == 0) {
    add_all_remote(16);
    add_all_remote(2);
    for (size_t i = 0; i < hz_count_of(twins); i++)
      add_with_twin(twins[i].name, twins[i].group, twins[i].about, twins[i].command);
    for (size_t i = 0; i < hz_count_of(singles); i++) add_single(&singles[i]);
    for (size_t i = 0; i < lane_count; i++) {
      lanes[i].unit = units[lanes[i].kind].unit;
      lanes[i].more_is_better = units[lanes[i].kind].more_is_better;
    }
  }
  *count = lane_count;
  return lanes;
}
