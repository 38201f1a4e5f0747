// How long a program works: until a deadline or for a number of steps. The clock is read once per
// batch of steps, so that it does not show in the figures.
#ifndef HZ_BENCH_PACE_H
#define HZ_BENCH_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "args.h"
#include "clock.h"

enum { PACE_BATCH = 256 };

// From the command line; constant afterwards.
static struct {
  size_t limit_ns, steps; // steps: per thread; 0: the time counts
} pace_rules;

#define PACE_ARGUMENTS                                                                             \
  {.key = "seconds",                                                                               \
   .value = &pace_rules.limit_ns,                                                                  \
   .usual = 500000000,                                                                             \
   .least = 1000000,                                                                               \
   .most = 3600000000000,                                                                          \
   .seconds = true},                                                                               \
  {                                                                                                \
    .key = "steps", .value = &pace_rules.steps, .most = (size_t)1 << 40                            \
  }

// One worker's.
struct pace {
  uint64_t deadline_ns; // 0: the steps count
  uint64_t left, done;
};

// share: a program of several parts gives each of them 1/share of the time or of the steps.
static inline struct pace pace_begin(uint64_t begin_ns, size_t share) {
  if (pace_rules.steps != 0) return (struct pace){.left = pace_rules.steps / share};
  return (struct pace){.deadline_ns = begin_ns + pace_rules.limit_ns / share};
}

// How many steps to do next, at most `most`; 0: the work is over. A first batch is always done.
static inline size_t pace_next(struct pace *pace, size_t most) {
  size_t batch = most < PACE_BATCH ? most : PACE_BATCH;
  if (pace->deadline_ns == 0) {
    if (batch > pace->left) batch = pace->left;
    pace->left -= batch;
  } else if (pace->done != 0 && now_ns() >= pace->deadline_ns) {
    batch = 0;
  }
  pace->done += batch;
  return batch;
}

#endif
