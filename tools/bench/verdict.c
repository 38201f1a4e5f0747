// Who is best, against whom, and by how much.
#include "tools/bench/verdict.h"

#include <math.h>
#include <string.h>

#include "tools/bench/quantity.h"
#include "tools/print.h"

const char *hz_standing_word(enum hz_standing standing) {
  static const char *const words[] = {"", "ahead", "=", "behind"};
  return words[standing];
}

bool hz_takes_part(const struct hz_result *result, size_t party) {
  return !result->parties[party].missing;
}

struct hz_summary hz_cell_figure(const struct hz_lane_result *lane, size_t party,
                                 enum hz_figure figure) {
  const struct hz_cell *cell = &lane->cells[party];
  if (cell->failure) return (struct hz_summary){0};
  struct hz_summary summary = hz_summarize(&cell->figures[figure]);
  if (hz_lane_is_exact(lane) && summary.count > 1)
    summary.spread = summary.greatest - summary.least;
  bool finite = isfinite(summary.least) && isfinite(summary.greatest);
  return finite ? summary : (struct hz_summary){0};
}

bool hz_more_is_better(const struct hz_lane_result *lane, enum hz_figure figure) {
  return figure == HZ_SPEED && lane->more_is_better;
}

enum side { OURS = 1, OTHERS = 2, ALL = OURS | OTHERS };

static int best_of(const struct hz_result *result, const struct hz_lane_result *lane,
                   enum hz_figure figure, unsigned sides, int except) {
  int best = -1;
  double best_median = 0;
  for (size_t i = 0; i < result->party_count; i++) {
    const struct hz_party *party = &result->parties[i];
    if (!(sides & (party->ours ? OURS : OTHERS)) || party->missing || (int)i == except) continue;
    struct hz_summary summary = hz_cell_figure(lane, i, figure);
    if (summary.count == 0) continue;
    bool more = summary.median > best_median;
    if (best >= 0 && (more != hz_more_is_better(lane, figure) || summary.median == best_median))
      continue;
    best = (int)i;
    best_median = summary.median;
  }
  return best;
}

int hz_best(const struct hz_result *result, const struct hz_lane_result *lane,
            enum hz_figure figure, int except) {
  return best_of(result, lane, figure, ALL, except);
}

static enum hz_standing standing_of(const struct hz_summary *ratio, bool more_is_better) {
  if (ratio->count == 0) return HZ_UNKNOWN;
  int side = hz_summary_compare_to(ratio, 1);
  if (side == 0) return HZ_SAME;
  return (side > 0) == more_is_better ? HZ_AHEAD : HZ_BEHIND;
}

struct hz_verdict hz_verdict_between(const struct hz_lane_result *lane, enum hz_figure figure,
                                     int first, int second) {
  struct hz_verdict verdict = {.first = first, .second = second};
  if (first < 0 || second < 0) return verdict;
  if (hz_cell_figure(lane, (size_t)first, figure).count == 0) return verdict;
  if (hz_cell_figure(lane, (size_t)second, figure).count == 0) return verdict;
  verdict.ratio =
      hz_summarize_ratio(&lane->cells[first].figures[figure], &lane->cells[second].figures[figure]);
  if (hz_lane_is_exact(lane) && verdict.ratio.count > 1)
    verdict.ratio.spread = verdict.ratio.greatest - verdict.ratio.least;
  verdict.standing = standing_of(&verdict.ratio, hz_more_is_better(lane, figure));
  return verdict;
}

struct hz_verdict hz_verdict_of(const struct hz_result *result, const struct hz_lane_result *lane) {
  int ours = best_of(result, lane, HZ_SPEED, OURS, -1);
  return hz_verdict_between(lane, HZ_SPEED, ours, best_of(result, lane, HZ_SPEED, OTHERS, -1));
}

struct hz_verdict hz_verdict_of_any(const struct hz_result *result,
                                    const struct hz_lane_result *lane) {
  struct hz_verdict verdict = hz_verdict_of(result, lane);
  if (verdict.standing != HZ_UNKNOWN) return verdict;
  int best = hz_best(result, lane, HZ_SPEED, -1);
  return hz_verdict_between(lane, HZ_SPEED, best, hz_best(result, lane, HZ_SPEED, best));
}

static void speed_sentence(char *out, size_t bytes, const struct hz_result *result,
                           const struct hz_lane_result *lane, const struct hz_verdict *verdict) {
  const char *first = result->parties[verdict->first].name;
  const char *second = result->parties[verdict->second].name;
  struct hz_words ratio = hz_ratio_median(&verdict->ratio);
  struct hz_words spread = hz_ratio_spread(&verdict->ratio);
  if (!isfinite(verdict->ratio.spread))
    hz_format(out, bytes, "%s to %s: %s; a single round, so nothing is known of the noise.", first,
              second, ratio.text);
  else if (verdict->standing == HZ_SAME)
    hz_format(out, bytes, "No difference beyond noise between %s and %s: ratio %s %s.", first,
              second, ratio.text, spread.text);
  else
    hz_format(out, bytes, "%s is %s %s: %s %s times its %s, where %s is better.", first,
              verdict->standing == HZ_AHEAD ? "ahead of" : "behind", second, ratio.text,
              spread.text, strcmp(lane->unit, "s") == 0 ? "time" : lane->unit,
              lane->more_is_better ? "more" : "less");
}

static void memory_sentence(char *out, size_t bytes, const struct hz_result *result,
                            const struct hz_verdict *peak) {
  static const char *const words[] = {"", "less", "no difference beyond noise", "more"};
  if (peak->standing == HZ_UNKNOWN || !isfinite(peak->ratio.spread)) return;
  hz_format(out, bytes, " Its peak memory is %s %s times that of %s: %s.",
            hz_ratio_median(&peak->ratio).text, hz_ratio_spread(&peak->ratio).text,
            result->parties[peak->second].name, words[peak->standing]);
}

void hz_verdict_sentence(char *out, size_t bytes, const struct hz_result *result,
                         const struct hz_lane_result *lane) {
  *out = '\0';
  struct hz_verdict speed = hz_verdict_of_any(result, lane);
  if (speed.standing == HZ_UNKNOWN) return;
  speed_sentence(out, bytes, result, lane, &speed);
  struct hz_verdict peak = hz_verdict_between(lane, HZ_PEAK, speed.first, speed.second);
  size_t said = strlen(out);
  memory_sentence(out + said, bytes - said, result, &peak);
}

static bool seen_before(const struct hz_result *result, size_t lane) {
  for (size_t i = 0; i < lane; i++)
    if (strcmp(result->lanes[i]->group, result->lanes[lane]->group) == 0) return true;
  return false;
}

static void group_add(struct hz_group *group, const struct hz_lane_result *lane) {
  const struct hz_lane_result *first = group->count ? group->lanes[0] : lane;
  bool alike =
      strcmp(first->unit, lane->unit) == 0 && first->more_is_better == lane->more_is_better;
  if (!alike) group->unit = NULL;
  group->lanes[group->count++] = lane;
}

bool hz_group_next(const struct hz_result *result, size_t *position, struct hz_group *group) {
  size_t first = *position;
  while (first < result->lane_count && seen_before(result, first)) first++;
  if (first >= result->lane_count) return false;
  const char *name = result->lanes[first]->group;
  group->name = name[0] ? name : "Lanes";
  group->unit = result->lanes[first]->unit;
  group->count = 0;
  for (size_t i = first; i < result->lane_count; i++)
    if (strcmp(result->lanes[i]->group, name) == 0) group_add(group, result->lanes[i]);
  *position = first + 1;
  return true;
}

bool hz_group_has(const struct hz_result *result, const struct hz_group *group,
                  enum hz_figure figure) {
  for (size_t i = 0; i < group->count; i++)
    if (hz_best(result, group->lanes[i], figure, -1) >= 0) return true;
  return false;
}

static void tally_add(struct hz_tally *tally, enum hz_standing standing) {
  tally->lanes += standing != HZ_UNKNOWN;
  tally->ahead += standing == HZ_AHEAD;
  tally->same += standing == HZ_SAME;
  tally->behind += standing == HZ_BEHIND;
}

struct hz_tally hz_tally_group(const struct hz_result *result, const struct hz_group *group) {
  struct hz_tally tally = {0};
  for (size_t i = 0; i < group->count; i++)
    tally_add(&tally, hz_verdict_of(result, group->lanes[i]).standing);
  return tally;
}

struct hz_tally hz_tally_all(const struct hz_result *result) {
  struct hz_tally tally = {0};
  for (size_t i = 0; i < result->lane_count; i++)
    tally_add(&tally, hz_verdict_of(result, result->lanes[i]).standing);
  return tally;
}

void hz_tally_words(char *out, size_t bytes, const struct hz_tally *tally) {
  hz_format(out, bytes,
            "ahead in %zu of %zu lane%s beyond noise, behind in %zu, no difference in %zu",
            tally->ahead, tally->lanes, tally->lanes == 1 ? "" : "s", tally->behind, tally->same);
}

static size_t rounds_done(const struct hz_result *result) {
  size_t most = 0;
  for (size_t i = 0; i < result->lane_count; i++)
    for (size_t j = 0; j < result->party_count; j++)
      most = hz_max(most, result->lanes[i]->cells[j].figures[HZ_SPEED].count);
  return most;
}

void hz_rounds_words(char *out, size_t bytes, const struct hz_result *result) {
  size_t done = rounds_done(result);
  unsigned long took_s = (unsigned long)(result->seconds + 0.5);
  char took[48];
  if (took_s < 60) hz_format(took, sizeof took, "%lu s", took_s);
  else hz_format(took, sizeof took, "%lu min %lu s", took_s / 60, took_s % 60);
  if (!result->interrupted)
    hz_format(out, bytes, "%zu round%s in %s", result->rounds,
              result->rounds == 1 ? " (nothing is known of the noise)" : "s", took);
  else
    hz_format(out, bytes, "interrupted after %s: %zu of %zu rounds begun, what was done is kept",
              took, done, result->rounds);
}
