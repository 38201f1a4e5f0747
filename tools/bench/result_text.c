// The result in a terminal: who took part, then one table of speed and one of memory per group of
// lanes; of a few lanes, a table each with every figure.
#include <math.h>
#include <string.h>

#include "tools/bench/grid.h"
#include "tools/bench/quantity.h"
#include "tools/bench/result.h"
#include "tools/bench/verdict.h"
#include "tools/print.h"

enum { LANES_IN_FULL = 6, SENTENCE_BYTES = 512 };

// ---- header

static void print_run(const struct hz_result *result, FILE *out) {
  const struct hz_style *style = hz_style(out);
  char rounds[128];
  hz_rounds_words(rounds, sizeof rounds, result);
  fprintf(out, "%shakozuna %s%s, commit %s, %s, %s\n", style->bold, result->version, style->off,
          result->commit, result->date, rounds);
  fprintf(out, "%s; %s; %s\n", result->machine, result->kernel, result->libc);
  if (result->command[0]) fprintf(out, "%s\n", result->command);
}

static void print_party(const struct hz_party *party, int width, FILE *out) {
  const struct hz_style *style = hz_style(out);
  const char *emphasis = party->ours ? style->bold : party->missing ? style->bad : "";
  fprintf(out, "  %s%-*s%s  ", emphasis, width, party->name, emphasis[0] ? style->off : "");
  if (party->missing) {
    fprintf(out, "missing: %s\n", party->missing);
    return;
  }
  const char *library = party->library[0] ? party->library : "the C library's own";
  fprintf(out, "%s%s%s\n", party->about, party->about[0] ? "; " : "", library);
}

static void print_header(const struct hz_result *result, FILE *out) {
  print_run(result, out);
  putc('\n', out);
  int width = 0;
  for (size_t i = 0; i < result->party_count; i++)
    width = (int)hz_max((size_t)width, strlen(result->parties[i].name));
  for (size_t i = 0; i < result->party_count; i++) print_party(&result->parties[i], width, out);
}

// ---- cells

static const char *standing_style(const struct hz_style *style, enum hz_standing standing) {
  if (standing == HZ_AHEAD) return style->good;
  return standing == HZ_BEHIND ? style->bad : "";
}

// names: NULL where the columns say already who is compared.
static void add_verdict(struct hz_grid *grid, const struct hz_style *style,
                        const struct hz_result *names, const struct hz_verdict *verdict) {
  if (verdict->standing == HZ_UNKNOWN) {
    hz_grid_add(grid, "", "-");
    return;
  }
  struct hz_words ratio = hz_ratio_median(&verdict->ratio);
  struct hz_words spread = hz_ratio_spread(&verdict->ratio);
  const char *word = hz_standing_word(verdict->standing);
  const char *style_of_word = standing_style(style, verdict->standing);
  if (!spread.text[0]) hz_grid_add(grid, "", "%s", ratio.text);
  else if (!names) hz_grid_add(grid, style_of_word, "%s %s %s", ratio.text, spread.text, word);
  else
    hz_grid_add(grid, style_of_word, "%s %s %s, %s / %s", ratio.text, spread.text, word,
                names->parties[verdict->first].name, names->parties[verdict->second].name);
}

// What stands in place of figures that are not there.
static void add_nothing(struct hz_grid *grid, const struct hz_style *style,
                        const struct hz_cell *cell) {
  hz_grid_add(grid, cell->failure ? style->bad : "", cell->failure ? "failed" : "-");
}

static void add_figure(struct hz_grid *grid, const struct hz_style *style,
                       const struct hz_lane_result *lane, size_t party, enum hz_figure figure,
                       bool best) {
  struct hz_summary summary = hz_cell_figure(lane, party, figure);
  if (summary.count == 0) {
    add_nothing(grid, style, &lane->cells[party]);
    return;
  }
  struct hz_words spread = hz_percent(&summary, "");
  hz_grid_add(grid, best ? style->bold : "", "%s%s%s%s", best ? "*" : "",
              hz_figure_words(figure, summary.median).text, spread.text[0] ? " " : "", spread.text);
}

static void add_memory(struct hz_grid *grid, const struct hz_style *style,
                       const struct hz_lane_result *lane, size_t party, bool best) {
  struct hz_summary peak = hz_cell_figure(lane, party, HZ_PEAK);
  struct hz_summary rest = hz_cell_figure(lane, party, HZ_REST);
  if (peak.count == 0 && rest.count == 0) {
    add_nothing(grid, style, &lane->cells[party]);
    return;
  }
  hz_grid_add(grid, best ? style->bold : "", "%s%s / %s", best ? "*" : "",
              peak.count ? hz_mib(peak.median).text : "-",
              rest.count ? hz_mib(rest.median).text : "-");
}

// ---- tables of a group

static size_t parties_there(const struct hz_result *result) {
  size_t count = 0;
  for (size_t i = 0; i < result->party_count; i++) count += hz_takes_part(result, i);
  return count;
}

static void add_heading(struct hz_grid *grid, const struct hz_style *style,
                        const struct hz_result *result) {
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i))
      hz_grid_add(grid, result->parties[i].ours ? style->bold : style->dim, "%s",
                  result->parties[i].name);
}

static void add_lane(struct hz_grid *grid, const struct hz_lane_result *lane, bool with_unit) {
  hz_grid_add(grid, "", "%s", lane->name);
  if (with_unit) hz_grid_add(grid, "", "%s%s", lane->unit, lane->more_is_better ? "" : ", less");
}

static void add_speed_row(struct hz_grid *grid, const struct hz_style *style,
                          const struct hz_result *result, const struct hz_lane_result *lane,
                          bool with_verdict) {
  int best = hz_best(result, lane, HZ_SPEED, -1);
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) add_figure(grid, style, lane, i, HZ_SPEED, (int)i == best);
  if (!with_verdict) return;
  struct hz_verdict verdict = hz_verdict_of(result, lane);
  add_verdict(grid, style, result, &verdict);
}

static void print_speed(const struct hz_result *result, const struct hz_group *group, FILE *out) {
  const struct hz_style *style = hz_style(out);
  struct hz_tally tally = hz_tally_group(result, group);
  bool with_unit = !group->unit, with_verdict = tally.lanes > 0;
  size_t left = with_unit ? 2 : 1, columns = left + parties_there(result) + with_verdict;
  struct hz_grid grid = hz_grid_new(columns, left, group->count + 1);
  hz_grid_add(&grid, style->dim, "lane");
  if (with_unit) hz_grid_add(&grid, style->dim, "unit");
  add_heading(&grid, style, result);
  if (with_verdict) hz_grid_add(&grid, style->dim, "ours / best other");
  for (size_t i = 0; i < group->count; i++) {
    add_lane(&grid, group->lanes[i], with_unit);
    add_speed_row(&grid, style, result, group->lanes[i], with_verdict);
  }
  hz_grid_finish(&grid, out);
  if (!with_verdict) return;
  char words[128];
  hz_tally_words(words, sizeof words, &tally);
  fprintf(out, "  Ours: %s.\n", words);
}

static void print_memory(const struct hz_result *result, const struct hz_group *group, FILE *out) {
  const struct hz_style *style = hz_style(out);
  size_t columns = 1 + parties_there(result);
  struct hz_grid grid = hz_grid_new(columns, 1, group->count + 1);
  hz_grid_add(&grid, style->dim, "lane");
  add_heading(&grid, style, result);
  for (size_t i = 0; i < group->count; i++) {
    const struct hz_lane_result *lane = group->lanes[i];
    add_lane(&grid, lane, false);
    int best = hz_best(result, lane, HZ_PEAK, -1);
    for (size_t p = 0; p < result->party_count; p++)
      if (hz_takes_part(result, p)) add_memory(&grid, style, lane, p, (int)p == best);
  }
  hz_grid_finish(&grid, out);
}

static void print_failures(const struct hz_result *result, const struct hz_lane_result *lane,
                           FILE *out) {
  const struct hz_style *style = hz_style(out);
  for (size_t i = 0; i < result->party_count; i++)
    if (lane->cells[i].failure)
      fprintf(out, "  %s%s, %s: failed:%s %s\n", style->bad, lane->name, result->parties[i].name,
              style->off, lane->cells[i].failure);
}

static void print_group(const struct hz_result *result, const struct hz_group *group, FILE *out) {
  const struct hz_style *style = hz_style(out);
  fprintf(out, "\n%s%s: speed%s%s%s", style->bold, group->name, group->unit ? " in " : "",
          group->unit ? group->unit : "", style->off);
  if (group->unit && !group->lanes[0]->more_is_better) fprintf(out, " (less is better)");
  fprintf(out, "\n");
  print_speed(result, group, out);
  if (hz_group_has(result, group, HZ_PEAK) || hz_group_has(result, group, HZ_REST)) {
    fprintf(out, "\n%s%s: memory in MiB, peak / at rest%s\n", style->bold, group->name, style->off);
    print_memory(result, group, out);
  }
  for (size_t i = 0; i < group->count; i++) print_failures(result, group->lanes[i], out);
}

static void print_groups(const struct hz_result *result, FILE *out) {
  fputs("\n±: half the interval of the median, in per cent of it. *: best of the row.\n", out);
  if (hz_tally_all(result).lanes > 0)
    fputs(
        "ours / best other: the fastest of ours and the fastest of the others in that lane; ratio "
        "of the rounds in pairs;\nahead, behind, or = for no difference beyond noise.\n",
        out);
  struct hz_group group;
  for (size_t position = 0; hz_group_next(result, &position, &group);)
    print_group(result, &group, out);
}

// ---- a few lanes, in full

// Everything that print_lane's columns depend on.
struct card {
  const struct hz_result *result;
  const struct hz_lane_result *lane;
  const struct hz_style *style;
  bool shown[HZ_FIGURES];
  int reference; // who the last column compares with; -1: nobody
};

static struct card card_of(const struct hz_result *result, const struct hz_lane_result *lane,
                           FILE *out) {
  struct card card = {.result = result, .lane = lane, .style = hz_style(out)};
  for (enum hz_figure f = 0; f < HZ_FIGURES; f++) card.shown[f] = hz_best(result, lane, f, -1) >= 0;
  card.shown[HZ_SPEED] = true;
  card.reference = hz_verdict_of_any(result, lane).second;
  return card;
}

static void add_card_heading(struct hz_grid *grid, const struct card *card) {
  const char *dim = card->style->dim;
  hz_grid_add(grid, dim, "allocator");
  hz_grid_add(grid, dim, "%s", card->lane->unit);
  hz_grid_add(grid, dim, "least..greatest");
  for (enum hz_figure f = HZ_PEAK; f < HZ_FIGURES; f++) {
    const char *unit = hz_figure_unit(f, card->lane);
    const char *title = hz_figure_kinds[f].brief;
    if (card->shown[f]) hz_grid_add(grid, dim, "%s%s%s", title, unit[0] ? " " : "", unit);
  }
  if (card->reference >= 0)
    hz_grid_add(grid, dim, "to %s", card->result->parties[card->reference].name);
}

static void add_range(struct hz_grid *grid, const struct card *card, size_t party) {
  struct hz_summary speed = hz_cell_figure(card->lane, party, HZ_SPEED);
  if (speed.count == 0) hz_grid_add(grid, "", "-");
  else
    hz_grid_add(grid, "", "%s..%s", hz_quantity(speed.least).text,
                hz_quantity(speed.greatest).text);
}

static void add_card_row(struct hz_grid *grid, const struct card *card, size_t party) {
  const struct hz_party *row = &card->result->parties[party];
  hz_grid_add(grid, row->ours ? card->style->bold : "", "%s", row->name);
  for (enum hz_figure f = 0; f < HZ_FIGURES; f++) {
    bool best = f <= HZ_PEAK && hz_best(card->result, card->lane, f, -1) == (int)party;
    if (card->shown[f]) add_figure(grid, card->style, card->lane, party, f, best);
    if (f == HZ_SPEED) add_range(grid, card, party);
  }
  if (card->reference < 0) return;
  struct hz_verdict verdict = hz_verdict_between(card->lane, HZ_SPEED, (int)party, card->reference);
  if ((int)party == card->reference) verdict.standing = HZ_UNKNOWN; // itself
  add_verdict(grid, card->style, NULL, &verdict);
}

static void print_card_heading(const struct card *card, FILE *out) {
  const struct hz_lane_result *lane = card->lane;
  fprintf(out, "\n%s%s%s", card->style->bold, lane->name, card->style->off);
  if (lane->about[0]) fprintf(out, ": %s", lane->about);
  fprintf(out, " (%s, %s is better)\n", lane->unit, lane->more_is_better ? "more" : "less");
  if (lane->command[0])
    fprintf(out, "  %s%s%s\n", card->style->dim, lane->command, card->style->off);
}

static void print_card(const struct hz_result *result, const struct hz_lane_result *lane,
                       FILE *out) {
  struct card card = card_of(result, lane, out);
  size_t columns = 2 + (card.reference >= 0);
  for (enum hz_figure f = 0; f < HZ_FIGURES; f++) columns += card.shown[f];
  print_card_heading(&card, out);
  struct hz_grid grid = hz_grid_new(columns, 1, result->party_count + 1);
  add_card_heading(&grid, &card);
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) add_card_row(&grid, &card, i);
  hz_grid_finish(&grid, out);
  print_failures(result, lane, out);
  char sentence[SENTENCE_BYTES];
  hz_verdict_sentence(sentence, sizeof sentence, result, lane);
  if (sentence[0]) fprintf(out, "  %s\n", sentence);
}

static void print_cards(const struct hz_result *result, FILE *out) {
  fputs("\n±: half the interval of the median, in per cent of it. *: best of the column.\n", out);
  for (size_t i = 0; i < result->lane_count; i++) print_card(result, result->lanes[i], out);
}

void hz_result_print_text(const struct hz_result *result, FILE *out) {
  print_header(result, out);
  if (result->lane_count <= LANES_IN_FULL) print_cards(result, out);
  else print_groups(result, out);
}
