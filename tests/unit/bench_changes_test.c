// tools/bench/changes: what counts as a change between two runs, and what does not.
#include "tools/bench/changes.h"

#include "tests/unit/bench_support.h"

enum { OURS, PEERS = 3 };

// A run of one lane, "lane", under "hz3" and three other allocators, every speed 100, every memory
// 100,000 KiB.
static struct hz_result *new_run(bool more_is_better) {
  static const char *const names[] = {"hz3", "glibc", "jemalloc", "tcmalloc"};
  struct hz_result *run = hz_result_new();
  struct hz_lane_result *lane = bench_add_lane(run, "lane", more_is_better);
  for (size_t i = 0; i <= PEERS; i++) {
    hz_result_add_party(run, names[i])->ours = i == OURS;
    lane->cells[i].figures[HZ_SPEED] = bench_sample_around(100);
    lane->cells[i].figures[HZ_PEAK] = bench_sample_around(100000);
    lane->cells[i].figures[HZ_REST] = bench_sample_around(100000);
    lane->cells[i].figures[HZ_FAULTS] = bench_sample_around(100);
    lane->cells[i].figures[HZ_USER] = bench_sample_around(1);
  }
  return run;
}

static void set(struct hz_result *run, size_t party, enum hz_figure figure, double value) {
  run->lanes[0]->cells[party].figures[figure] = bench_sample_around(value);
}

// Compares, and frees both runs: the lanes that the rows point to are gone, too.
static struct hz_changes changes_since(struct hz_result *before, struct hz_result *after) {
  struct hz_changes changes = hz_changes_find(before, after);
  hz_result_free(before);
  hz_result_free(after);
  return changes;
}

static void assert_none(struct hz_changes changes, size_t compared) {
  assert_int_equal(changes.count, 0);
  assert_int_equal(changes.compared, compared);
  hz_changes_free(&changes);
}

static void assert_one(struct hz_changes changes, enum hz_figure figure, bool better) {
  assert_int_equal(changes.count, 1);
  assert_int_equal(changes.rows[0].figure, figure);
  assert_int_equal(changes.rows[0].better, better);
  hz_changes_free(&changes);
}

// The change of hz3 alone, in the only figure that changed.
static void assert_change(bool more_is_better, enum hz_figure figure, double value, bool better) {
  struct hz_result *after = new_run(more_is_better);
  set(after, OURS, figure, value);
  assert_one(changes_since(new_run(more_is_better), after), figure, better);
}

// ---- What is a change ---------------------------------------------------------------------------

static void equal_runs_have_no_changes(void **state) {
  (void)state;
  assert_none(changes_since(new_run(true), new_run(true)), 12);
  assert_none(changes_since(new_run(false), new_run(false)), 12);
}

static void ours_slower_alone_is_one_change_for_the_worse(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  set(after, OURS, HZ_SPEED, 80);
  struct hz_changes changes = hz_changes_find(before, after);
  assert_int_equal(changes.count, 1);
  assert_string_equal(changes.rows[0].allocator, "hz3");
  assert_ptr_equal(changes.rows[0].lane, after->lanes[0]);
  assert_int_equal(changes.rows[0].figure, HZ_SPEED);
  assert_false(changes.rows[0].better);
  assert_near(changes.rows[0].before, 100);
  assert_near(changes.rows[0].after, 80);
  hz_changes_free(&changes);
  hz_result_free(before);
  hz_result_free(after);
}

static void more_speed_is_better_where_more_is_better(void **state) {
  (void)state;
  assert_change(true, HZ_SPEED, 120, true);
  assert_change(true, HZ_SPEED, 80, false);
}

static void fewer_seconds_are_better_where_less_is_better(void **state) {
  (void)state;
  assert_change(false, HZ_SPEED, 80, true);
  assert_change(false, HZ_SPEED, 120, false);
}

static void less_memory_is_better_in_every_lane(void **state) {
  (void)state;
  for (int more_is_better = 0; more_is_better <= 1; more_is_better++) {
    assert_change(more_is_better, HZ_PEAK, 80000, true);
    assert_change(more_is_better, HZ_REST, 120000, false);
  }
}

static void faults_and_cpu_time_are_not_compared(void **state) {
  (void)state;
  struct hz_result *after = new_run(true);
  set(after, OURS, HZ_FAULTS, 1000);
  set(after, OURS, HZ_USER, 1000);
  assert_none(changes_since(new_run(true), after), 12);
}

static void differences_too_small_to_matter_are_not_told(void **state) {
  (void)state;
  static const struct {
    enum hz_figure figure;
    double before, after;
    size_t changes;
  } cases[] = {
      {HZ_SPEED, 100, 101.9, 0}, {HZ_SPEED, 100, 102.1, 1},  {HZ_PEAK, 1000, 1250, 0},
      {HZ_PEAK, 1000, 1260, 1},  {HZ_REST, 1e6, 1.019e6, 0}, {HZ_REST, 1e6, 1.021e6, 1},
  };
  for (size_t i = 0; i < hz_count_of(cases); i++) {
    struct hz_result *before = new_run(true), *after = new_run(true);
    before->lanes[0]->cells[OURS].figures[cases[i].figure] =
        (struct hz_sample){.count = 2, .values = {cases[i].before, cases[i].before}};
    after->lanes[0]->cells[OURS].figures[cases[i].figure] =
        (struct hz_sample){.count = 2, .values = {cases[i].after, cases[i].after}};
    struct hz_changes changes = changes_since(before, after);
    assert_int_equal(changes.count, cases[i].changes);
    hz_changes_free(&changes);
  }
}

static void differences_within_the_spreads_are_not_told(void **state) {
  (void)state;
  struct hz_result *after = new_run(true);
  after->lanes[0]->cells[OURS].figures[HZ_SPEED] =
      (struct hz_sample){.count = 5, .values = {60, 80, 110, 79, 81}};
  assert_none(changes_since(new_run(true), after), 12);
}

static void a_single_round_is_no_evidence(void **state) {
  (void)state;
  struct hz_result *after = new_run(true);
  after->lanes[0]->cells[OURS].figures[HZ_SPEED] = (struct hz_sample){.count = 1, .values = {1}};
  assert_none(changes_since(new_run(true), after), 12);
}

// ---- The machine --------------------------------------------------------------------------------

static void a_machine_that_is_slower_for_all_changes_nothing(void **state) {
  (void)state;
  for (int more_is_better = 0; more_is_better <= 1; more_is_better++) {
    struct hz_result *after = new_run(more_is_better);
    for (size_t i = 0; i <= PEERS; i++) set(after, i, HZ_SPEED, 80);
    assert_none(changes_since(new_run(more_is_better), after), 12);
  }
}

static void ours_unchanged_on_a_faster_machine_is_worse(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  for (size_t i = 1; i <= PEERS; i++) set(after, i, HZ_SPEED, 125);
  struct hz_changes changes = changes_since(before, after);
  assert_int_equal(changes.count, 1);
  assert_false(changes.rows[0].better);
  assert_near(changes.rows[0].before, 100);
  assert_near(changes.rows[0].machine, 1.25);
  hz_changes_free(&changes);
}

static void spreads_are_scaled_by_the_machine_too(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  before->lanes[0]->cells[OURS].figures[HZ_SPEED] =
      (struct hz_sample){.count = 5, .values = {100, 103, 97, 101, 99}};
  set(after, OURS, HZ_SPEED, 1025);
  for (size_t i = 1; i <= PEERS; i++) set(after, i, HZ_SPEED, 1000);
  assert_none(changes_since(before, after), 12);
}

static void memory_is_not_scaled_by_the_machine(void **state) {
  (void)state;
  struct hz_result *after = new_run(true);
  for (size_t i = 0; i <= PEERS; i++) set(after, i, HZ_PEAK, 120000);
  struct hz_changes changes = changes_since(new_run(true), after);
  assert_int_equal(changes.count, 1 + PEERS);
  hz_changes_free(&changes);
}

static void two_others_are_too_few_to_know_the_machine_by(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  before->party_count = after->party_count = PEERS;
  for (size_t i = 0; i < PEERS; i++) set(after, i, HZ_SPEED, 80);
  struct hz_changes changes = hz_changes_find(before, after);
  assert_int_equal(changes.count, 3);
  before->party_count = after->party_count = 1 + PEERS; // their texts are to be freed, too
  hz_result_free(before);
  hz_result_free(after);
  hz_changes_free(&changes);
}

// ---- What cannot be compared --------------------------------------------------------------------

static void failed_cells_are_not_compared(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  set(after, OURS, HZ_SPEED, 10);
  set(after, 1, HZ_SPEED, 10);
  after->lanes[0]->cells[OURS].failure = hz_text("no.");
  before->lanes[0]->cells[1].failure = hz_text("no.");
  assert_none(changes_since(before, after), 6);
}

static void figures_of_one_run_only_are_not_compared(void **state) {
  (void)state;
  struct hz_result *after = new_run(true);
  after->lanes[0]->cells[OURS].figures[HZ_REST].count = 0;
  assert_none(changes_since(new_run(true), after), 11);
}

static void lanes_and_allocators_of_one_run_only_are_named(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  bench_add_lane(before, "old_lane", true);
  bench_add_lane(after, "new_lane", true);
  bench_set_text(&before->parties[3].name, "hoard");
  bench_set_text(&after->parties[3].name, "snmalloc");
  struct hz_changes changes = changes_since(before, after);
  assert_string_equal(changes.only_one, "new_lane, old_lane, snmalloc, hoard");
  assert_none(changes, 9);
}

static void allocators_are_matched_by_name_not_by_place(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  set(before, 1, HZ_SPEED, 50);
  set(after, 2, HZ_SPEED, 50);
  bench_set_text(&after->parties[1].name, "jemalloc");
  bench_set_text(&after->parties[2].name, "glibc");
  assert_none(changes_since(before, after), 12);
}

// ---- Print --------------------------------------------------------------------------------------

static void changes_are_printed_largest_first_with_their_count(void **state) {
  (void)state;
  struct hz_result *before = new_run(true), *after = new_run(true);
  set(after, OURS, HZ_SPEED, 80);
  set(after, OURS, HZ_PEAK, 50000);
  bench_add_lane(after, "new_lane", true);
  struct hz_changes changes = hz_changes_find(before, after);
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  hz_changes_print(&changes, out);
  assert_int_equal(fclose(out), 0);
  assert_int_equal(strncmp(text, "better lane ", 12), 0);
  assert_has(text, "KiB (-50.0 %)\nworse  lane ");
  assert_has(text, "Mops/s (-20.0 %)\n2 of 12 figures changed beyond noise.\n");
  assert_has(text, "In one of the two runs only: new_lane.\n");
  free(text);
  hz_changes_free(&changes);
  hz_result_free(before);
  hz_result_free(after);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_runs_have_no_changes),
      cmocka_unit_test(ours_slower_alone_is_one_change_for_the_worse),
      cmocka_unit_test(more_speed_is_better_where_more_is_better),
      cmocka_unit_test(fewer_seconds_are_better_where_less_is_better),
      cmocka_unit_test(less_memory_is_better_in_every_lane),
      cmocka_unit_test(faults_and_cpu_time_are_not_compared),
      cmocka_unit_test(differences_too_small_to_matter_are_not_told),
      cmocka_unit_test(differences_within_the_spreads_are_not_told),
      cmocka_unit_test(a_single_round_is_no_evidence),
      cmocka_unit_test(a_machine_that_is_slower_for_all_changes_nothing),
      cmocka_unit_test(ours_unchanged_on_a_faster_machine_is_worse),
      cmocka_unit_test(spreads_are_scaled_by_the_machine_too),
      cmocka_unit_test(memory_is_not_scaled_by_the_machine),
      cmocka_unit_test(two_others_are_too_few_to_know_the_machine_by),
      cmocka_unit_test(failed_cells_are_not_compared),
      cmocka_unit_test(figures_of_one_run_only_are_not_compared),
      cmocka_unit_test(lanes_and_allocators_of_one_run_only_are_named),
      cmocka_unit_test(allocators_are_matched_by_name_not_by_place),
      cmocka_unit_test(changes_are_printed_largest_first_with_their_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
