// One line on a terminal that says how far a run is and how long it still takes; on anything else,
// nothing.
#ifndef HZ_TOOLS_BENCH_PROGRESS_H
#define HZ_TOOLS_BENCH_PROGRESS_H

#include "core/base.h"

struct hz_progress {
  size_t total, done, rounds;
  double begin_s;
  bool shown;
};

// total: steps to come. On stderr.
void hz_progress_begin(struct hz_progress *progress, size_t total, size_t rounds);

// The next step begins: of that round (from 1), in that lane, under that allocator.
void hz_progress_step(struct hz_progress *progress, size_t round, const char *lane,
                      const char *allocator);

// Takes the line away, so that something else can be printed.
void hz_progress_clear(struct hz_progress *progress);

// Since the beginning.
double hz_progress_seconds(const struct hz_progress *progress);

#endif
