// tools/bench/measure: what a run of one command tells, what reaches the command, and what is left
// of it.
#include "tools/bench/measure.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/bench_support.h"

// The C library's own allocator: nothing is preloaded.
static const struct hz_variant none = {.name = "none", .library = "", .profile = ""};

static struct hz_measured m;

static void measure(const struct hz_measure_order *order) {
  free(m.failure);
  hz_measure(order, &m);
}

static void measure_script(const struct hz_variant *variant, enum hz_measure_how how,
                           char *script) {
  char *argv[] = {"sh", "-c", script, NULL};
  measure(&(struct hz_measure_order){.variant = variant, .argv = argv, .how = how});
}

// An orphan that nobody waits for is a zombie: gone, but its number is not.
static bool is_running(long process) {
  char *path = hz_text("/proc/%ld/stat", process);
  FILE *file = fopen(path, "re");
  free(path);
  char state = 'X';
  if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'X';
  if (file) fclose(file);
  return state != 'X' && state != 'Z';
}

// The process whose number the command printed. Dying takes a moment.
static void assert_dies(const char *printed) {
  long process = strtol(printed, NULL, 10);
  assert_true(process > 1);
  struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
  for (int i = 0; i < 1000 && is_running(process); i++) nanosleep(&moment, NULL);
  assert_false(is_running(process));
}

// ---- What a run tells ---------------------------------------------------------------------------

static void success_has_no_failure_and_takes_time(void **state) {
  (void)state;
  measure_script(&none, HZ_PRELOADED, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
  assert_null(m.failure);
  assert_int_equal(m.code, 0);
  assert_false(m.interrupted || m.opened);
  assert_true(m.wall_s > 0 && m.user_s + m.system_s > 0);
  assert_true(m.user_s + m.system_s < m.wall_s + 0.1);
  assert_true(m.peak_kib > 100 && m.faults > 10);
}

static void failure_tells_the_exit_code_and_the_last_words(void **state) {
  (void)state;
  measure_script(&none, HZ_PRELOADED, "echo out; echo one >&2; echo two >&2; echo >&2; exit 3");
  assert_int_equal(m.code, 3);
  assert_string_equal(m.out, "out\n");
  assert_string_equal(m.err, "one\ntwo");
  assert_string_equal(m.failure, "sh ended with exit code 3: two");
  measure_script(&none, HZ_PRELOADED, "exit 1");
  assert_string_equal(m.failure, "sh ended with exit code 1 and said nothing.");
}

static void a_signal_is_told_by_number_and_name(void **state) {
  (void)state;
  measure_script(&none, HZ_PRELOADED, "kill -TERM $$");
  assert_int_equal(m.code, 128 + SIGTERM);
  assert_has(m.failure, "sh was ended by signal 15 (Terminated)");
}

static void a_program_that_cannot_start_is_told(void **state) {
  (void)state;
  bench_write_file("plain.txt", "no program", 0600);
  char *missing[] = {"./nowhere", NULL}, *plain[] = {"./plain.txt", NULL};
  measure(&(struct hz_measure_order){.variant = &none, .argv = missing});
  assert_string_equal(m.failure, "./nowhere could not be started: No such file or directory.");
  measure(&(struct hz_measure_order){.variant = &none, .argv = plain});
  assert_string_equal(m.failure, "./plain.txt could not be started: Permission denied.");
}

// Lines with one number each, as seq prints them, from the first whole one on.
static void assert_counts_on(const char *text) {
  const char *line = strchr(text, '\n');
  assert_non_null(line);
  for (long last = 0, number; sscanf(line, "%ld", &number) == 1; last = number) {
    if (last) assert_int_equal(number, last + 1);
    line = strchr(line + 1, '\n');
    assert_non_null(line);
  }
}

static void much_output_keeps_its_beginning_or_its_end(void **state) {
  (void)state;
  measure_script(&none, HZ_PRELOADED, "seq 200000 & (seq 200000; echo last) >&2; wait; exit 1");
  assert_int_equal(m.code, 1);
  assert_int_equal(strlen(m.out), HZ_MEASURE_OUTPUT_BYTES - 1);
  assert_int_equal(strncmp(m.out, "1\n2\n3\n", 6), 0);
  assert_true(strlen(m.err) > HZ_MEASURE_OUTPUT_BYTES - 8);
  assert_has(m.err, "\n199999\n200000\nlast");
  assert_counts_on(m.err);
  assert_string_equal(m.failure, "sh ended with exit code 1: last");
}

static void peak_memory_is_not_that_of_this_process(void **state) {
  (void)state;
  size_t bytes = 64 * HZ_MIB;
  char *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(held, MAP_FAILED);
  memset(held, 1, bytes);
  munmap(held, bytes);
  char *argv[] = {"true", NULL};
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv});
  assert_null(m.failure);
  assert_true(m.peak_kib > 100 && m.peak_kib < 48 * 1024);
}

// ---- What is left of it -------------------------------------------------------------------------

static void a_command_over_its_limit_may_clean_up_first(void **state) {
  (void)state;
  char *argv[] = {"sh", "-c",
                  "trap 'echo gone > cleaned.txt; exit' TERM; while :; do sleep 0.05; done", NULL};
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv, .limit_s = 1});
  assert_string_equal(m.failure, "sh was killed after 1 s.");
  assert_string_equal(bench_read_file("cleaned.txt"), "gone\n");
}

static void a_command_over_its_limit_is_killed_with_all_that_it_started(void **state) {
  (void)state;
  char *argv[] = {"sh", "-c", "sleep 100 & echo $!; sleep 100", NULL};
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv, .limit_s = 2});
  assert_string_equal(m.failure, "sh was killed after 2 s.");
  assert_false(m.interrupted);
  assert_dies(m.out);
}

static void what_a_command_leaves_behind_is_killed(void **state) {
  (void)state;
  measure_script(&none, HZ_PRELOADED, "sleep 100 & echo $!");
  assert_null(m.failure);
  assert_true(m.wall_s < 50);
  assert_dies(m.out);
}

static void a_command_that_ends_its_whole_group_is_a_failure(void **state) {
  (void)state;
  measure_script(&none, HZ_PRELOADED, "kill -KILL 0");
  assert_string_equal(m.failure, "sh ended the process that watched it, too.");
  assert_false(m.interrupted);
}

// In a process of its own, because interrupts are remembered.
static void an_interrupt_ends_the_run_and_is_reported(void **state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char *settings[] = {hz_text("CALLER=%ld", (long)getpid()), NULL};
    char *argv[] = {"sh", "-c", "kill -INT $CALLER; sleep 100", NULL};
    hz_catch_interrupts();
    if (hz_interrupted()) _exit(1);
    hz_measure(
        &(struct hz_measure_order){
            .variant = &none, .argv = argv, .settings = settings, .limit_s = 50},
        &m);
    _exit(m.interrupted && hz_interrupted() && !m.failure ? 0 : 2);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_false(hz_interrupted());
}

// ---- What reaches it ----------------------------------------------------------------------------

static char library[PATH_MAX]; // a copy that nobody else opens

// libm's file, under another name.
static void copy_library(void) {
  struct link_map *map;
  void *libm = dlopen("libm.so.6", RTLD_NOW);
  assert_non_null(libm);
  assert_int_equal(dlinfo(libm, RTLD_DI_LINKMAP, &map), 0);
  char *argv[] = {"cp", map->l_name, "libcopy.so", NULL};
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv});
  assert_null(m.failure);
  assert_non_null(realpath("libcopy.so", library));
  dlclose(libm);
}

static char show_settings[] =
    "env | grep -E '^(LD_PRELOAD|HAKOZUNA_|HZ_BENCH_|MALLOC_|GLIBC)' | sort; :";

// As a user has it who has tried things out in the same shell.
static void set_many(void) {
  static const char *const names[] = {"HAKOZUNA_STATS",   "HAKOZUNA_PROFILE", "HAKOZUNA_ON_MISUSE",
                                      "HAKOZUNA_CONFIG",  "HAKOZUNA_LIB",     "HZ_BENCH_PRELOAD",
                                      "HZ_BENCH_PROFILE", "LD_PRELOAD",       "MALLOC_ARENA_MAX",
                                      "GLIBC_TUNABLES"};
  for (size_t i = 0; i < hz_count_of(names); i++) setenv(names[i], "/mine", 1);
  setenv("XDG_CONFIG_HOME", bench_folder, 1); // and that is not to be read
  bench_write_file("hakozuna.ini", "[hakozuna]\nprofile = nonsense\n", 0600);
}

static void unset_many(void) {
  clearenv();
  setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
}

static void the_variant_reaches_a_preloaded_command_and_nothing_else_does(void **state) {
  (void)state;
  struct hz_variant variant = {.library = library, .profile = "hz3-toy"};
  copy_library();
  set_many();
  measure_script(&variant, HZ_PRELOADED, show_settings);
  char *expected =
      hz_text("HAKOZUNA_CONFIG=/dev/null\nHAKOZUNA_PROFILE=hz3-toy\nLD_PRELOAD=%s\n", library);
  assert_string_equal(m.out, expected);
  free(expected);
  measure_script(&none, HZ_PRELOADED, show_settings);
  assert_string_equal(m.out, "HAKOZUNA_CONFIG=/dev/null\n");
  unset_many();
}

static void nothing_is_set_where_there_is_no_configuration_file(void **state) {
  (void)state;
  if (access("/etc/hakozuna.ini", F_OK) == 0) skip();
  unlink("hakozuna.ini");
  setenv("XDG_CONFIG_HOME", bench_folder, 1);
  measure_script(&none, HZ_PRELOADED, show_settings);
  assert_string_equal(m.out, "");
  unset_many();
}

static void a_told_command_finds_the_variant_in_variables_of_its_own(void **state) {
  (void)state;
  struct hz_variant variant = {.library = library, .profile = "hz3-toy"};
  copy_library();
  set_many();
  measure_script(&variant, HZ_TOLD, show_settings);
  char *expected = hz_text(
      "HAKOZUNA_CONFIG=/dev/null\nHZ_BENCH_PRELOAD=%s\nHZ_BENCH_PROFILE=hz3-toy\n", library);
  assert_string_equal(m.out, expected);
  free(expected);
  measure_script(&none, HZ_TOLD, show_settings);
  assert_string_equal(m.out, "HAKOZUNA_CONFIG=/dev/null\nHZ_BENCH_PRELOAD=\nHZ_BENCH_PROFILE=\n");
  assert_string_equal(getenv("HAKOZUNA_STATS"), "/mine");
  unset_many();
}

static void settings_reach_the_command_and_not_this_process(void **state) {
  (void)state;
  char *settings[] = {"BENCH_A=1 2", "BENCH_B=", NULL};
  char *argv[] = {"sh", "-c", "echo \"<$BENCH_A|${BENCH_B-unset}>\"", NULL};
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv, .settings = settings});
  assert_string_equal(m.out, "<1 2|>\n");
  assert_null(getenv("BENCH_A"));
}

static void stdin_is_the_input_file_or_empty(void **state) {
  (void)state;
  char *argv[] = {"cat", NULL};
  bench_write_file("input.txt", "one\ntwo\n", 0600);
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv, .input = "input.txt"});
  assert_string_equal(m.out, "one\ntwo\n");
  measure(&(struct hz_measure_order){.variant = &none, .argv = argv});
  assert_null(m.failure);
  assert_string_equal(m.out, "");
}

static void a_library_is_opened_exactly_if_the_loader_opens_it(void **state) {
  (void)state;
  struct hz_variant variant = {.library = library, .profile = ""};
  copy_library();
  measure_script(&variant, HZ_PRELOADED, ":");
  assert_true(m.opened);
  measure_script(&variant, HZ_TOLD, ":");
  assert_false(m.opened);
  measure_script(&variant, HZ_TOLD, "LD_PRELOAD=$HZ_BENCH_PRELOAD ls >/dev/null");
  assert_true(m.opened);
  measure_script(&none, HZ_PRELOADED, ":");
  assert_false(m.opened);
}

// ---- What it printed ----------------------------------------------------------------------------

static void figures_are_found_at_the_beginning_of_words(void **state) {
  (void)state;
  double figure = -1;
  static const char text[] = "notmops=1 mops_all=2 mops = 3\nx:mops=4\tmops=5.5e1 mops=6 rest=-1";
  assert_true(hz_find_figure(text, "mops", &figure));
  assert_near(figure, 55);
  assert_true(hz_find_figure(text, "rest", &figure));
  assert_near(figure, -1);
  assert_true(hz_find_figure("mops=7Mops", "mops", &figure));
  assert_near(figure, 7);
}

static void what_is_no_finite_number_is_no_figure(void **state) {
  (void)state;
  static const char *const texts[] = {"",       "mops",   "mops=",    "mops=\n5", "mops= 5",
                                      "mops=x", "Mops=5", "mops=nan", "mops=inf", "mops=1e999"};
  for (size_t i = 0; i < hz_count_of(texts); i++) {
    double figure = 0;
    if (hz_find_figure(texts[i], "mops", &figure)) fail_msg("%s: %g", texts[i], figure);
  }
}

static void words_are_cut_to_their_buffer(void **state) {
  (void)state;
  char word[8] = "before";
  assert_false(hz_find_word("unserved=1", "served", word, sizeof word));
  assert_string_equal(word, "before");
  assert_true(hz_find_word("a served=/b/c.so\nd", "served", word, sizeof word));
  assert_string_equal(word, "/b/c.so");
  assert_true(hz_find_word("served=/b/longer", "served", word, sizeof word));
  assert_string_equal(word, "/b/long");
  assert_true(hz_find_word("served= x", "served", word, sizeof word));
  assert_string_equal(word, "");
}

static int leave(void **state) {
  free(m.failure);
  return bench_leave_folder(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(success_has_no_failure_and_takes_time),
      cmocka_unit_test(failure_tells_the_exit_code_and_the_last_words),
      cmocka_unit_test(a_signal_is_told_by_number_and_name),
      cmocka_unit_test(a_program_that_cannot_start_is_told),
      cmocka_unit_test(much_output_keeps_its_beginning_or_its_end),
      cmocka_unit_test(peak_memory_is_not_that_of_this_process),
      cmocka_unit_test(a_command_over_its_limit_may_clean_up_first),
      cmocka_unit_test(a_command_over_its_limit_is_killed_with_all_that_it_started),
      cmocka_unit_test(what_a_command_leaves_behind_is_killed),
      cmocka_unit_test(a_command_that_ends_its_whole_group_is_a_failure),
      cmocka_unit_test(an_interrupt_ends_the_run_and_is_reported),
      cmocka_unit_test(the_variant_reaches_a_preloaded_command_and_nothing_else_does),
      cmocka_unit_test(nothing_is_set_where_there_is_no_configuration_file),
      cmocka_unit_test(a_told_command_finds_the_variant_in_variables_of_its_own),
      cmocka_unit_test(settings_reach_the_command_and_not_this_process),
      cmocka_unit_test(stdin_is_the_input_file_or_empty),
      cmocka_unit_test(a_library_is_opened_exactly_if_the_loader_opens_it),
      cmocka_unit_test(figures_are_found_at_the_beginning_of_words),
      cmocka_unit_test(what_is_no_finite_number_is_no_figure),
      cmocka_unit_test(words_are_cut_to_their_buffer),
  };
  return cmocka_run_group_tests(tests, bench_enter_folder, leave);
}
