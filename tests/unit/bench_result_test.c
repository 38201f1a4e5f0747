// tools/bench/result: the table of results, and its file of JSON, which is read back whole or
// refused in a sentence.
#include "tools/bench/result.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/unit/bench_support.h"
#include "tools/command.h"

// ---- A result with something in every field -----------------------------------------------------

static void add_parties(struct hz_result *result) {
  struct hz_party *ours = hz_result_add_party(result, "hz3");
  bench_set_text(&ours->library, "/a/libhakozuna.so");
  bench_set_text(&ours->about, "hakozuna 1.0 \"beta\"");
  ours->ours = true;
  bench_set_text(&hz_result_add_party(result, "glibc")->about, "glibc 2.36");
  struct hz_party *absent = hz_result_add_party(result, "jemalloc");
  absent->missing = hz_text("jemalloc is not installed;\nnobody has it.");
}

static void add_lanes(struct hz_result *result) {
  struct hz_lane_result *lane = bench_add_lane(result, "t16_main_r90", true);
  bench_set_text(&lane->group, "16 threads");
  bench_set_text(&lane->about, "\xC3\xBC \xE2\x82\xAC and \\");
  bench_set_text(&lane->command, "remote seconds=0.5");
  for (size_t f = 0; f < HZ_FIGURES; f++)
    lane->cells[0].figures[f] = bench_sample_around(100.0 * (double)(f + 1));
  lane->cells[1].figures[HZ_SPEED] = (struct hz_sample){.count = 1, .values = {0.0625}};
  lane = bench_add_lane(result, "python", false);
  lane->cells[0].failure = hz_text("python ended with exit code 1: no.");
  lane->cells[1].figures[HZ_PEAK] = (struct hz_sample){.count = 2, .values = {0, 3000125}};
}

static struct hz_result *whole_result(void) {
  struct hz_result *result = hz_result_new();
  char **texts[] = {&result->version, &result->commit, &result->date,   &result->machine,
                    &result->kernel,  &result->libc,   &result->command};
  for (size_t i = 0; i < hz_count_of(texts); i++) {
    free(*texts[i]);
    *texts[i] = hz_text("text %zu", i);
  }
  result->rounds = 5;
  result->seconds = 61.5;
  result->interrupted = true;
  add_parties(result);
  add_lanes(result);
  return result;
}

// Either both are NULL or both are the same text.
static void assert_same_text(const char *a, const char *b) {
  assert_int_equal(a == NULL, b == NULL);
  if (a) assert_string_equal(a, b);
}

static void assert_same_cell(const struct hz_cell *a, const struct hz_cell *b) {
  assert_same_text(a->failure, b->failure);
  for (size_t f = 0; f < HZ_FIGURES; f++) {
    assert_int_equal(a->figures[f].count, b->figures[f].count);
    for (size_t i = 0; i < a->figures[f].count; i++)
      assert_near(a->figures[f].values[i], b->figures[f].values[i]);
  }
}

static void assert_same_lane(const struct hz_lane_result *a, const struct hz_lane_result *b) {
  assert_same_text(a->name, b->name);
  assert_same_text(a->group, b->group);
  assert_same_text(a->about, b->about);
  assert_same_text(a->command, b->command);
  assert_same_text(a->unit, b->unit);
  assert_int_equal(a->more_is_better, b->more_is_better);
  for (size_t i = 0; i < HZ_ALLOCATORS_MOST; i++) assert_same_cell(&a->cells[i], &b->cells[i]);
}

static void assert_same_header(const struct hz_result *a, const struct hz_result *b) {
  assert_same_text(a->version, b->version);
  assert_same_text(a->commit, b->commit);
  assert_same_text(a->date, b->date);
  assert_same_text(a->machine, b->machine);
  assert_same_text(a->kernel, b->kernel);
  assert_same_text(a->libc, b->libc);
  assert_same_text(a->command, b->command);
  assert_int_equal(a->rounds, b->rounds);
  assert_near(a->seconds, b->seconds);
  assert_int_equal(a->interrupted, b->interrupted);
}

static void assert_same_result(const struct hz_result *a, const struct hz_result *b) {
  assert_same_header(a, b);
  assert_int_equal(a->party_count, b->party_count);
  for (size_t i = 0; i < a->party_count; i++) {
    assert_same_text(a->parties[i].name, b->parties[i].name);
    assert_same_text(a->parties[i].library, b->parties[i].library);
    assert_same_text(a->parties[i].about, b->parties[i].about);
    assert_same_text(a->parties[i].missing, b->parties[i].missing);
    assert_int_equal(a->parties[i].ours, b->parties[i].ours);
  }
  assert_int_equal(a->lane_count, b->lane_count);
  for (size_t i = 0; i < a->lane_count; i++) assert_same_lane(a->lanes[i], b->lanes[i]);
}

static struct hz_result *read_well(const char *path) {
  int code = -1;
  struct hz_result *result = hz_result_read(path, &code);
  assert_non_null(result);
  assert_int_equal(code, -1);
  return result;
}

// Reads a file that is refused, in one sentence that names it. Returns the sentence.
static const char *refusal(const char *path, int expected_code) {
  int code = -1;
  bench_catch_stderr();
  struct hz_result *result = hz_result_read(path, &code);
  const char *said = bench_end_stderr();
  assert_null(result);
  assert_int_equal(code, expected_code);
  assert_has(said, path);
  assert_has(said, "expected");
  const char *end = strchr(said, '\n');
  assert_true(end != NULL && end[1] == '\0');
  return said;
}

// ---- There and back -----------------------------------------------------------------------------

static void what_is_written_is_read_back(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  assert_int_equal(hz_result_write(result, "whole.json"), HZ_EXIT_OK);
  struct hz_result *again = read_well("whole.json");
  assert_same_result(result, again);
  hz_result_free(again);
  hz_result_free(result);
}

static void an_empty_result_is_read_back(void **state) {
  (void)state;
  struct hz_result *result = hz_result_new();
  assert_int_equal(hz_result_write(result, "empty.json"), HZ_EXIT_OK);
  struct hz_result *again = read_well("empty.json");
  assert_same_result(result, again);
  hz_result_free(again);
  hz_result_free(result);
}

static void summaries_are_written_and_an_unknown_spread_is_null(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  assert_int_equal(hz_result_write(result, "whole.json"), HZ_EXIT_OK);
  const char *text = bench_read_file("whole.json");
  assert_has(text, "\"median\": 100.0");
  assert_has(text, "\"spread\": 0.5");
  assert_has(text, "\"spread\": null");
  hz_result_free(result);
}

static void bytes_that_are_no_utf8_become_question_marks(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  char **texts[] = {&result->machine,           &result->command,
                    &result->lanes[0]->command, &result->lanes[1]->cells[0].failure,
                    &result->lanes[0]->about,   &result->parties[0].library,
                    &result->parties[0].about,  &result->parties[2].missing,
                    &result->parties[1].name};
  for (size_t i = 0; i < hz_count_of(texts); i++) bench_set_text(texts[i], "a\xFF\xC0|");
  assert_int_equal(hz_result_write(result, "bytes.json"), HZ_EXIT_OK);
  for (size_t i = 0; i < hz_count_of(texts); i++) bench_set_text(texts[i], "a??|");
  struct hz_result *again = read_well("bytes.json");
  assert_same_result(result, again);
  hz_result_free(again);
  hz_result_free(result);
}

static void a_table_as_large_as_may_be_is_read_back(void **state) {
  (void)state;
  struct hz_result *result = hz_result_new();
  for (int i = 0; i < HZ_ALLOCATORS_MOST; i++) {
    struct hz_party *party = hz_result_add_party(result, "");
    free(party->name);
    party->name = hz_text("party %d", i);
  }
  for (int i = 0; i < HZ_LANES_MOST; i++) {
    struct hz_lane_result *lane = bench_add_lane(result, "", false);
    free(lane->name);
    lane->name = hz_text("lane %d", i);
  }
  struct hz_sample *last = &result->lanes[HZ_LANES_MOST - 1]->cells[0].figures[HZ_REST];
  for (int i = 0; i < HZ_ROUNDS_MOST; i++) last->values[last->count++] = i;
  assert_int_equal(hz_result_write(result, "large.json"), HZ_EXIT_OK);
  struct hz_result *again = read_well("large.json");
  assert_same_result(result, again);
  hz_result_free(again);
  hz_result_free(result);
}

// ---- Files that are refused ---------------------------------------------------------------------

static void a_file_cut_short_is_no_json(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  assert_int_equal(hz_result_write(result, "cut.json"), HZ_EXIT_OK);
  hz_result_free(result);
  struct stat is;
  assert_int_equal(stat("cut.json", &is), 0);
  for (off_t bytes = is.st_size - 3; bytes >= 0; bytes -= 97) {
    assert_int_equal(truncate("cut.json", bytes), 0);
    assert_has(refusal("cut.json", HZ_EXIT_DATA), "this is no JSON");
  }
}

static void a_missing_file_and_a_folder_are_told(void **state) {
  (void)state;
  assert_has(refusal("absent.json", HZ_EXIT_NO_FILE), "No such file or directory");
  assert_int_equal(mkdir("folder", 0700), 0);
  assert_has(refusal("folder", HZ_EXIT_NO_FILE), "Is a directory");
}

static void what_is_no_json_is_told_with_its_line(void **state) {
  (void)state;
  static const char *const texts[] = {"\n\nname,speed\n", "\n\n", "\n\n{\"a\": 1,, }",
                                      "\n\n{\"a\": 1, \"a\": 2}"};
  for (size_t i = 0; i < hz_count_of(texts); i++) {
    bench_write_file("no.json", texts[i], 0600);
    const char *said = refusal("no.json", HZ_EXIT_DATA);
    assert_has(said, "no.json, line 3, column ");
    assert_has(said, "this is no JSON");
  }
}

static const char valid[] =
    "{\"format\":\"hakozuna-bench\",\"format_version\":1,\"version\":\"v\",\"commit\":\"c\","
    "\"date\":\"d\",\"machine\":\"m\",\"kernel\":\"k\",\"libc\":\"l\",\"command\":\"x\","
    "\"seconds\":2.5,\"rounds\":3,\"interrupted\":false,\"allocators\":[{\"name\":\"a\","
    "\"library\":\"\","
    "\"about\":\"\",\"ours\":false,\"missing\":null}],\"lanes\":[{\"name\":\"b\",\"group\":\"g\","
    "\"about\":\"\",\"command\":\"y\",\"unit\":\"s\",\"more_is_better\":false,\"results\":["
    "{\"allocator\":\"a\",\"failure\":null,\"speed\":{\"samples\":[1,2.5]}}]}]}";

// What is wrong once `part` of the valid text is replaced.
static const struct fault {
  const char *part, *by, *sentence;
} faults[] = {
    {"hakozuna-bench", "other", "format: expected \"hakozuna-bench\""},
    {"\"format\":\"hakozuna-bench\",", "", "format: expected \"hakozuna-bench\""},
    {"\"hakozuna-bench\"", "7", "format: expected \"hakozuna-bench\""},
    {"_version\":1", "_version\":2", "format_version: expected 1, the only one known here"},
    {"_version\":1", "_version\":\"1\"", "format_version: expected 1"},
    {"\"machine\":\"m\"", "\"machine\":null", ": machine: expected a string"},
    {"\"rounds\":3", "\"rounds\":-3", ": rounds: expected a number"},
    {"\"rounds\":3", "\"rounds\":\"3\"", ": rounds: expected a number"},
    {"\"seconds\":2.5", "\"seconds\":\"2.5\"", ": seconds: expected a number"},
    {"\"interrupted\":false", "\"interrupted\":0", ": interrupted: expected true or false"},
    {"[{\"name\":\"a\"", "[3,{\"name\":\"a\"", "allocators[0].name: expected a string"},
    {"\"name\":\"a\"", "\"name\":[]", "allocators[0].name: expected a string"},
    {"\"missing\":null", "\"missing\":1", "allocators[0].missing: expected a string"},
    {"\"ours\":false,", "", "allocators[0].ours: expected true or false"},
    {"\"lanes\":[", "\"lines\":[", ": lanes: expected an array"},
    {"\"name\":\"b\",", "", "lanes[0].name: expected a string"},
    {"\"unit\":\"s\"", "\"unit\":1", "lanes[0].unit: expected a string"},
    {"\"more_is_better\":false", "\"more_is_better\":\"no\"", "lanes[0].more_is_better: expected"},
    {"\"results\":[", "\"results\":{},\"x\":[", "lanes[0].results: expected an array"},
    {"\"allocator\":\"a\"", "\"allocator\":\"z\"",
     "lanes[0].results[0].allocator: expected one of"},
    {"\"failure\":null,", "", "lanes[0].results[0].failure: expected a string"},
    {"{\"samples\":[1,2.5]}", "7", "lanes[0].results[0].speed.samples: expected an array"},
    {"1,2.5", "1,\"2.5\"", "lanes[0].results[0].speed.samples: expected numbers only"},
    {"1,2.5", "1,null", "lanes[0].results[0].speed.samples: expected numbers only"},
};

static void wrong_fields_are_told_by_their_place(void **state) {
  (void)state;
  bench_write_file("valid.json", valid, 0600);
  hz_result_free(read_well("valid.json"));
  for (size_t i = 0; i < hz_count_of(faults); i++) {
    const char *at = strstr(valid, faults[i].part);
    assert_non_null(at);
    char *text =
        hz_text("%.*s%s%s", (int)(at - valid), valid, faults[i].by, at + strlen(faults[i].part));
    bench_write_file("fault.json", text, 0600);
    free(text);
    assert_has(refusal("fault.json", HZ_EXIT_DATA), faults[i].sentence);
  }
}

static void json_of_another_kind_is_told(void **state) {
  (void)state;
  static const char *const texts[] = {"[]", "{}", "[{\"format\": \"hakozuna-bench\"}]"};
  for (size_t i = 0; i < hz_count_of(texts); i++) {
    bench_write_file("other.json", texts[i], 0600);
    assert_has(refusal("other.json", HZ_EXIT_DATA), "a file that `hakozuna bench --json`");
  }
}

// The valid text with an array that has `count` elements: `first` in place, `more` before it.
static void write_crowded(const char *first, const char *more, size_t count) {
  const char *at = strstr(valid, first);
  assert_non_null(at);
  FILE *out = fopen("crowd.json", "we");
  assert_non_null(out);
  fwrite(valid, 1, (size_t)(at - valid), out);
  for (size_t i = 1; i < count; i++) fputs(more, out);
  fputs(at, out);
  assert_int_equal(fclose(out), 0);
}

static void more_than_a_table_holds_is_refused(void **state) {
  (void)state;
  write_crowded("{\"name\":\"b\"", "{},", HZ_LANES_MOST + 1);
  assert_has(refusal("crowd.json", HZ_EXIT_DATA), "lanes: expected at most 160 elements");
  write_crowded("{\"name\":\"a\"", "{},", HZ_ALLOCATORS_MOST + 1);
  assert_has(refusal("crowd.json", HZ_EXIT_DATA), "allocators: expected at most 24 elements");
  write_crowded("1,2.5", "1,", HZ_ROUNDS_MOST);
  assert_has(refusal("crowd.json", HZ_EXIT_DATA), "samples: expected at most 100 elements");
}

// ---- Writing where it cannot be -----------------------------------------------------------------

static size_t files_in(const char *folder) {
  size_t count = 0;
  DIR *entries = opendir(folder);
  assert_non_null(entries);
  while (readdir(entries)) count++;
  closedir(entries);
  return count - 2; // . and ..
}

static const char *refused_write(const struct hz_result *result, const char *path) {
  bench_catch_stderr();
  int code = hz_result_write(result, path);
  const char *said = bench_end_stderr();
  assert_int_equal(code, HZ_EXIT_NO_FILE);
  assert_has(said, path);
  assert_has(said, "could not be written");
  return said;
}

static void a_folder_that_does_not_exist_is_told(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  assert_has(refused_write(result, "nowhere/a.json"), "No such file or directory");
  hz_result_free(result);
}

static void what_was_there_stays_whole_when_the_disk_is_full(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  struct rlimit limit, small;
  assert_int_equal(mkdir("full", 0700), 0);
  bench_write_file("full/a.json", "before", 0600);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = (struct rlimit){.rlim_cur = 1000, .rlim_max = limit.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const char *said = refused_write(result, "full/a.json");
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  assert_has(said, "File too large");
  assert_string_equal(bench_read_file("full/a.json"), "before");
  assert_int_equal(files_in("full"), 1);
  hz_result_free(result);
}

static void no_temporary_file_stays_behind(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  assert_int_equal(mkdir("tidy", 0700), 0);
  assert_int_equal(mkdir("tidy/folder", 0700), 0);
  refused_write(result, "tidy/folder");
  assert_int_equal(files_in("tidy"), 1);
  bench_write_file("tidy/a.json", "before", 0600);
  assert_int_equal(hz_result_write(result, "tidy/a.json"), HZ_EXIT_OK);
  assert_int_equal(files_in("tidy"), 2);
  hz_result_free(read_well("tidy/a.json"));
  hz_result_free(result);
}

// ---- The table ----------------------------------------------------------------------------------

static void lanes_are_found_by_name(void **state) {
  (void)state;
  struct hz_result *result = whole_result();
  assert_ptr_equal(hz_result_lane(result, "python"), result->lanes[1]);
  assert_null(hz_result_lane(result, "pytho"));
  hz_result_free(result);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(an_empty_result_is_read_back),
      cmocka_unit_test(summaries_are_written_and_an_unknown_spread_is_null),
      cmocka_unit_test(bytes_that_are_no_utf8_become_question_marks),
      cmocka_unit_test(a_table_as_large_as_may_be_is_read_back),
      cmocka_unit_test(a_file_cut_short_is_no_json),
      cmocka_unit_test(a_missing_file_and_a_folder_are_told),
      cmocka_unit_test(what_is_no_json_is_told_with_its_line),
      cmocka_unit_test(wrong_fields_are_told_by_their_place),
      cmocka_unit_test(json_of_another_kind_is_told),
      cmocka_unit_test(more_than_a_table_holds_is_refused),
      cmocka_unit_test(a_folder_that_does_not_exist_is_told),
      cmocka_unit_test(what_was_there_stays_whole_when_the_disk_is_full),
      cmocka_unit_test(no_temporary_file_stays_behind),
      cmocka_unit_test(lanes_are_found_by_name),
  };
  return cmocka_run_group_tests(tests, bench_enter_folder, bench_leave_folder);
}
