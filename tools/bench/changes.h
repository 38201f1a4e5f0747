// What differs between two runs of the same lanes, beyond what either of them knows for sure.
#ifndef HZ_TOOLS_BENCH_CHANGES_H
#define HZ_TOOLS_BENCH_CHANGES_H

#include <stdio.h>

#include "tools/bench/result.h"

struct hz_change {
  const struct hz_lane_result *lane; // of the new run
  const char *allocator;
  enum hz_figure figure;
  double before, after; // medians
  double machine;       // what the lane's other allocators were multiplied by; 1: not known
  bool better;
};

struct hz_changes {
  size_t compared, count;
  struct hz_change *rows; // `count` of them; the largest in proportion first
  char *only_one;         // names of lanes and allocators that one run alone has; "" for none
  char *unlike;           // lanes whose commands differ: other parameters, other figures
};

// Compares speed, peak RSS and RSS at rest of every lane and allocator that both runs have.
//
// The machine as a whole may be faster on one day: of each lane's speed, the median change of the
// allocators that are not ours is taken out first, where there are at least three of them, and its
// own spread is added to the noise.
struct hz_changes hz_changes_find(const struct hz_result *before, const struct hz_result *after);
void hz_changes_free(struct hz_changes *changes);

// A line for each change, then how many figures were compared.
void hz_changes_print(const struct hz_changes *changes, FILE *out);

#endif
