// Medians, and how far to trust them.
//
// The range of a few rounds says little of how far their median may be off, and the less, the fewer
// they are: three equal runs have ranges that do not meet one time in ten. The factors below make
// up for it. They were found by simulation of normally distributed figures, so that the intervals
// of two samples of the same figure miss each other one time in a hundred; against a constant
// (hz_summary_compare_to) the same interval errs about one time in fourteen.
// tests/unit/bench_sample_test.c repeats the simulation.
#include "tools/bench/sample.h"

#include <math.h>
#include <stdlib.h>

// Half the interval's width in ranges (greatest - least), from this number of rounds on.
static const struct {
  size_t rounds;
  double ranges;
} widths[] = {{100, 0.046}, {50, 0.073}, {30, 0.104}, {20, 0.139}, {18, 0.15}, {16, 0.165},
              {15, 0.178},  {14, 0.184}, {12, 0.206}, {10, 0.24},  {9, 0.27},  {8, 0.29},
              {7, 0.35},    {6, 0.39},   {5, 0.50},   {4, 0.65},   {3, 1.1},   {2, 4.0}};

static double width_in_ranges(size_t rounds) {
  for (size_t i = 0; i < hz_count_of(widths); i++)
    if (rounds >= widths[i].rounds) return widths[i].ranges;
  return INFINITY;
}

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

struct hz_summary hz_summarize(const struct hz_sample *sample) {
  size_t n = sample->count;
  if (n == 0) return (struct hz_summary){0};
  double sorted[HZ_ROUNDS_MOST];
  for (size_t i = 0; i < n; i++) sorted[i] = sample->values[i];
  qsort(sorted, n, sizeof *sorted, compare_numbers);
  struct hz_summary summary = {.count = n, .least = sorted[0], .greatest = sorted[n - 1]};
  summary.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  summary.spread = n == 1 ? INFINITY : (summary.greatest - summary.least) * width_in_ranges(n);
  return summary;
}

struct hz_sample hz_ratios(const struct hz_sample *a, const struct hz_sample *b) {
  struct hz_sample ratios = {.count = 0};
  for (size_t i = 0; i < hz_min(a->count, b->count); i++)
    if (b->values[i] != 0) ratios.values[ratios.count++] = a->values[i] / b->values[i];
  return ratios;
}

int hz_summary_compare(const struct hz_summary *a, const struct hz_summary *b) {
  if (a->count == 0 || b->count == 0) return 0;
  double noise = a->spread + b->spread, difference = a->median - b->median;
  return (difference > noise) - (difference < -noise);
}

int hz_summary_compare_to(const struct hz_summary *a, double constant) {
  struct hz_summary exact = {
      .count = 1, .median = constant, .least = constant, .greatest = constant};
  return hz_summary_compare(a, &exact);
}
