// The result as one page: who took part, a verdict per lane at a glance, then per lane the pictures
// of speed and memory with all figures folded below them.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/bench/page.h"
#include "tools/bench/picture.h"
#include "tools/bench/quantity.h"
#include "tools/bench/result.h"
#include "tools/bench/svg.h"
#include "tools/bench/verdict.h"
#include "tools/bench/whole_file.h"
#include "tools/command.h"
#include "tools/text.h"

enum { SENTENCE_BYTES = 512, OUR_COLOURS = 6, OTHER_COLOURS = 10 };

// "<p>text</p>", escaped; nothing where the text is empty.
static void print_element(FILE *out, const char *open, const char *text, const char *close) {
  if (!text[0]) return;
  fputs(open, out);
  hz_page_text(out, text);
  fputs(close, out);
}

// ---- head

static void print_colours(FILE *out, const struct hz_result *result) {
  unsigned ours = 0, others = 0;
  for (size_t i = 0; i < result->party_count; i++) {
    bool mine = result->parties[i].ours;
    unsigned number = mine ? ours++ % OUR_COLOURS : others++ % OTHER_COLOURS;
    fprintf(out, ".c%zu{fill:var(--%c%u)}", i, mine ? 'o' : 'p', number);
  }
  putc('\n', out);
}

static void print_fact(FILE *out, const char *name, const char *value, bool code) {
  if (!value[0]) return;
  fprintf(out, "<tr><th scope=\"row\">%s</th><td class=\"left wrap\">", name);
  print_element(out, code ? "<code>" : "", value, code ? "</code>" : "");
  fputs("</td></tr>\n", out);
}

static void print_facts(FILE *out, const struct hz_result *result) {
  char rounds[128];
  hz_rounds_words(rounds, sizeof rounds, result);
  fputs("<table>\n", out);
  print_fact(out, "hakozuna", result->version, false);
  print_fact(out, "Commit", result->commit, true);
  print_fact(out, "Machine", result->machine, false);
  print_fact(out, "Kernel", result->kernel, false);
  print_fact(out, "C library", result->libc, false);
  print_fact(out, "Date", result->date, false);
  print_fact(out, "Rounds", rounds, false);
  print_fact(out, "Command", result->command, true);
  fputs("</table>\n", out);
}

static void print_party(FILE *out, const struct hz_party *party) {
  fprintf(out, "<tr><td%s>", party->ours ? " class=\"ours\"" : "");
  hz_page_text(out, party->name);
  if (party->missing) {
    fputs("</td><td class=\"left wrap\" colspan=\"2\"><span class=\"failed\">missing:</span> ",
          out);
    hz_page_text(out, party->missing);
  } else {
    fputs("</td><td class=\"left wrap\">", out);
    hz_page_text(out, party->ours && !party->about[0] ? "a profile of this library" : party->about);
    fputs("</td><td class=\"left wrap\">", out);
    if (party->library[0]) print_element(out, "<code>", party->library, "</code>");
    else fputs("the C library's own", out);
  }
  fputs("</td></tr>\n", out);
}

static void print_parties(FILE *out, const struct hz_result *result) {
  fputs("<h2>Allocators</h2>\n<div class=\"wide\"><table>\n<tr><th>name</th>"
        "<th class=\"left\">version</th><th class=\"left\">library</th></tr>\n",
        out);
  for (size_t i = 0; i < result->party_count; i++) print_party(out, &result->parties[i]);
  fputs("</table></div>\n", out);
}

// ---- summary

static const char *standing_class(enum hz_standing standing) {
  static const char *const classes[] = {"same", "ahead", "same", "behind"};
  return classes[standing];
}

// A bar from the middle: to the right we are better, a whole half is four times.
static void print_scale(FILE *out, const struct hz_lane_result *lane,
                        const struct hz_verdict *verdict) {
  fputs("<td class=\"scale\">", out);
  double ratio = verdict->ratio.median;
  if (verdict->standing != HZ_UNKNOWN && ratio > 0) {
    double better = log2(ratio) * (lane->more_is_better ? 25 : -25);
    double width = fmin(fabs(better), 50);
    fprintf(out, "<i class=\"%s\" style=\"left:%.1f%%;width:%.1f%%\"></i>",
            standing_class(verdict->standing), better < 0 ? 50 - width : 50, width);
  }
  fputs("</td>", out);
}

static const char *const speed_words[] = {"", "ahead", "within noise", "behind"};
static const char *const memory_words[] = {"", "less", "within noise", "more"};

// words: by enum hz_standing.
static void print_ratio(FILE *out, const struct hz_verdict *verdict, const char *const *words) {
  if (verdict->standing == HZ_UNKNOWN) {
    fputs("<td>-</td>", out);
    return;
  }
  struct hz_words spread = hz_ratio_spread(&verdict->ratio);
  fprintf(out, "<td class=\"%s\"><b>%s</b> %s %s</td>", standing_class(verdict->standing),
          hz_ratio_median(&verdict->ratio).text, spread.text,
          spread.text[0] ? words[verdict->standing] : "(one round)");
}

static void print_name(FILE *out, const struct hz_result *result, int party) {
  fputs("<td class=\"left\">", out);
  hz_page_text(out, party < 0 ? "-" : result->parties[party].name);
  fputs("</td>", out);
}

static size_t index_of(const struct hz_result *result, const struct hz_lane_result *lane) {
  size_t i = 0;
  while (result->lanes[i] != lane) i++;
  return i;
}

static void print_summary_row(FILE *out, const struct hz_result *result,
                              const struct hz_lane_result *lane) {
  struct hz_verdict speed = hz_verdict_of(result, lane);
  struct hz_verdict peak = hz_verdict_between(lane, HZ_PEAK, speed.first, speed.second);
  fprintf(out, "<tr><td><a href=\"#lane-%zu\">", index_of(result, lane));
  hz_page_text(out, lane->name);
  fputs("</a></td>", out);
  print_ratio(out, &speed, speed_words);
  print_scale(out, lane, &speed);
  print_ratio(out, &peak, memory_words);
  print_name(out, result, speed.first);
  print_name(out, result, speed.second);
  fputs("<td class=\"left\">", out);
  hz_page_text(out, lane->unit);
  fputs(lane->more_is_better ? "</td>" : ", less is better</td>", out);
  fputs("</tr>\n", out);
}

static void print_summary_heading(FILE *out) {
  fputs("<div class=\"wide\"><table>\n<tr><th>lane</th><th>speed, ours / other</th>"
        "<th class=\"middle\">worse | better</th><th>peak memory, same two</th>"
        "<th class=\"left\">ours</th><th class=\"left\">best other</th>"
        "<th class=\"left\">unit</th></tr>\n",
        out);
}

static void print_summary(FILE *out, const struct hz_result *result) {
  struct hz_tally tally = hz_tally_all(result);
  if (tally.lanes == 0) return;
  char words[128];
  hz_tally_words(words, sizeof words, &tally);
  fprintf(out, "<h2>Ours against the best of the others</h2>\n<p class=\"lead\">Ours: %s.</p>\n",
          words);
  fputs("<p class=\"soft\">By speed, the best profile of ours against the best of the others in "
        "each lane; ratios of rounds in pairs. Ahead and behind are said of what is beyond the "
        "spread (±). Where less is better, a ratio below 1 is ahead. The scale ends at four "
        "times.</p>\n",
        out);
  print_summary_heading(out);
  struct hz_group group;
  for (size_t position = 0; hz_group_next(result, &position, &group);) {
    fputs("<tr class=\"group\"><td colspan=\"7\">", out);
    hz_page_text(out, group.name);
    fputs("</td></tr>\n", out);
    for (size_t i = 0; i < group.count; i++) print_summary_row(out, result, group.lanes[i]);
  }
  fputs("</table></div>\n", out);
}

// ---- one lane

struct picture_words {
  const struct hz_result *result;
  const struct hz_lane_result *lane;
};

static void print_word(FILE *out, char letter, unsigned number, const void *context) {
  const struct picture_words *words = context;
  if (letter == 'p' && number < words->result->party_count) {
    const struct hz_party *party = &words->result->parties[number];
    if (party->ours) fputs("<tspan class=\"ours\">", out);
    hz_page_text(out, party->name);
    if (party->ours) fputs("</tspan>", out);
  } else if (letter == 'u') {
    hz_page_text(out, words->lane->unit);
    fputs(words->lane->more_is_better ? " (more is better)" : " (less is better)", out);
  } else if (letter == 'f') fputs("<tspan class=\"failed\">failed</tspan>", out);
  else fputs("not measured", out);
}

// True also where there is nothing to draw.
static bool print_figure(FILE *out, const struct picture_words *words, const char *drawing,
                         const char *title) {
  if (!drawing) return true;
  fprintf(out, "<figure><figcaption>%s</figcaption>\n", title);
  char *label = hz_text("%s: %s by allocator", words->lane->name, title);
  bool drawn = hz_svg_write(out, drawing, label, print_word, words);
  free(label);
  fputs("</figure>\n", out);
  return drawn;
}

static void print_detail(FILE *out, const struct hz_lane_result *lane, size_t party,
                         enum hz_figure figure) {
  struct hz_summary summary = hz_cell_figure(lane, party, figure);
  if (summary.count == 0) {
    fputs("<td>-</td>", out);
    return;
  }
  fprintf(out, "<td>%s %s</td>", hz_figure_words(figure, summary.median).text,
          hz_percent(&summary, "").text);
}

static void print_range(FILE *out, const struct hz_lane_result *lane, size_t party) {
  struct hz_summary speed = hz_cell_figure(lane, party, HZ_SPEED);
  if (speed.count == 0) fputs("<td>-</td>", out);
  else
    fprintf(out, "<td>%s..%s</td>", hz_quantity(speed.least).text,
            hz_quantity(speed.greatest).text);
}

// Speed always; the others where somebody has the figure.
static bool is_shown(const struct hz_result *result, const struct hz_lane_result *lane,
                     enum hz_figure figure) {
  return figure == HZ_SPEED || hz_best(result, lane, figure, -1) >= 0;
}

static void print_details_heading(FILE *out, const struct hz_result *result,
                                  const struct hz_lane_result *lane) {
  fputs("<tr><th>allocator</th>", out);
  for (enum hz_figure f = 0; f < HZ_FIGURES; f++) {
    if (!is_shown(result, lane, f)) continue;
    const char *unit = hz_figure_unit(f, lane);
    fprintf(out, "<th>%s%s", hz_figure_kinds[f].brief, unit[0] ? ", " : "");
    hz_page_text(out, unit);
    fputs(f == HZ_SPEED ? "</th><th>least..greatest</th>" : "</th>", out);
  }
  fputs("<th>rounds</th></tr>\n", out);
}

static void print_details_row(FILE *out, const struct hz_result *result,
                              const struct hz_lane_result *lane, size_t party) {
  const struct hz_party *row = &result->parties[party];
  fprintf(out, "<tr><td%s>", row->ours ? " class=\"ours\"" : "");
  hz_page_text(out, row->name);
  fputs("</td>", out);
  if (lane->cells[party].failure) {
    fputs("<td class=\"left failed\" colspan=\"8\">failed</td></tr>\n", out);
    return;
  }
  for (enum hz_figure f = 0; f < HZ_FIGURES; f++) {
    if (is_shown(result, lane, f)) print_detail(out, lane, party, f);
    if (f == HZ_SPEED) print_range(out, lane, party);
  }
  fprintf(out, "<td>%zu</td></tr>\n", lane->cells[party].figures[HZ_SPEED].count);
}

static void print_details(FILE *out, const struct hz_result *result,
                          const struct hz_lane_result *lane) {
  fputs("<details><summary>All figures</summary><div class=\"wide\"><table>\n", out);
  print_details_heading(out, result, lane);
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) print_details_row(out, result, lane, i);
  fputs("</table></div></details>\n", out);
}

// Not folded away: a failure is the first thing to know of a lane.
static void print_failures(FILE *out, const struct hz_result *result,
                           const struct hz_lane_result *lane) {
  for (size_t i = 0; i < result->party_count; i++) {
    if (!lane->cells[i].failure) continue;
    print_element(out, "<p><span class=\"failed\">", result->parties[i].name, " failed:</span> ");
    hz_page_text(out, lane->cells[i].failure);
    fputs("</p>\n", out);
  }
}

static bool print_lane(FILE *out, const struct hz_result *result, size_t number,
                       const struct hz_pictures *pictures) {
  const struct hz_lane_result *lane = result->lanes[number];
  const struct picture_words words = {result, lane};
  char sentence[SENTENCE_BYTES];
  hz_verdict_sentence(sentence, sizeof sentence, result, lane);
  fprintf(out, "<section class=\"lane\" id=\"lane-%zu\">\n", number);
  print_element(out, "<h3>", lane->name, "</h3>\n");
  print_element(out, "<p>", lane->about, "</p>\n");
  print_element(out, "<p><code class=\"soft\">", lane->command, "</code></p>\n");
  fputs("<div class=\"figures\">\n", out);
  bool drawn = print_figure(out, &words, pictures->speed[number], "Speed") &&
               print_figure(out, &words, pictures->memory[number], "Memory");
  fputs("</div>\n", out);
  print_element(out, "<p>", sentence, "</p>\n");
  print_failures(out, result, lane);
  print_details(out, result, lane);
  fputs("</section>\n", out);
  return drawn;
}

// ---- the page

static void print_contents(FILE *out, const struct hz_result *result) {
  fputs("<nav>", out);
  struct hz_group group;
  for (size_t position = 0; hz_group_next(result, &position, &group);) {
    fprintf(out, "<a href=\"#group-%zu\">", position);
    hz_page_text(out, group.name);
    fputs("</a>\n", out);
  }
  fputs("</nav>\n", out);
}

static bool print_groups(FILE *out, const struct hz_result *result,
                         const struct hz_pictures *pictures) {
  struct hz_group group;
  for (size_t position = 0; hz_group_next(result, &position, &group);) {
    fprintf(out, "<h2 id=\"group-%zu\">", position);
    hz_page_text(out, group.name);
    fputs("</h2>\n", out);
    for (size_t i = 0; i < group.count; i++)
      if (!print_lane(out, result, index_of(result, group.lanes[i]), pictures)) return false;
  }
  return true;
}

static bool print_page(FILE *out, const struct hz_result *result,
                       const struct hz_pictures *pictures) {
  hz_page_begin(out, "hakozuna: benchmarks");
  print_colours(out, result);
  hz_page_body(out);
  fputs("<h1>hakozuna: benchmarks</h1>\n", out);
  print_contents(out, result);
  print_facts(out, result);
  print_summary(out, result);
  print_parties(out, result);
  fputs("<p class=\"soft\">Pictures: bars are medians, their whiskers the least and the greatest "
        "round; of memory the strong bar is the peak and the light one at rest, when everything "
        "was freed. ± in tables: half the interval of the median.</p>\n",
        out);
  bool drawn = print_groups(out, result, pictures);
  hz_page_end(out);
  return drawn;
}

struct drawn_page {
  const struct hz_result *result;
  const struct hz_pictures *pictures;
};

static bool print_drawn_page(FILE *out, const void *context) {
  const struct drawn_page *page = context;
  if (print_page(out, page->result, page->pictures)) return true;
  hz_log("gnuplot's pictures are not what was expected of it, so no page was written. Is `gnuplot` "
         "version 5 or later?");
  return false;
}

int hz_result_write_html(const struct hz_result *result, const char *path) {
  struct hz_pictures pictures;
  int code = hz_pictures_draw(result, &pictures);
  if (code != HZ_EXIT_OK) return code;
  struct drawn_page page = {result, &pictures};
  code = hz_whole_file_write(path, "the page", print_drawn_page, &page);
  hz_pictures_free(&pictures);
  return code;
}
