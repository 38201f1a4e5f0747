// Rounding. Three digits are what a benchmark on a shared machine can support; more would look like
// precision.
#include "tools/bench/quantity.h"

#include <math.h>
#include <string.h>
#include <stdlib.h>

#include "tools/print.h"

// The decimals that leave three digits. The limits are those at which rounding adds a digit.
static int places_of(double size) {
  if (size >= 99.95) return 0;
  if (size >= 9.995) return 1;
  if (size >= 0.9995) return 2;
  return size >= 0.09995 ? 3 : 4;
}

static struct hz_words with_places(double value, int places) {
  struct hz_words words;
  hz_format(words.text, sizeof words.text, "%.*f", places, value);
  return words;
}

// Whole thousands apart. size: below a million.
static struct hz_words thousands(double value) {
  struct hz_words words;
  long whole = lround(value);
  hz_format(words.text, sizeof words.text, "%ld,%03ld", whole / 1000, labs(whole % 1000));
  return words;
}

static struct hz_words with_prefix(double value, const char *prefix) {
  struct hz_words words;
  hz_format(words.text, sizeof words.text, "%.*f%s", places_of(fabs(value)), value, prefix);
  return words;
}

struct hz_words hz_quantity(double value) {
  double size = fabs(value);
  if (size >= 1e9 - 5e5) return with_prefix(value / 1e9, "G");
  if (size >= 1e6 - 0.5) return with_prefix(value / 1e6, "M");
  if (size >= 999.5) return thousands(value);
  if (value == 0) return with_places(0, 0);
  if (size >= 0.0099995) return with_places(value, places_of(size));
  struct hz_words words;
  hz_format(words.text, sizeof words.text, "%.3g", value);
  return words;
}

// Memory of a process is known to a page or two: fewer places than hz_quantity gives.
struct hz_words hz_mib(double kib) {
  double mib = kib / 1024, size = fabs(mib);
  if (size >= 99.95) return hz_quantity(mib);
  return with_places(mib, size >= 0.995 || mib == 0 ? 1 : 2);
}

static bool is_memory(enum hz_figure figure) {
  return strcmp(hz_figure_kinds[figure].unit, "KiB") == 0;
}

struct hz_words hz_figure_words(enum hz_figure figure, double value) {
  return is_memory(figure) ? hz_mib(value) : hz_quantity(value);
}

const char *hz_figure_unit(enum hz_figure figure, const struct hz_lane_result *lane) {
  if (figure == HZ_SPEED) return lane->unit;
  if (is_memory(figure)) return "MiB";
  return figure == HZ_USER || figure == HZ_SYSTEM ? "s" : "";
}

struct hz_words hz_percent(const struct hz_summary *summary, const char *gap) {
  struct hz_words words = {.text = ""};
  if (summary->count == 0 || !isfinite(summary->spread) || summary->median == 0) return words;
  double per_cent = summary->spread / fabs(summary->median) * 100;
  hz_format(words.text, sizeof words.text, "±%.0f%s%%", per_cent, gap);
  return words;
}

// Near 1 the third decimal is what tells a small difference from none.
static int ratio_places(double ratio) {
  double size = fabs(ratio);
  if (size >= 99.5) return 0;
  if (size >= 9.95) return 1;
  return size < 0.0995 || fabs(size - 1) < 0.02 ? 3 : 2;
}

struct hz_words hz_ratio_median(const struct hz_summary *ratio) {
  return with_places(ratio->median, ratio_places(ratio->median));
}

struct hz_words hz_ratio_spread(const struct hz_summary *ratio) {
  struct hz_words words = {.text = ""};
  if (ratio->count == 0 || !isfinite(ratio->spread)) return words;
  hz_format(words.text, sizeof words.text, "±%.*f", ratio_places(ratio->median), ratio->spread);
  return words;
}
