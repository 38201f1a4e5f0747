// tools/bench: results as text, Markdown and HTML say the same facts, losses included.
#include "tools/bench/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/grid.h"
#include "tools/bench/quantity.h"
#include "tools/bench/svg.h"
#include "tools/bench/verdict.h"
#include "tools/command.h"

enum { ROUNDS = 5, OURS = 0, OTHER = 1, BROKEN = 2, MISSING = 3 };

static void replace(char **text, const char *with) {
  free(*text);
  *text = strdup(with);
}

// Rounds around `middle` that differ by a hundredth from one to the next.
static void fill(struct hz_sample *sample, double middle) {
  sample->count = ROUNDS;
  for (int i = 0; i < ROUNDS; i++) sample->values[i] = middle * (1 + 0.01 * (i - 2));
}

static void add_parties(struct hz_result *result) {
  hz_result_add_party(result, "hz3")->ours = true;
  replace(&result->parties[OURS].library, "/lib/libhakozuna.so");
  replace(&hz_result_add_party(result, "jemalloc")->about, "5.3.0 of Debian");
  hz_result_add_party(result, "broken<b>");
  hz_result_add_party(result, "snmalloc")->missing = strdup("it was <never> built.");
}

static struct hz_lane_result *add_lane(struct hz_result *result, const char *name, double ours,
                                       double other) {
  struct hz_lane_result *lane = hz_result_add_lane(result, name);
  replace(&lane->group, "16 threads");
  replace(&lane->about, "90 % remote & <touched>");
  replace(&lane->command, "bench/remote remote=90");
  replace(&lane->unit, "Mops/s");
  lane->more_is_better = true;
  fill(&lane->cells[OURS].figures[HZ_SPEED], ours);
  fill(&lane->cells[OTHER].figures[HZ_SPEED], other);
  fill(&lane->cells[OURS].figures[HZ_PEAK], 4096);
  fill(&lane->cells[OTHER].figures[HZ_PEAK], 1203 * 1024);
  return lane;
}

// A gain, a loss, and a difference that is none because the rounds in pairs disagree; of the third
// allocator one failure, of the fourth nothing.
static struct hz_result *small_result(void) {
  struct hz_result *result = hz_result_new();
  result->rounds = ROUNDS;
  replace(&result->version, "0.1.0");
  replace(&result->command, "hakozuna bench --quick");
  add_parties(result);
  struct hz_lane_result *gain = add_lane(result, "gain", 200, 100);
  gain->cells[BROKEN].failure = strdup("3 blocks <damaged>.");
  fill(&gain->cells[OURS].figures[HZ_REST], 512);
  add_lane(result, "loss", 70, 100);
  struct hz_lane_result *same = add_lane(result, "same", 100, 100);
  for (int i = 0; i < ROUNDS; i++)
    same->cells[OTHER].figures[HZ_SPEED].values[i] = 101 - 0.5 * (i - 2);
  return result;
}

// More than print_text shows in full.
static struct hz_result *large_result(void) {
  struct hz_result *result = small_result();
  for (int i = 0; i < 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "more%d", i);
    add_lane(result, name, 100, 50);
  }
  return result;
}

typedef void printer(const struct hz_result *result, FILE *out);

static char *printed(const struct hz_result *result, printer *print) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  print(result, out);
  assert_int_equal(fclose(out), 0);
  return text;
}

static void assert_says(const char *text, const char *fact) {
  if (!strstr(text, fact)) fail_msg("\"%s\" is not in:\n%s", fact, text);
}

static void assert_silent(const char *text, const char *fact) {
  if (strstr(text, fact)) fail_msg("\"%s\" is in:\n%s", fact, text);
}

// The first line that begins with `beginning`, behind blanks; static.
static const char *line_of(const char *text, const char *beginning) {
  static char line[1024];
  for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
    at += strspn(at, " ");
    if (strncmp(at, beginning, strlen(beginning)) != 0) continue;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
  }
  fail_msg("no line begins with \"%s\" in:\n%s", beginning, text);
  return NULL;
}

static size_t occurrences(const char *text, const char *word) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) count++;
  return count;
}

static void figures_have_three_digits_and_thousands_apart(void **state) {
  (void)state;
  assert_string_equal(hz_quantity(0).text, "0");
  assert_string_equal(hz_quantity(0.04123).text, "0.0412");
  assert_string_equal(hz_quantity(9.834).text, "9.83");
  assert_string_equal(hz_quantity(9.996).text, "10.0");
  assert_string_equal(hz_quantity(893.2).text, "893");
  assert_string_equal(hz_quantity(999.7).text, "1,000");
  assert_string_equal(hz_quantity(12345).text, "12,345");
  assert_string_equal(hz_quantity(999999.6).text, "1.00M");
  assert_string_equal(hz_quantity(1234567).text, "1.23M");
  assert_string_equal(hz_mib(100).text, "0.10");
  assert_string_equal(hz_mib(10035).text, "9.8");
}

static void ratio_near_one_has_the_decimals_that_its_spread_needs(void **state) {
  (void)state;
  struct hz_summary ratio = {.count = 5, .median = 1.012, .spread = 0.004};
  assert_string_equal(hz_ratio_median(&ratio).text, "1.012");
  assert_string_equal(hz_ratio_spread(&ratio).text, "±0.004");
  ratio.median = 2.08;
  assert_string_equal(hz_ratio_median(&ratio).text, "2.08");
}

static void less_is_ahead_where_less_is_better(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  struct hz_lane_result *lane = add_lane(result, "seconds", 1, 2);
  lane->more_is_better = false;
  assert_int_equal(hz_verdict_of(result, lane).standing, HZ_AHEAD);
  fill(&lane->cells[OURS].figures[HZ_SPEED], 3);
  assert_int_equal(hz_verdict_of(result, lane).standing, HZ_BEHIND);
  hz_result_free(result);
}

// Two counts that differ by 0.1 are no two rounds of a noisy figure.
static void counts_need_no_more_than_their_range(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  struct hz_lane_result *lane = add_lane(result, "counted", 1, 2);
  replace(&lane->unit, "instructions");
  lane->more_is_better = false;
  lane->cells[OURS].figures[HZ_SPEED] = (struct hz_sample){2, {45, 45.1}};
  lane->cells[OTHER].figures[HZ_SPEED] = (struct hz_sample){2, {46, 46}};
  assert_true(hz_lane_is_exact(lane));
  assert_int_equal(hz_verdict_of(result, lane).standing, HZ_AHEAD);
  replace(&lane->unit, "s");
  assert_int_equal(hz_verdict_of(result, lane).standing, HZ_SAME);
  hz_result_free(result);
}

static void single_round_is_no_claim(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  struct hz_lane_result *lane = result->lanes[0];
  lane->cells[OURS].figures[HZ_SPEED].count = lane->cells[OTHER].figures[HZ_SPEED].count = 1;
  assert_int_equal(hz_verdict_of(result, lane).standing, HZ_SAME);
  char *text = printed(result, hz_result_print_text);
  assert_says(text, "hz3 to jemalloc: 2.00; a single round, so nothing is known of the noise.");
  free(text);
  hz_result_free(result);
}

static void text_tells_gains_losses_and_what_is_noise(void **state) {
  (void)state;
  struct hz_result *result = large_result();
  char *text = printed(result, hz_result_print_text);
  assert_says(line_of(text, "gain"), "*200 ±2%");
  assert_says(line_of(text, "gain"), "2.00 ±0.02 ahead");
  assert_says(line_of(text, "gain"), "failed");
  assert_says(line_of(text, "loss"), "*100 ±2%");
  assert_says(line_of(text, "loss"), "0.70 ±0.01 behind");
  assert_says(line_of(text, "same"), " =");
  assert_says(text, "Ours: ahead in 5 of 7 lanes beyond noise, behind in 1, no difference in 1.");
  assert_says(text, "*4.0 / 0.50");
  assert_says(text, "1,203 / -");
  free(text);
  hz_result_free(result);
}

static void text_names_the_reason_of_what_failed_and_what_is_missing(void **state) {
  (void)state;
  struct hz_result *result = large_result();
  char *text = printed(result, hz_result_print_text);
  assert_says(text, "gain, broken<b>: failed: 3 blocks <damaged>.");
  assert_says(line_of(text, "snmalloc"), "missing: it was <never> built.");
  assert_int_equal(occurrences(text, "snmalloc"), 1); // no column
  free(text);
  hz_result_free(result);
}

static void few_lanes_are_told_with_all_figures_and_a_sentence(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  fill(&result->lanes[0]->cells[OURS].figures[HZ_FAULTS], 12345);
  char *text = printed(result, hz_result_print_text);
  assert_says(text, "hz3 is ahead of jemalloc: 2.00 ±0.02 times its Mops/s, where more is better.");
  assert_says(text, "Its peak memory is 0.003 ±0.000 times that of jemalloc: less.");
  assert_says(text, "hz3 is behind jemalloc: 0.70 ±0.01 times");
  assert_says(text, "No difference beyond noise between hz3 and jemalloc");
  assert_says(text, "12,345");
  assert_says(text, "196..204");
  free(text);
  hz_result_free(result);
}

static void without_others_the_best_two_are_compared(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  for (size_t i = 0; i < result->party_count; i++) result->parties[i].ours = true;
  char *text = printed(result, hz_result_print_text);
  assert_says(text, "hz3 is ahead of jemalloc: 2.00");
  assert_says(text, "jemalloc is ahead of hz3: 1.43");
  free(text);
  hz_result_free(result);
}

static void interrupted_run_says_how_far_it_came(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  result->interrupted = true;
  result->rounds = 20;
  char *text = printed(result, hz_result_print_text);
  assert_says(text, "interrupted after 0 s: 5 of 20 rounds begun, what was done is kept");
  free(text);
  hz_result_free(result);
}

static void narrow_terminal_gets_a_table_in_parts(void **state) {
  (void)state;
  setenv("COLUMNS", "80", 1);
  struct hz_result *result = large_result();
  for (int i = 0; i < 12; i++) {
    char name[32];
    snprintf(name, sizeof name, "allocator%d", i);
    hz_result_add_party(result, name);
  }
  char *text = printed(result, hz_result_print_text);
  const char *table = strstr(text, "16 threads: speed");
  for (const char *line = table; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
    assert_true(strcspn(line, "\n") <= 100); // bytes; ± has two
  assert_true(occurrences(table, "  lane ") >= 4);
  free(text);
  hz_result_free(result);
  unsetenv("COLUMNS");
}

static void markdown_tells_gains_losses_and_what_is_noise(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  char *text = printed(result, hz_result_print_markdown);
  assert_says(text, "Command: `hakozuna bench --quick`, 5 rounds");
  assert_says(text,
              "| `gain` | **200** ±2 % / 4.0 | 100 ±2 % / 1,203 | failed | **2.00** ±0.02 ahead");
  assert_says(text, "**0.70** ±0.01 **behind**, hz3 / jemalloc |");
  assert_says(text, "within noise, hz3 / jemalloc |");
  assert_says(text, "Ours: ahead in 1 of 3 lanes beyond noise, behind in 1, no difference in 1.");
  assert_says(text, "| `gain` | **0.50** | - | failed |");
  free(text);
  hz_result_free(result);
}

static void markdown_escapes_what_it_would_read_as_marks(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  replace(&result->lanes[0]->name, "a|b");
  char *text = printed(result, hz_result_print_markdown);
  assert_says(text, "| `a\\|b` |");
  assert_says(text, "broken\\<b\\>: 3 blocks \\<damaged\\>.");
  assert_says(text, "- snmalloc: **missing**: it was \\<never\\> built.");
  free(text);
  hz_result_free(result);
}

// ---- HTML

static char *read_whole(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  size_t bytes = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(bytes + 1, 1);
  assert_int_equal(fread(text, 1, bytes, file), bytes);
  fclose(file);
  return text;
}

static void temporary_path(char path[64]) {
  snprintf(path, 64, "/tmp/bench_render_%ld.html", (long)getpid());
}

// NULL where gnuplot is missing: the test is skipped, which is told.
static char *page_of(const struct hz_result *result) {
  char path[64];
  temporary_path(path);
  int code = hz_result_write_html(result, path);
  if (code == HZ_EXIT_NOT_FOUND) return NULL;
  assert_int_equal(code, HZ_EXIT_OK);
  char *page = read_whole(path);
  unlink(path);
  return page;
}

static void assert_ids_differ(const char *page) {
  for (const char *id = page; (id = strstr(id, " id=\"")); id++) {
    char whole[64];
    snprintf(whole, sizeof whole, "%.*s\"", (int)(5 + strcspn(id + 5, "\"")), id);
    if (occurrences(page, whole) != 1) fail_msg("%s stands more than once", whole);
  }
}

static void page_stands_alone(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  char *page = page_of(result);
  hz_result_free(result);
  if (!page) skip();
  assert_int_equal(occurrences(page, "<svg"), 6); // speed and memory of three lanes
  assert_silent(page, "http://");
  assert_silent(page, "https://");
  assert_silent(page, "<script");
  assert_silent(page, " src=");
  assert_silent(page, "@p"); // placeholders
  assert_silent(page, "gnuplot");
  assert_ids_differ(page);
  assert_says(page, "</html>");
  free(page);
}

static void page_escapes_texts_and_tells_losses_and_reasons(void **state) {
  (void)state;
  struct hz_result *result = small_result();
  char *page = page_of(result);
  hz_result_free(result);
  if (!page) skip();
  assert_silent(page, "broken<b>");
  assert_silent(page, "<damaged>");
  assert_silent(page, "<never>");
  assert_says(page, "<text>broken&lt;b&gt;</text>");
  assert_says(page, "90 % remote &amp; &lt;touched&gt;");
  assert_says(page, "3 blocks &lt;damaged&gt;.");
  assert_says(page, "it was &lt;never&gt; built.");
  assert_says(page, "<td class=\"behind\"><b>0.70</b> ±0.01 behind</td>");
  assert_says(page, "within noise</td>");
  assert_says(page, "Ours: ahead in 1 of 3 lanes beyond noise, behind in 1, no difference in 1.");
  free(page);
}

static void result_without_lanes_is_a_page_all_the_same(void **state) {
  (void)state;
  struct hz_result *result = hz_result_new();
  char *page = page_of(result);
  hz_result_free(result);
  if (!page) skip();
  assert_says(page, "</html>");
  free(page);
}

static void without_gnuplot_nothing_is_written(void **state) {
  (void)state;
  char path[64], *search = strdup(getenv("PATH"));
  temporary_path(path);
  setenv("PATH", "/nonexistent", 1);
  struct hz_result *result = small_result();
  assert_int_equal(hz_result_write_html(result, path), HZ_EXIT_NOT_FOUND);
  hz_result_free(result);
  setenv("PATH", search, 1);
  free(search);
  assert_int_not_equal(access(path, F_OK), 0);
}

static void write_word(FILE *out, char letter, unsigned number, const void *context) {
  (void)context;
  fprintf(out, "[%c%u]", letter, number);
}

static void drawing_loses_names_and_gets_classes(void **state) {
  (void)state;
  static const char drawing[] =
      "<svg viewBox=\"0 0 40 20\"><g id=\"canvas\"><defs><path id='gpPt0'/></defs>\n"
      "<g fill=\"none\" color=\"black\" stroke=\"currentColor\">\n</g>\n"
      "\t<g id=\"gnuplot_plot_1\" ><title>x</title>\n"
      "<polygon fill = 'rgb(  1,   2,  7)' points = '1,2 3,4\n\t\t5,6'/></g>\n"
      "<path stroke='rgb(1,1,0)'  d='M1,2'/><text>@p3@</text></g></svg>";
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_true(hz_svg_write(out, drawing, "a \"b\"", write_word, NULL));
  assert_false(hz_svg_write(out, "no drawing", "", write_word, NULL));
  fclose(out);
  assert_string_equal(text,
                      "<svg viewBox=\"0 0 40 20\" role=\"img\" aria-label=\"a &quot;b&quot;\">"
                      "<g><g ><polygon class=\"bar c7\" points = '1,2 3,4 5,6'/></g>"
                      "<path class=\"error\" d='M1,2'/><text>[p3]</text></g></svg>\n");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(figures_have_three_digits_and_thousands_apart),
      cmocka_unit_test(ratio_near_one_has_the_decimals_that_its_spread_needs),
      cmocka_unit_test(less_is_ahead_where_less_is_better),
      cmocka_unit_test(counts_need_no_more_than_their_range),
      cmocka_unit_test(single_round_is_no_claim),
      cmocka_unit_test(text_tells_gains_losses_and_what_is_noise),
      cmocka_unit_test(text_names_the_reason_of_what_failed_and_what_is_missing),
      cmocka_unit_test(few_lanes_are_told_with_all_figures_and_a_sentence),
      cmocka_unit_test(without_others_the_best_two_are_compared),
      cmocka_unit_test(interrupted_run_says_how_far_it_came),
      cmocka_unit_test(narrow_terminal_gets_a_table_in_parts),
      cmocka_unit_test(markdown_tells_gains_losses_and_what_is_noise),
      cmocka_unit_test(markdown_escapes_what_it_would_read_as_marks),
      cmocka_unit_test(page_stands_alone),
      cmocka_unit_test(page_escapes_texts_and_tells_losses_and_reasons),
      cmocka_unit_test(result_without_lanes_is_a_page_all_the_same),
      cmocka_unit_test(without_gnuplot_nothing_is_written),
      cmocka_unit_test(drawing_loses_names_and_gets_classes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
