// Counters of slow paths: always kept, never touched by a hot path.
//
// One row per counter: name, unit, meaning. The report, the JSON names and the README's table come
// from this list. Counts are relaxed atomic adds into one of a few stripes, chosen by thread.
#ifndef HZ_CORE_COUNTER_H
#define HZ_CORE_COUNTER_H

#include "core/base.h"

#define HZ_COUNTERS(X)                                                                             \
  X(refills, "calls", "times a thread's magazine was empty and was filled again")                  \
  X(overflows, "calls", "times a thread's magazine was full and was exchanged")                    \
  X(remote_frees, "blocks", "blocks handed back to the thread group that owns them")               \
  X(remote_batches, "packets", "packets that carried those blocks")                                \
  X(collected, "packets", "packets that their owners took in")                                     \
  X(stolen, "packets", "packets left to an owner that had ended, taken in by another")             \
  X(taken_over, "runs", "runs of slabs taken over that another thread had left")                   \
  X(transfers, "magazines", "full magazines that the transfer cache handed to whoever needed one") \
  X(scavenged, "bytes", "blocks that waited between threads unneeded and went down to the runs")   \
  X(runs_carved, "runs", "runs of slabs cut into blocks")                                          \
  X(runs_returned, "runs", "runs whose blocks were all free and that went back to the arena")      \
  X(run_blocks, "calls", "times blocks of 64 KiB to 4 MiB were fetched from the arena")            \
  X(large_maps, "calls", "blocks above 4 MiB that were newly mapped")                              \
  X(large_reuses, "calls", "blocks above 4 MiB served from the cache")                             \
  X(large_moves, "calls", "blocks above 4 MiB grown by moving pages, not bytes")                   \
  X(committed, "bytes", "address space made usable")                                               \
  X(purged, "bytes", "memory given back to the kernel")                                            \
  X(purge_calls, "calls", "system calls that gave memory back")                                    \
  X(os_failures, "calls", "requests for memory that the kernel refused")                           \
  X(threads_started, "threads", "threads that allocated or freed at least once")                   \
  X(threads_ended, "threads", "of those, threads that have ended")                                 \
  X(adopted, "threads", "caches of vanished threads (after fork) taken over")                      \
  X(trims, "calls", "calls of malloc_trim")                                                        \
  X(misuse_foreign, "calls", "frees of something that was never ours")                             \
  X(misuse_interior, "calls", "frees of the inside of a block")                                    \
  X(misuse_double, "calls", "frees of a block that was free already")

enum hz_counter {
#define HZ_COUNTER_ID(name, unit, meaning) HZ_COUNT_##name,
  HZ_COUNTERS(HZ_COUNTER_ID)
#undef HZ_COUNTER_ID
      HZ_COUNTER_COUNT
};

struct hz_counter_row {
  const char *name, *unit, *meaning;
};
extern const struct hz_counter_row hz_counter_rows[HZ_COUNTER_COUNT];

// Adds n to a counter. Any thread.
void hz_count(enum hz_counter counter, uint64_t n);

// The sum over all threads since start (or since fork, in a child).
uint64_t hz_counter_read(enum hz_counter counter);

// All counters to 0: a forked child reports as itself. Only while no other thread runs.
void hz_counters_reset(void);

#endif
