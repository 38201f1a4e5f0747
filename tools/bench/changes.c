#include "tools/bench/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/print.h"
#include "tools/text.h"

enum { PEERS_FOR_SCALE = 3 };

// Differences below this are not worth a line even where the rounds agree exactly: code that moved
// by a few bytes, a page more of a table.
static const double least_share = 0.02, least_kib = 256;

static int party_of(const struct hz_result *result, const char *name) {
  for (size_t i = 0; i < result->party_count; i++)
    if (strcmp(result->parties[i].name, name) == 0) return (int)i;
  return -1;
}

static struct hz_summary figure_of(const struct hz_lane_result *lane, int party,
                                   enum hz_figure figure) {
  if (party < 0 || lane->cells[party].failure) return (struct hz_summary){0};
  return hz_summarize(&lane->cells[party].figures[figure]);
}

static const struct hz_summary unchanged = {1, 1, 1, 1, 0};

// What happened to the allocators that did not change: the median of their new speed over the old.
static struct hz_summary machine_scale(const struct hz_result *before,
                                       const struct hz_lane_result *old,
                                       const struct hz_result *after,
                                       const struct hz_lane_result *new) {
  struct hz_sample ratios = {.count = 0};
  if (hz_lane_is_exact(new)) return unchanged; // no machine is faster there
  for (size_t i = 0; i < after->party_count; i++) {
    if (after->parties[i].ours) continue;
    struct hz_summary a = figure_of(new, (int)i, HZ_SPEED);
    struct hz_summary b = figure_of(old, party_of(before, after->parties[i].name), HZ_SPEED);
    if (a.count && b.count && b.median > 0) ratios.values[ratios.count++] = a.median / b.median;
  }
  return ratios.count < PEERS_FOR_SCALE ? unchanged : hz_summarize(&ratios);
}

// The scale is not known exactly either.
static struct hz_summary scaled(const struct hz_summary *summary, const struct hz_summary *by) {
  struct hz_summary result = {.count = summary->count,
                              .median = summary->median * by->median,
                              .least = summary->least * by->median,
                              .greatest = summary->greatest * by->median};
  result.spread = summary->spread * by->median + summary->median * by->spread;
  return result;
}

static bool is_worth_a_line(enum hz_figure figure, double before, double after) {
  double difference = fabs(after - before);
  bool memory = figure == HZ_PEAK || figure == HZ_REST;
  return difference > least_share * fabs(before) && (!memory || difference > least_kib);
}

static void add(struct hz_changes *changes, const struct hz_change *change) {
  struct hz_change *rows = realloc(changes->rows, (changes->count + 1) * sizeof *rows);
  if (!rows) return; // the count at the end still tells
  changes->rows = rows;
  rows[changes->count++] = *change;
}

static void compare_cell(struct hz_changes *changes, struct hz_change change,
                         const struct hz_summary *before, const struct hz_summary *after,
                         const struct hz_summary *by) {
  if (!before->count || !after->count) return;
  changes->compared++;
  struct hz_summary expected = scaled(before, by);
  int order = hz_summary_compare(after, &expected);
  if (order == 0 || !is_worth_a_line(change.figure, expected.median, after->median)) return;
  change.before = before->median;
  change.after = after->median;
  change.machine = by->median;
  change.better = (order > 0) == (change.figure == HZ_SPEED && change.lane->more_is_better);
  add(changes, &change);
}

static void append_name(char **list, const char *name) {
  char *longer = hz_text("%s%s%s", *list, **list ? ", " : "", name);
  free(*list);
  *list = longer;
}

static void compare_lane(struct hz_changes *changes, const struct hz_result *before,
                         const struct hz_lane_result *old, const struct hz_result *after,
                         const struct hz_lane_result *new) {
  static const enum hz_figure figures[] = {HZ_SPEED, HZ_PEAK, HZ_REST};
  struct hz_summary by = machine_scale(before, old, after, new);
  for (size_t i = 0; i < after->party_count; i++) {
    const char *name = after->parties[i].name;
    int was = party_of(before, name);
    for (size_t f = 0; f < hz_count_of(figures); f++) {
      struct hz_change change = {.lane = new, .allocator = name, .figure = figures[f]};
      struct hz_summary then = figure_of(old, was, figures[f]);
      struct hz_summary now = figure_of(new, (int)i, figures[f]);
      compare_cell(changes, change, &then, &now, figures[f] == HZ_SPEED ? &by : &unchanged);
    }
  }
}

static double proportion(const struct hz_change *change) {
  double a = fabs(change->after), b = fabs(change->before * change->machine);
  double least = a < b ? a : b, greatest = a < b ? b : a;
  return least > 0 ? greatest / least : INFINITY;
}

static int compare_proportions(const void *a, const void *b) {
  double x = proportion(a), y = proportion(b);
  return (x < y) - (x > y);
}

struct hz_changes hz_changes_find(const struct hz_result *before, const struct hz_result *after) {
  struct hz_changes changes = {.only_one = hz_text("%s", ""), .unlike = hz_text("%s", "")};
  for (size_t i = 0; i < after->lane_count; i++) {
    const struct hz_lane_result *new = after->lanes[i];
    const struct hz_lane_result *old = hz_result_lane(before, new->name);
    if (!old) append_name(&changes.only_one, new->name);
    else if (strcmp(old->command, new->command) != 0) append_name(&changes.unlike, new->name);
    else compare_lane(&changes, before, old, after, new);
  }
  for (size_t i = 0; i < before->lane_count; i++)
    if (!hz_result_lane(after, before->lanes[i]->name))
      append_name(&changes.only_one, before->lanes[i]->name);
  for (size_t i = 0; i < after->party_count; i++)
    if (party_of(before, after->parties[i].name) < 0)
      append_name(&changes.only_one, after->parties[i].name);
  for (size_t i = 0; i < before->party_count; i++)
    if (party_of(after, before->parties[i].name) < 0)
      append_name(&changes.only_one, before->parties[i].name);
  if (changes.count) qsort(changes.rows, changes.count, sizeof *changes.rows, compare_proportions);
  return changes;
}

void hz_changes_free(struct hz_changes *changes) {
  free(changes->rows);
  free(changes->only_one);
  free(changes->unlike);
}

static void print_change(const struct hz_change *change, FILE *out) {
  const struct hz_style *style = hz_style(out);
  const struct hz_figure_kind *kind = &hz_figure_kinds[change->figure];
  const char *unit = change->figure == HZ_SPEED ? change->lane->unit : kind->unit;
  double expected = change->before * change->machine;
  double share = expected != 0 ? 100 * (change->after / expected - 1) : INFINITY;
  fprintf(out, "%s%-6s%s %-24s %-12s %-11s %10.4g -> %-10.4g %s (%+.1f %%",
          change->better ? style->good : style->bad, change->better ? "better" : "worse",
          style->off, change->lane->name, change->allocator, kind->title, change->before,
          change->after, unit, share);
  if (change->machine != 1) fprintf(out, "; the others %+.1f %%", 100 * (change->machine - 1));
  fputs(")\n", out);
}

void hz_changes_print(const struct hz_changes *changes, FILE *out) {
  for (size_t i = 0; i < changes->count; i++) print_change(&changes->rows[i], out);
  fprintf(out, "%zu of %zu figures changed beyond noise.\n", changes->count, changes->compared);
  if (*changes->unlike)
    fprintf(out, "Not compared, because their commands differ: %s.\n", changes->unlike);
  if (*changes->only_one) fprintf(out, "In one of the two runs only: %s.\n", changes->only_one);
}
