// Figures as words: three digits that count, thousands apart, spreads beside medians. The same in
// the terminal, in Markdown and in HTML. UTF-8.
#ifndef HZ_TOOLS_BENCH_QUANTITY_H
#define HZ_TOOLS_BENCH_QUANTITY_H

#include "tools/bench/result.h"

// By value, so that a call can stand among printf's arguments: hz_quantity(x).text.
struct hz_words {
  char text[48];
};

// "0.0412", "9.83", "89.3", "893", "12,345", "1.23M"
struct hz_words hz_quantity(double value);

// KiB in, MiB out: "0.05", "9.8", "1,203".
struct hz_words hz_mib(double kib);

// hz_mib for the figures of memory, else hz_quantity.
struct hz_words hz_figure_words(enum hz_figure figure, double value);

// The unit that hz_figure_words counts in: "MiB", "s", ""; of HZ_SPEED: the lane's.
const char *hz_figure_unit(enum hz_figure figure, const struct hz_lane_result *lane);

// "±2%", with `gap` before the sign of per cent. "" where the spread is not known.
struct hz_words hz_percent(const struct hz_summary *summary, const char *gap);

// "2.08" and "±0.05", with as many places as the ratio needs. Spread: "" where it is not known.
struct hz_words hz_ratio_median(const struct hz_summary *ratio);
struct hz_words hz_ratio_spread(const struct hz_summary *ratio);

#endif
