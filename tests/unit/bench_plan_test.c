// tools/bench/lanes and tools/bench/plan: the lanes as rows, and carrying them out with scripts in
// place of programs.
#include "tools/bench/plan.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/bench_support.h"
#include "tools/bench/measure.h"

// ---- Lanes --------------------------------------------------------------------------------------

static const struct hz_lane *lane_named(const char *name) {
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(lanes[i].name, name) == 0) return &lanes[i];
  return NULL;
}

static void lanes_have_names_of_their_own_that_fit(void **state) {
  (void)state;
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  assert_in_range(count, 1, HZ_LANES_MOST);
  for (size_t i = 0; i < count; i++) {
    assert_ptr_equal(lane_named(lanes[i].name), &lanes[i]);
    assert_in_range(strlen(lanes[i].name), 1, sizeof lanes[i].name - 2);
    assert_in_range(strlen(lanes[i].command), 1, sizeof lanes[i].command - 2);
    assert_true(*lanes[i].about && *lanes[i].unit);
  }
}

static void lanes_of_a_group_follow_each_other(void **state) {
  (void)state;
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 1; i < count; i++)
    for (size_t k = 0; k < i && strcmp(lanes[i].group, lanes[i - 1].group) != 0; k++)
      if (strcmp(lanes[i].group, lanes[k].group) == 0)
        fail_msg("%s is apart from its group, %s", lanes[i].name, lanes[i].group);
}

static void lanes_of_one_program_take_the_seconds_of_the_plan(void **state) {
  (void)state;
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; i < count; i++)
    if (lanes[i].kind == HZ_LANE_PROGRAM) assert_has(lanes[i].command, " seconds=%s ");
}

static bool writes_by_nature(const struct hz_lane *lane) {
  static const char *const names[] = {"grow", "zeroed", "redislike", "plateau"};
  for (size_t i = 0; i < hz_count_of(names); i++)
    if (strcmp(lane->name, names[i]) == 0) return true;
  return false;
}

static void untouched_lanes_have_a_touched_twin(void **state) {
  (void)state;
  size_t count, twins = 0;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; i < count; i++) {
    if (lanes[i].kind != HZ_LANE_PROGRAM || strstr(lanes[i].command, "touch=")) continue;
    char *name = hz_text("%s_touch", lanes[i].name);
    char *command = hz_text("%s touch=64", lanes[i].command);
    const struct hz_lane *twin = lane_named(name);
    assert_int_equal(twin == NULL, writes_by_nature(&lanes[i]));
    if (twin) assert_string_equal(twin->command, command);
    if (twin) assert_string_equal(twin->group, lanes[i].group);
    twins += twin != NULL;
    free(name);
    free(command);
  }
  assert_true(twins > 30);
}

// ---- A plan with scripts ------------------------------------------------------------------------

static struct hz_plan plan;
static struct hz_result *result;
static struct hz_lane rows[4];

#define SERVED "served=/lib/x86_64-linux-gnu/libc.so.6"

static struct hz_variant *add_variant(const char *name) {
  struct hz_variant *variant = &plan.variants.rows[plan.variants.count++];
  *variant = (struct hz_variant){.name = hz_text("%s", name),
                                 .library = hz_text("%s", ""),
                                 .profile = hz_text("%s", name),
                                 .about = hz_text("%s", ""),
                                 .asked = true};
  return variant;
}

static void add_lane(const char *name, enum hz_lane_kind kind, const char *command) {
  struct hz_lane *row = &rows[plan.lane_count];
  *row = (struct hz_lane){.group = "group", .about = "about", .unit = "Mops/s", .kind = kind};
  row->more_is_better = true;
  hz_format(row->name, sizeof row->name, "%s", name);
  hz_format(row->command, sizeof row->command, "%s", command);
  plan.lanes[plan.lane_count++] = row;
}

// Three variants, whose profiles have their names.
static int set_up_plan(void **state) {
  (void)state;
  plan = (struct hz_plan){.rounds = 3, .seconds = 0.125, .bin = "my bin"};
  mkdir("my bin", 0700);
  unlink("order.txt");
  add_variant("a");
  add_variant("b");
  add_variant("c");
  return 0;
}

static int tear_down_plan(void **state) {
  (void)state;
  hz_variants_free(&plan.variants);
  hz_result_free(result);
  result = NULL;
  return 0;
}

// A lane of a program, a script that notes the profile before it goes on with `text`.
static void plan_program(const char *text) {
  char *whole = hz_text("echo \"$HAKOZUNA_PROFILE\" >> order.txt\n%s", text);
  bench_write_script("my bin/program", whole);
  free(whole);
  add_lane("lane", HZ_LANE_PROGRAM, "program seconds=%s x=1");
}

// What was said on stderr; *good: what hz_plan_carry_out returned.
static const char *carry_out(bool *good) {
  result = hz_result_new();
  hz_plan_prepare(&plan, result);
  bench_catch_stderr();
  *good = hz_plan_carry_out(&plan, result);
  return bench_end_stderr();
}

static void carry_out_well(void) {
  bool good;
  assert_string_equal(carry_out(&good), "");
  assert_true(good);
}

static const struct hz_cell *cell_of(size_t variant) {
  return &result->lanes[0]->cells[variant];
}

static void assert_values(const struct hz_sample *sample, size_t count, double value) {
  assert_int_equal(sample->count, count);
  for (size_t i = 0; i < count; i++) assert_near(sample->values[i], value);
}

// Everything else went on in all three rounds.
static void assert_only_b_failed(const char *sentence) {
  assert_has(cell_of(1)->failure, sentence);
  for (size_t i = 0; i < 3; i += 2) {
    assert_null(cell_of(i)->failure);
    assert_int_equal(cell_of(i)->figures[HZ_SPEED].count, 3);
  }
}

// ---- Carrying it out ----------------------------------------------------------------------------

static void what_a_program_says_fills_its_cell_round_by_round(void **state) {
  (void)state;
  plan_program("echo mops=12.5 peak_kib=100 rest_kib=50 faults=3 user_s=0.5 system_s=0.25\n"
               "echo rest0_kib=90 rest1_kib=70\n"
               "echo \"args=$* " SERVED "\"\n"
               "[ \"${*%seed=[123]}\" = \"seconds=0.125 x=1 rest_ms=10 \" ]");
  carry_out_well();
  static const double expected[HZ_FIGURES] = {
      [HZ_SPEED] = 12.5, [HZ_PEAK] = 100, [HZ_REST] = 50,  [HZ_FREED] = 90,
      [HZ_EARLY] = 70,   [HZ_FAULTS] = 3, [HZ_USER] = 0.5, [HZ_SYSTEM] = 0.25};
  for (size_t i = 0; i < 3; i++)
    for (size_t f = 0; f < HZ_FIGURES; f++) assert_values(&cell_of(i)->figures[f], 3, expected[f]);
  assert_string_equal(result->lanes[0]->command, "program seconds=0.125 x=1 rest_ms=10 seed=1");
  assert_int_equal(result->rounds, 3);
  assert_false(result->interrupted);
}

static void what_a_program_does_not_say_is_the_kernels_count(void **state) {
  (void)state;
  plan_program("echo mops=1 " SERVED);
  carry_out_well();
  const struct hz_sample *figures = cell_of(0)->figures;
  assert_int_equal(figures[HZ_REST].count, 0);
  assert_int_equal(figures[HZ_PEAK].count, 3);
  assert_true(figures[HZ_PEAK].values[2] > 100 && figures[HZ_FAULTS].values[2] > 10);
}

static void allocators_are_interleaved_and_take_turns_in_going_first(void **state) {
  (void)state;
  plan_program("echo mops=1 " SERVED);
  carry_out_well();
  assert_string_equal(bench_read_file("order.txt"), "a\nb\nc\nb\nc\na\nc\na\nb\n");
}

static void a_missing_allocator_is_left_out(void **state) {
  (void)state;
  plan_program("echo mops=1 " SERVED);
  plan.variants.rows[1].missing = hz_text("nobody has it.");
  bool good;
  assert_string_equal(carry_out(&good), "");
  assert_false(good); // it was asked for
  assert_string_equal(bench_read_file("order.txt"), "a\nc\nc\na\nc\na\n");
  assert_string_equal(result->parties[1].missing, "nobody has it.");
  assert_null(cell_of(1)->failure);
  assert_int_equal(cell_of(1)->figures[HZ_SPEED].count, 0);
}

static void an_exit_code_is_told_at_once_and_ends_its_cell_alone(void **state) {
  (void)state;
  plan_program("[ $HAKOZUNA_PROFILE != b ] || { echo one >&2; echo two >&2; exit 1; }\n"
               "echo mops=1 " SERVED);
  bool good;
  assert_string_equal(carry_out(&good), "hakozuna: lane, b, round 1: my bin/program ended with "
                                        "exit code 1: two\n");
  assert_false(good);
  assert_only_b_failed("my bin/program ended with exit code 1: two");
  assert_string_equal(bench_read_file("order.txt"), "a\nb\nc\nc\na\nc\na\n");
}

static void a_failure_that_nobody_asked_about_is_told_and_does_not_count(void **state) {
  (void)state;
  bool good;
  plan_program("echo mops=1 " SERVED "; [ $HAKOZUNA_PROFILE != b ]");
  plan.variants.rows[1].asked = false;
  assert_has(carry_out(&good), "lane, b, round 1: ");
  assert_true(good);
  assert_only_b_failed("ended with exit code 1 and said nothing.");
}

static void a_program_that_another_allocator_served_is_a_failure(void **state) {
  (void)state;
  plan_program("[ $HAKOZUNA_PROFILE != b ] || { echo mops=9 served=/x/libother.so; exit; }\n"
               "echo mops=1 " SERVED);
  bool good;
  assert_has(carry_out(&good), "lane, b, round 1: the program was served by /x/libother.so");
  assert_false(good);
  assert_only_b_failed("not by the C library: the figure would be another allocator's.");
}

// The loader says so on stderr and goes on without it.
static void a_library_that_cannot_be_preloaded_is_a_failure(void **state) {
  (void)state;
  bool good;
  plan_program("echo mops=1 " SERVED);
  bench_write_file("libno.so", "no library", 0700);
  bench_set_text(&plan.variants.rows[1].library, "./libno.so");
  carry_out(&good);
  assert_false(good);
  assert_only_b_failed("libc.so.6, not by ./libno.so: the figure would be another allocator's.");
}

static void a_program_that_names_no_speed_or_nobody_is_a_failure(void **state) {
  (void)state;
  plan_program("[ $HAKOZUNA_PROFILE != b ] || exec echo speed=1 " SERVED "\n"
               "[ $HAKOZUNA_PROFILE != c ] || exec echo mops=1\necho mops=1 " SERVED);
  bool good;
  carry_out(&good);
  assert_false(good);
  assert_null(cell_of(0)->failure);
  assert_has(cell_of(1)->failure, "the program printed no mops=; its output was: speed=1");
  assert_has(cell_of(2)->failure, "served by nobody that it would name");
}

static void real_programs_are_timed_with_their_settings_and_input(void **state) {
  (void)state;
  bench_write_file("input.txt", "world\n", 0600);
  bench_write_script("real.sh", "read line; echo \"$A $B $1 $line\" > said.txt; echo mops=7");
  add_lane("lane", HZ_LANE_COMMAND, "A=1 B=2 ./real.sh c=3");
  rows[0].input = "input.txt";
  carry_out_well();
  assert_string_equal(bench_read_file("said.txt"), "1 2 c=3 world\n");
  assert_int_equal(cell_of(2)->figures[HZ_SPEED].count, 3);
  assert_true(cell_of(2)->figures[HZ_SPEED].values[0] > 0);
  assert_true(cell_of(2)->figures[HZ_SPEED].values[0] < 7);
}

// A server needs 0.3 s at least, whatever the plan says.
static void services_are_told_the_allocator_and_tell_their_speed(void **state) {
  (void)state;
  bench_write_script("service.sh", "echo \"$HZ_BENCH_PROFILE$HAKOZUNA_PROFILE $1\" >> order.txt\n"
                                   "echo speed=3 " SERVED);
  plan.rounds = 1;
  add_lane("lane", HZ_LANE_SERVICE, "./service.sh %s");
  carry_out_well();
  assert_string_equal(bench_read_file("order.txt"), "a 0.3\nb 0.3\nc 0.3\n");
  assert_values(&cell_of(0)->figures[HZ_SPEED], 1, 3);
}

// callgrind's part is taken by a script that counts 1000 instructions and 7 for each pair.
static void instructions_are_counted_once_without_those_of_the_start(void **state) {
  (void)state;
  bench_write_script("valgrind", "echo \"$1 $3 $4\" >> order.txt; echo " SERVED "\n"
                                 "echo \"Collected : $((1000 + 7 * ${5#pairs=}))\" >&2");
  char *path = hz_text("%s:%s", bench_folder, getenv("PATH"));
  char *before = hz_text("%s", getenv("PATH"));
  setenv("PATH", path, 1);
  plan.variants.rows[1].missing = hz_text("no.");
  plan.variants.rows[2].missing = hz_text("no.");
  plan.variants.rows[1].asked = plan.variants.rows[2].asked = false;
  add_lane("lane", HZ_LANE_INSTRUCTIONS, "pair loop=single");
  carry_out_well();
  setenv("PATH", before, 1);
  free(path);
  free(before);
  assert_values(&cell_of(0)->figures[HZ_SPEED], 2, 7);
  static const char line[] = "--tool=callgrind my bin/pair loop=single\n";
  char *lines = hz_text("%s%s%s", line, line, line);
  assert_string_equal(bench_read_file("order.txt"), lines);
  free(lines);
}

// In a process of its own, because interrupts are remembered.
static void an_interrupt_keeps_what_is_done(void **state) {
  (void)state;
  plan_program("echo mops=1 " SERVED "\nwc -l < order.txt > count.txt\nread -r lines < count.txt\n"
               "[ $lines != 5 ] || { kill -INT $CALLER; sleep 100; }");
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char caller[32];
    hz_format(caller, sizeof caller, "%ld", (long)getpid());
    setenv("CALLER", caller, 1);
    hz_catch_interrupts();
    carry_out_well();
    bool right = result->interrupted && cell_of(0)->figures[HZ_SPEED].count == 1 &&
                 cell_of(1)->figures[HZ_SPEED].count == 2 &&
                 cell_of(2)->figures[HZ_SPEED].count == 1 && !cell_of(2)->failure;
    _exit(right ? 0 : 2);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_string_equal(bench_read_file("order.txt"), "a\nb\nc\nb\nc\n");
}

// ---- How long it takes --------------------------------------------------------------------------

static void plan_all_lanes(void) {
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; i < count; i++) plan.lanes[plan.lane_count++] = &lanes[i];
}

static void the_seconds_of_all_runs_fit_into_the_time_given(void **state) {
  (void)state;
  plan_all_lanes();
  double programs = 0;
  for (size_t i = 0; i < plan.lane_count; i++) programs += plan.lanes[i]->kind == HZ_LANE_PROGRAM;
  double hour = hz_plan_seconds_for(&plan, 3600), two = hz_plan_seconds_for(&plan, 7200);
  assert_true(hour > 0);
  assert_true(hour * programs * 3 * 3 < 3600);
  assert_near((two - hour) * programs * 3 * 3, 3600);
  plan.quick = true;
  assert_true(hz_plan_seconds_for(&plan, 3600) > hour);
}

static void a_missing_allocator_takes_no_time(void **state) {
  (void)state;
  plan_all_lanes();
  double three = hz_plan_seconds_for(&plan, 3600);
  add_variant("d")->missing = hz_text("no.");
  assert_near(hz_plan_seconds_for(&plan, 3600), three);
  add_variant("e");
  assert_true(hz_plan_seconds_for(&plan, 3600) < three);
}

static void a_plan_without_programs_takes_what_it_takes(void **state) {
  (void)state;
  assert_near(hz_plan_seconds_for(&plan, 60), 60);
  add_lane("lane", HZ_LANE_COMMAND, "true");
  assert_near(hz_plan_seconds_for(&plan, 60), 60);
}

#define PLAN_TEST(f) cmocka_unit_test_setup_teardown(f, set_up_plan, tear_down_plan)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lanes_have_names_of_their_own_that_fit),
      cmocka_unit_test(lanes_of_a_group_follow_each_other),
      cmocka_unit_test(lanes_of_one_program_take_the_seconds_of_the_plan),
      cmocka_unit_test(untouched_lanes_have_a_touched_twin),
      PLAN_TEST(what_a_program_says_fills_its_cell_round_by_round),
      PLAN_TEST(what_a_program_does_not_say_is_the_kernels_count),
      PLAN_TEST(allocators_are_interleaved_and_take_turns_in_going_first),
      PLAN_TEST(a_missing_allocator_is_left_out),
      PLAN_TEST(an_exit_code_is_told_at_once_and_ends_its_cell_alone),
      PLAN_TEST(a_failure_that_nobody_asked_about_is_told_and_does_not_count),
      PLAN_TEST(a_program_that_another_allocator_served_is_a_failure),
      PLAN_TEST(a_library_that_cannot_be_preloaded_is_a_failure),
      PLAN_TEST(a_program_that_names_no_speed_or_nobody_is_a_failure),
      PLAN_TEST(real_programs_are_timed_with_their_settings_and_input),
      PLAN_TEST(services_are_told_the_allocator_and_tell_their_speed),
      PLAN_TEST(instructions_are_counted_once_without_those_of_the_start),
      PLAN_TEST(an_interrupt_keeps_what_is_done),
      PLAN_TEST(the_seconds_of_all_runs_fit_into_the_time_given),
      PLAN_TEST(a_missing_allocator_takes_no_time),
      PLAN_TEST(a_plan_without_programs_takes_what_it_takes),
  };
  return cmocka_run_group_tests(tests, bench_enter_folder, bench_leave_folder);
}
