// The result as Markdown for GitHub: a list of what was measured with what, then per group a table
// of speed and peak, and one of memory at rest. Headings are of the third level: it is a part of a
// longer text.
#include <math.h>
#include <string.h>

#include "tools/bench/quantity.h"
#include "tools/bench/result.h"
#include "tools/bench/verdict.h"

// Names and sentences come from users and programs: what Markdown would read as marks is escaped,
// line ends become blanks.
static void print_escaped(FILE *out, const char *text) {
  for (; *text; text++) {
    if (strchr("\\`*_|<>[]#~", *text)) putc('\\', out);
    putc(*text == '\n' ? ' ' : *text, out);
  }
}

// As code. A table's cell ends at "|" even there, and a backquote would end the code.
static void print_code(FILE *out, const char *text, bool in_table) {
  putc('`', out);
  for (; *text; text++) {
    if (*text == '|' && in_table) putc('\\', out);
    putc(*text == '`' ? '\'' : *text == '\n' ? ' ' : *text, out);
  }
  putc('`', out);
}

// ---- header

static void print_party(const struct hz_party *party, FILE *out) {
  fputs("- ", out);
  print_escaped(out, party->name);
  if (party->ours) fputs(" (ours)", out);
  if (party->missing) {
    fputs(": **missing**: ", out);
    print_escaped(out, party->missing);
  } else {
    fputs(": ", out);
    print_escaped(out, party->about);
    if (!party->about[0]) print_code(out, party->library, false); // a path tells only here
  }
  putc('\n', out);
}

static void print_header(const struct hz_result *result, FILE *out) {
  char rounds[128];
  hz_rounds_words(rounds, sizeof rounds, result);
  fputs("Command: ", out);
  print_code(out, result->command, false);
  fprintf(out, ", %s, %s.\n\n", rounds, result->date);
  fprintf(out, "hakozuna %s, commit %s. ", result->version, result->commit);
  const char *machine[] = {result->machine, result->kernel, result->libc};
  for (size_t i = 0; i < 3; i++) {
    if (i) fputs("; ", out);
    print_escaped(out, machine[i]);
  }
  fputs(".\n\n", out);
  for (size_t i = 0; i < result->party_count; i++) print_party(&result->parties[i], out);
}

// ---- tables

static void print_lane(FILE *out, const struct hz_lane_result *lane, bool with_unit) {
  fputs("| ", out);
  print_code(out, lane->name, true);
  fputs(" |", out);
  if (!with_unit) return;
  putc(' ', out);
  print_escaped(out, lane->unit);
  fprintf(out, "%s |", lane->more_is_better ? "" : ", less is better");
}

static void print_heading(FILE *out, const struct hz_result *result, const char *unit,
                          const char *last) {
  fprintf(out, "\n| lane |%s", unit);
  for (size_t i = 0; i < result->party_count; i++) {
    if (!hz_takes_part(result, i)) continue;
    putc(' ', out);
    print_escaped(out, result->parties[i].name);
    fputs(" |", out);
  }
  fprintf(out, "%s\n|---|%s", last, unit[0] ? "---|" : "");
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) fputs("--:|", out);
  fprintf(out, "%s\n", last[0] ? "---|" : "");
}

// "**89.3** ±2 % / 12"
static void print_cell(FILE *out, const struct hz_lane_result *lane, size_t party, bool best) {
  struct hz_summary speed = hz_cell_figure(lane, party, HZ_SPEED);
  struct hz_summary peak = hz_cell_figure(lane, party, HZ_PEAK);
  if (speed.count == 0) {
    fprintf(out, " %s |", lane->cells[party].failure ? "failed" : "-");
    return;
  }
  const char *mark = best ? "**" : "";
  struct hz_words spread = hz_percent(&speed, " ");
  fprintf(out, " %s%s%s%s%s", mark, hz_quantity(speed.median).text, mark, spread.text[0] ? " " : "",
          spread.text);
  if (peak.count) fprintf(out, " / %s", hz_mib(peak.median).text);
  fputs(" |", out);
}

static void print_verdict(FILE *out, const struct hz_result *result,
                          const struct hz_verdict *verdict) {
  static const char *const words[] = {"", " ahead", " within noise", " **behind**"};
  if (verdict->standing == HZ_UNKNOWN) {
    fputs(" - |\n", out);
    return;
  }
  struct hz_words spread = hz_ratio_spread(&verdict->ratio);
  const char *word = spread.text[0] ? words[verdict->standing] : " (one round)";
  fprintf(out, " **%s**%s%s%s, %s / %s |\n", hz_ratio_median(&verdict->ratio).text,
          spread.text[0] ? " " : "", spread.text, word, result->parties[verdict->first].name,
          result->parties[verdict->second].name);
}

static void print_speed(const struct hz_result *result, const struct hz_group *group, FILE *out) {
  struct hz_tally tally = hz_tally_group(result, group);
  print_heading(out, result, group->unit ? "" : " unit |",
                tally.lanes ? " ours / best other |" : "");
  for (size_t i = 0; i < group->count; i++) {
    const struct hz_lane_result *lane = group->lanes[i];
    int best = hz_best(result, lane, HZ_SPEED, -1);
    print_lane(out, lane, !group->unit);
    for (size_t p = 0; p < result->party_count; p++)
      if (hz_takes_part(result, p)) print_cell(out, lane, p, (int)p == best);
    struct hz_verdict verdict = hz_verdict_of(result, lane);
    if (tally.lanes) print_verdict(out, result, &verdict);
    else putc('\n', out);
  }
  if (!tally.lanes) return;
  char words[128];
  hz_tally_words(words, sizeof words, &tally);
  fprintf(out, "\nOurs: %s.\n", words);
}

static bool lane_has(const struct hz_result *result, const struct hz_lane_result *lane,
                     enum hz_figure figure) {
  return hz_best(result, lane, figure, -1) >= 0;
}

static void print_rest_cell(FILE *out, const struct hz_lane_result *lane, size_t party,
                            const char *mark, const char *last) {
  struct hz_summary freed = hz_cell_figure(lane, party, HZ_FREED);
  struct hz_summary early = hz_cell_figure(lane, party, HZ_EARLY);
  putc(' ', out);
  if (freed.count && early.count)
    fprintf(out, "%s, %s, ", hz_mib(freed.median).text, hz_mib(early.median).text);
  fprintf(out, "%s%s%s |", mark, last, mark);
}

static void print_rest(const struct hz_result *result, const struct hz_group *group, FILE *out) {
  fputs("\nAt rest, in MiB, after the frees (where there are three: at once, soon, later):\n", out);
  print_heading(out, result, "", "");
  for (size_t i = 0; i < group->count; i++) {
    const struct hz_lane_result *lane = group->lanes[i];
    if (!lane_has(result, lane, HZ_REST)) continue;
    int best = hz_best(result, lane, HZ_REST, -1);
    print_lane(out, lane, false);
    for (size_t p = 0; p < result->party_count; p++) {
      struct hz_summary rest = hz_cell_figure(lane, p, HZ_REST);
      const char *mark = (int)p == best ? "**" : "";
      const char *nothing = lane->cells[p].failure ? "failed" : "-";
      if (hz_takes_part(result, p))
        print_rest_cell(out, lane, p, mark, rest.count ? hz_mib(rest.median).text : nothing);
    }
    putc('\n', out);
  }
}

static void print_failures(const struct hz_result *result, const struct hz_group *group,
                           FILE *out) {
  bool first = true;
  for (size_t i = 0; i < group->count; i++)
    for (size_t p = 0; p < result->party_count; p++) {
      const struct hz_lane_result *lane = group->lanes[i];
      if (!lane->cells[p].failure) continue;
      if (first) fputs("\nFailed:\n\n", out);
      first = false;
      fputs("- ", out);
      print_code(out, lane->name, false);
      fputs(", ", out);
      print_escaped(out, result->parties[p].name);
      fputs(": ", out);
      print_escaped(out, lane->cells[p].failure);
      putc('\n', out);
    }
}

static void print_group(const struct hz_result *result, const struct hz_group *group, FILE *out) {
  fputs("\n### ", out);
  print_escaped(out, group->name);
  fputs("\n\n", out);
  fputs("Speed in ", out);
  print_escaped(out, group->unit ? group->unit : "the lane's unit");
  if (group->unit)
    fprintf(out, " (%s is better)", group->lanes[0]->more_is_better ? "more" : "less");
  if (hz_group_has(result, group, HZ_PEAK)) fputs(" / MiB at the peak", out);
  fputs(". Best speed of each lane in bold.\n", out);
  print_speed(result, group, out);
  if (hz_group_has(result, group, HZ_REST)) print_rest(result, group, out);
  print_failures(result, group, out);
}

void hz_result_print_markdown(const struct hz_result *result, FILE *out) {
  print_header(result, out);
  struct hz_group group;
  for (size_t position = 0; hz_group_next(result, &position, &group);)
    print_group(result, &group, out);
}
