// Medians, and how far to trust them.
//
// The range of a few rounds says little of how far their median may be off, and the less, the fewer
// they are: three equal runs have ranges that do not meet one time in ten. The factors below make
// up for it. They were found by simulation of normally distributed figures: `of_two` so that the
// intervals of two samples of the same figure miss each other one time in a hundred, `alone` so
// that an interval misses the true median one time in fifty. tests/unit/bench_sample_test.c repeats
// the simulation.
#include "tools/bench/sample.h"

#include <math.h>
#include <stdlib.h>

// Half the interval's width in ranges (greatest - least), from this number of rounds on.
struct width {
  size_t rounds;
  double of_two, alone;
};
static const struct width widths[] = {
    {100, 0.046, 0.06}, {50, 0.073, 0.095}, {30, 0.104, 0.136},     {20, 0.139, 0.183},
    {18, 0.15, 0.2},    {16, 0.165, 0.219}, {15, 0.178, 0.231},     {14, 0.184, 0.243},
    {12, 0.206, 0.276}, {10, 0.24, 0.325},  {9, 0.27, 0.372},       {8, 0.29, 0.403},
    {7, 0.35, 0.482},   {6, 0.39, 0.557},   {5, 0.50, 0.735},       {4, 0.65, 1.04},
    {3, 1.1, 2.11},     {2, 4.0, 15.8},     {0, INFINITY, INFINITY}};

static const struct width *width_for(size_t rounds) {
  const struct width *width = widths;
  while (rounds < width->rounds) width++;
  return width;
}

void hz_sample_append(struct hz_sample *sample, double value) {
  if (sample->count < HZ_ROUNDS_MOST) sample->values[sample->count++] = value;
}

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The range of one round is 0 wide, which is not known to be nothing.
static struct hz_summary summarize(const struct hz_sample *sample, bool alone) {
  size_t n = sample->count;
  if (n == 0) return (struct hz_summary){0};
  double sorted[HZ_ROUNDS_MOST];
  for (size_t i = 0; i < n; i++) sorted[i] = sample->values[i];
  qsort(sorted, n, sizeof *sorted, compare_numbers);
  struct hz_summary summary = {.count = n, .least = sorted[0], .greatest = sorted[n - 1]};
  const struct width *width = width_for(n);
  double range = summary.greatest - summary.least;
  summary.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  summary.spread = n == 1 ? INFINITY : range * (alone ? width->alone : width->of_two);
  return summary;
}

struct hz_summary hz_summarize(const struct hz_sample *sample) {
  return summarize(sample, false);
}

struct hz_summary hz_summarize_ratio(const struct hz_sample *a, const struct hz_sample *b) {
  struct hz_sample ratios = hz_ratios(a, b);
  struct hz_summary summary = summarize(&ratios, true);
  double least = HZ_RATIO_RESOLUTION * fabs(summary.median);
  if (summary.spread < least) summary.spread = least;
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
