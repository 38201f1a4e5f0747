// The figures of several rounds, and when two of them differ: the one place that decides what is
// noise. Pure.
#ifndef HZ_TOOLS_BENCH_SAMPLE_H
#define HZ_TOOLS_BENCH_SAMPLE_H

#include "core/base.h"

enum { HZ_ROUNDS_MOST = 100 };

// One figure of one allocator in one lane; values[i] is that of the round i.
struct hz_sample {
  size_t count;
  double values[HZ_ROUNDS_MOST];
};

// Appends a value, as far as there is room.
void hz_sample_append(struct hz_sample *sample, double value);

// spread: half the width of the interval median - spread .. median + spread. Two samples of equal,
// normally distributed figures have intervals that do not meet about once in a hundred times; see
// sample.c for the factor by number of rounds. INFINITY after a single round: nothing is known.
struct hz_summary {
  size_t count; // 0: nothing was measured, and the other fields are 0
  double median, least, greatest, spread;
};

struct hz_summary hz_summarize(const struct hz_sample *sample);

// The figures of `a` divided by those of `b`, round by round, as far as both have rounds: two
// figures of one round were taken within moments of each other, so that what the machine does
// between rounds cancels out. Rounds in which b is 0 are left out.
struct hz_sample hz_ratios(const struct hz_sample *a, const struct hz_sample *b);

// Figures that differ by a smaller share are the same: a page more, code that has moved by a cache line.
#define HZ_RATIO_RESOLUTION 0.01

// Summarizes these ratios. Here the interval stands alone, and is wider for it: it misses the true
// ratio about one time in fifty; see sample.c. It is never narrower than that share of the
// ratio.
struct hz_summary hz_summarize_ratio(const struct hz_sample *a, const struct hz_sample *b);

// < 0: a is less than b beyond both spreads; > 0: it is greater; 0: no difference beyond noise.
int hz_summary_compare(const struct hz_summary *a, const struct hz_summary *b);

// The same for a ratio (hz_summarize_ratio) against a constant.
int hz_summary_compare_to(const struct hz_summary *a, double constant);

#endif
