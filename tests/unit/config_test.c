// config/load: where each value comes from, and what is said about wrong ones.
#include "config/load.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/nearest.h"
#include "config/options.h"
#include "config/show.h"
#include "config/value.h"

// ---- A line of our own, so that no test depends on a real line's rows ---------------------------

static uint64_t batch, spill_bytes, wait_ms, eager, mode;
static const char *const mode_names[] = {"near", "far", NULL};

static const struct hz_option line_rows[] = {
    {"toy", "batch", HZ_OPTION_COUNT, "blocks", 64, 1, 512, NULL, &batch, "Blocks per exchange."},
    {"toy", "spill_bytes", HZ_OPTION_BYTES, "bytes", 64 * HZ_KIB, 0, HZ_GIB, NULL, &spill_bytes,
     "Bytes."},
    {"toy", "wait_ms", HZ_OPTION_MS, "ms", 250, 0, 10000, NULL, &wait_ms, "Time."},
    {"toy", "eager", HZ_OPTION_BOOL, "", 0, 0, 0, NULL, &eager, "Switch."},
    {"toy", "mode", HZ_OPTION_ENUM, "", 0, 0, 0, mode_names, &mode, "Choice."},
};

enum { BATCH, SPILL, WAIT, EAGER, MODE };

static const struct hz_setting wide_settings[] = {
    {"toy", "batch", 256}, {"purge", "idle_ms", 2000}, {NULL, NULL, 0}};
static const struct hz_setting plain_settings[] = {{NULL, NULL, 0}};
static const struct hz_profile plain = {"toy", "Plain.", "Nothing.", plain_settings};
static const struct hz_profile wide = {"toy-wide", "Wide.", "Memory for time.", wide_settings};
static const struct hz_profile_entry profiles[] = {{"toy", &plain}, {"toy", &wide}};

// ---- The fixture: a folder, a configuration file in it, an environment --------------------------

static char folder[] = "/tmp/hakozuna_config_test_XXXXXX";
static char user_path[128], system_path[128];
static char said[4096];
static struct hz_config config;

static void take_problem(void *context, const char *sentence) {
  (void)context;
  assert_true(strlen(said) + strlen(sentence) + 2 < sizeof said);
  strcat(said, sentence);
  strcat(said, "\n");
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static struct hz_option_group groups[2];

static struct hz_config_input input_of(const char *const *environment) {
  groups[0] = hz_common_options;
  groups[1] = (struct hz_option_group){line_rows, hz_count_of(line_rows)};
  return (struct hz_config_input){
      .environment = environment,
      .program = "redis-server",
      .system_file = system_path,
      .groups = groups,
      .group_count = 2,
      .profiles = profiles,
      .profile_count = hz_count_of(profiles),
      .problem = take_problem,
  };
}

static void load_input(const struct hz_config_input *input) {
  said[0] = '\0';
  hz_config_load(input, &config);
}

#define load(...)                                                                                  \
  do {                                                                                             \
    const char *const environment[] = {__VA_ARGS__, NULL};                                         \
    struct hz_config_input input = input_of(environment);                                          \
    load_input(&input);                                                                            \
  } while (0)

// Loads `text` as the system's file, with the given variables.
#define load_text(text, ...)                                                                       \
  do {                                                                                             \
    write_file(system_path, text);                                                                 \
    load(__VA_ARGS__);                                                                             \
  } while (0)

#define NO_VARIABLE "LANG=C"

static void assert_said(const char *expected) {
  assert_string_equal(said, expected);
  assert_int_equal(config.problems, expected[0] != '\0');
}

// Like assert_said; %s in `expected` is the system file's path.
static void assert_said_of_file(const char *expected) {
  char full[1024];
  snprintf(full, sizeof full, expected, system_path);
  assert_said(full);
}

static void assert_source(const struct hz_option *row, const char *expected) {
  assert_string_equal(hz_config_source(row), expected);
}

static void assert_source_line(const struct hz_option *row, unsigned line) {
  char expected[160];
  snprintf(expected, sizeof expected, "%s:%u", system_path, line);
  assert_source(row, expected);
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(system_path, sizeof system_path, "%s/system.ini", folder);
  snprintf(user_path, sizeof user_path, "%s/hakozuna.ini", folder);
  return 0;
}

static int remove_files(void **state) {
  (void)state;
  unlink(system_path);
  unlink(user_path);
  return 0;
}

static int tear_down(void **state) {
  remove_files(state);
  return rmdir(folder);
}

// ---- Values -------------------------------------------------------------------------------------

static void assert_value(int row, const char *text, uint64_t expected) {
  uint64_t value = ~expected;
  assert_int_equal(hz_value_parse(&line_rows[row], text, &value), HZ_VALUE_OK);
  assert_int_equal(value, expected);
}

static void assert_no_value(int row, const char *text, enum hz_value_result expected) {
  uint64_t value = 12345;
  assert_int_equal(hz_value_parse(&line_rows[row], text, &value), expected);
  assert_int_equal(value, 12345);
}

static void values_are_read_with_their_suffixes(void **state) {
  (void)state;
  assert_value(BATCH, "1", 1);
  assert_value(BATCH, "512", 512);
  assert_value(SPILL, "0", 0);
  assert_value(SPILL, "4096", 4096);
  assert_value(SPILL, "64K", 64 * HZ_KIB);
  assert_value(SPILL, "2m", 2 * HZ_MIB);
  assert_value(SPILL, "3MiB", 3 * HZ_MIB);
  assert_value(SPILL, "1G", HZ_GIB);
  assert_value(WAIT, "250", 250);
  assert_value(WAIT, "250ms", 250);
  assert_value(WAIT, "2s", 2000);
  assert_value(EAGER, "on", 1);
  assert_value(EAGER, "Yes", 1);
  assert_value(EAGER, "1", 1);
  assert_value(EAGER, "false", 0);
  assert_value(EAGER, "off", 0);
  assert_value(MODE, "far", 1);
}

static void malformed_values_are_refused(void **state) {
  (void)state;
  assert_no_value(BATCH, "", HZ_VALUE_MALFORMED);
  assert_no_value(BATCH, "-1", HZ_VALUE_MALFORMED);
  assert_no_value(BATCH, "0x10", HZ_VALUE_MALFORMED);
  assert_no_value(BATCH, "64K", HZ_VALUE_MALFORMED);
  assert_no_value(SPILL, "1.5M", HZ_VALUE_MALFORMED);
  assert_no_value(SPILL, "1MB", HZ_VALUE_MALFORMED);
  assert_no_value(SPILL, "K", HZ_VALUE_MALFORMED);
  assert_no_value(WAIT, "2h", HZ_VALUE_MALFORMED);
  assert_no_value(EAGER, "2", HZ_VALUE_MALFORMED);
  assert_no_value(MODE, "1", HZ_VALUE_MALFORMED);
}

static void values_out_of_range_are_refused_also_beyond_64_bits(void **state) {
  (void)state;
  assert_no_value(BATCH, "0", HZ_VALUE_OUT_OF_RANGE);
  assert_no_value(BATCH, "513", HZ_VALUE_OUT_OF_RANGE);
  assert_no_value(SPILL, "1025M", HZ_VALUE_OUT_OF_RANGE);
  assert_no_value(SPILL, "18446744073709551616", HZ_VALUE_OUT_OF_RANGE);
  assert_no_value(SPILL, "18446744073709551615T", HZ_VALUE_OUT_OF_RANGE);
}

static void formatted_values_are_read_as_the_same_values(void **state) {
  (void)state;
  static const struct {
    int row;
    uint64_t value;
    const char *text;
  } cases[] = {{BATCH, 64, "64"},         {SPILL, 0, "0"},       {SPILL, 65536, "64K"},
               {SPILL, 1000, "1000"},     {SPILL, HZ_GIB, "1G"}, {WAIT, 250, "250ms"},
               {SPILL, 3 * HZ_MIB, "3M"}, {EAGER, 1, "on"},      {MODE, 1, "far"}};
  for (size_t i = 0; i < hz_count_of(cases); i++) {
    char text[HZ_VALUE_BYTES];
    hz_value_format(&line_rows[cases[i].row], cases[i].value, text);
    assert_string_equal(text, cases[i].text);
    assert_value(cases[i].row, text, cases[i].value);
  }
}

static void edit_distance_counts_steps(void **state) {
  (void)state;
  assert_int_equal(hz_edit_distance("hz3", "hz3"), 0);
  assert_int_equal(hz_edit_distance("HZ3", "hz3"), 0);
  assert_int_equal(hz_edit_distance("", "hz3"), 3);
  assert_int_equal(hz_edit_distance("hz3", ""), 3);
  assert_int_equal(hz_edit_distance("jsno", "json"), 1);
  assert_int_equal(hz_edit_distance("kitten", "sitting"), 3);
}

// ---- Precedence ---------------------------------------------------------------------------------

static void without_anything_every_row_has_its_default(void **state) {
  (void)state;
  load(NO_VARIABLE);
  assert_said("");
  assert_int_equal(batch, 64);
  assert_int_equal(hz_common.purge_idle_ms, 500);
  assert_int_equal(hz_common.arena_reserve, HZ_TIB);
  assert_source(&line_rows[BATCH], "default");
  assert_string_equal(config.profile->profile->name, "toy");
  assert_string_equal(config.profile_source, "default");
  assert_string_equal(config.file, "");
  assert_false(config.strict);
}

static void profile_changes_defaults_of_its_line_and_of_common_rows(void **state) {
  (void)state;
  load("HAKOZUNA_PROFILE=toy-wide");
  assert_said("");
  assert_string_equal(config.profile->profile->name, "toy-wide");
  assert_string_equal(config.profile_source, "HAKOZUNA_PROFILE");
  assert_int_equal(batch, 256);
  assert_int_equal(hz_common.purge_idle_ms, 2000);
  assert_source(&line_rows[BATCH], "profile toy-wide");
}

static void file_beats_profile(void **state) {
  (void)state;
  load_text("[toy]\nbatch = 7\n[hakozuna]\nprofile = toy-wide\n", NO_VARIABLE);
  assert_said("");
  assert_string_equal(config.file, system_path);
  assert_string_equal(config.profile->profile->name, "toy-wide");
  assert_int_equal(batch, 7);
  assert_source_line(&line_rows[BATCH], 2);
  assert_int_equal(hz_common.purge_idle_ms, 2000);
}

static void program_section_beats_other_sections_wherever_it_stands(void **state) {
  (void)state;
  load_text("[program:redis-server]\nprofile = toy-wide\ntoy.batch = 9\nstats = text\n"
            "[hakozuna]\nprofile = toy\nstats = json\n[toy]\nbatch = 7\n",
            NO_VARIABLE);
  assert_said("");
  assert_string_equal(config.profile->profile->name, "toy-wide");
  assert_int_equal(batch, 9);
  assert_source_line(&line_rows[BATCH], 3);
  assert_int_equal(hz_common.stats, HZ_STATS_TEXT);
}

static void environment_beats_program_section(void **state) {
  (void)state;
  load_text("[program:redis-server]\nprofile = toy-wide\ntoy.batch = 9\n",
            "HAKOZUNA_OPTIONS=toy.batch=11,purge.idle_ms=0", "HAKOZUNA_PROFILE=toy");
  assert_said("");
  assert_string_equal(config.profile->profile->name, "toy");
  assert_int_equal(batch, 11);
  assert_source(&line_rows[BATCH], "HAKOZUNA_OPTIONS");
  assert_int_equal(hz_common.purge_idle_ms, 0);
}

static void later_line_of_the_file_wins(void **state) {
  (void)state;
  load_text("[toy]\nbatch = 7\nbatch = 8\n", NO_VARIABLE);
  assert_int_equal(batch, 8);
  assert_source_line(&line_rows[BATCH], 3);
}

static void sections_of_other_programs_have_no_effect(void **state) {
  (void)state;
  load_text("[program:nginx]\nprofile = toy-wide\ntoy.batch = 9\nnonsense = 1\n", NO_VARIABLE);
  assert_said("");
  assert_string_equal(config.profile->profile->name, "toy");
  assert_int_equal(batch, 64);
}

static void check_programs_checks_sections_of_other_programs_without_effect(void **state) {
  (void)state;
  write_file(system_path, "[program:nginx]\nprofile = toy-wide\ntoy.batch = 9\ntoy.batch = x\n");
  const char *const environment[] = {NULL};
  struct hz_config_input input = input_of(environment);
  input.check_programs = true;
  load_input(&input);
  assert_said_of_file("%s:4: toy.batch takes a whole number, not \"x\". The setting is ignored.\n");
  assert_int_equal(batch, 64);
  assert_string_equal(config.profile->profile->name, "toy");
}

static void rows_go_back_to_their_defaults_at_the_next_load(void **state) {
  (void)state;
  load("HAKOZUNA_OPTIONS=toy.batch=11");
  load(NO_VARIABLE);
  assert_int_equal(batch, 64);
  assert_source(&line_rows[BATCH], "default");
}

// ---- Which file ---------------------------------------------------------------------------------

static void hakozuna_config_names_the_file(void **state) {
  (void)state;
  char variable[160];
  write_file(user_path, "[toy]\nbatch = 3\n");
  write_file(system_path, "[toy]\nbatch = 5\n");
  snprintf(variable, sizeof variable, "HAKOZUNA_CONFIG=%s", user_path);
  load(variable);
  assert_int_equal(batch, 3);
  assert_string_equal(config.file, user_path);
}

static void user_file_is_read_instead_of_the_system_file(void **state) {
  (void)state;
  char variable[160];
  write_file(user_path, "[toy]\nbatch = 3\n");
  write_file(system_path, "[toy]\nbatch = 5\n");
  snprintf(variable, sizeof variable, "XDG_CONFIG_HOME=%s", folder);
  load(variable);
  assert_int_equal(batch, 3);
}

static void missing_user_file_leads_to_the_system_file(void **state) {
  (void)state;
  load_text("[toy]\nbatch = 5\n", "HOME=/nonexistent");
  assert_said("");
  assert_int_equal(batch, 5);
}

static void missing_file_that_was_named_is_told(void **state) {
  (void)state;
  load_text("[toy]\nbatch = 5\n", "HAKOZUNA_CONFIG=/nonexistent/h.ini");
  assert_said("the configuration file /nonexistent/h.ini is not used: there is no such file (error "
              "2).\n");
  assert_int_equal(batch, 64);
}

static void folder_in_the_place_of_the_file_is_told(void **state) {
  (void)state;
  load("HAKOZUNA_CONFIG=/tmp");
  assert_said("the configuration file /tmp is not used: it is a directory (error 21).\n");
}

static void pipe_in_the_place_of_the_file_is_told_and_does_not_block(void **state) {
  (void)state;
  assert_int_equal(mkfifo(system_path, 0600), 0);
  load(NO_VARIABLE);
  assert_said_of_file(
      "the configuration file %s is not used: it is not a regular file (error 22).\n");
}

static void dev_null_reads_no_file(void **state) {
  (void)state;
  load_text("[toy]\nbatch = 5\n", "HAKOZUNA_CONFIG=/dev/null");
  assert_said("");
  assert_int_equal(batch, 64);
}

static void file_of_64_kib_is_read_and_one_byte_more_is_refused(void **state) {
  (void)state;
  static char text[64 * 1024 + 2];
  memset(text, '\n', sizeof text - 1);
  memcpy(text, "[toy]\nbatch = 5", 15);
  text[64 * 1024] = '\0';
  load_text(text, NO_VARIABLE);
  assert_said("");
  assert_int_equal(batch, 5);
  text[64 * 1024] = '\n';
  load_text(text, NO_VARIABLE);
  assert_said_of_file("the configuration file %s is not used: it is larger than 64 KiB (error "
                      "27).\n");
  assert_int_equal(batch, 64);
}

static void secure_process_reads_the_system_file_and_no_variable(void **state) {
  (void)state;
  char config_variable[160], home_variable[160];
  write_file(user_path, "[toy]\nbatch = 3\n");
  write_file(system_path, "[toy]\nwait_ms = 1s\n");
  snprintf(config_variable, sizeof config_variable, "HAKOZUNA_CONFIG=%s", user_path);
  snprintf(home_variable, sizeof home_variable, "XDG_CONFIG_HOME=%s", folder);
  const char *const environment[] = {config_variable,
                                     home_variable,
                                     "HAKOZUNA_PROFILE=toy-wide",
                                     "HAKOZUNA_NONSENSE=1",
                                     "HAKOZUNA_OPTIONS=toy.batch=11",
                                     NULL};
  struct hz_config_input input = input_of(environment);
  input.secure = true;
  load_input(&input);
  assert_said("");
  assert_int_equal(batch, 64);
  assert_int_equal(wait_ms, 1000);
  assert_string_equal(config.profile->profile->name, "toy");
}

// ---- What is said -------------------------------------------------------------------------------

static void unknown_profile_gets_the_nearest(void **state) {
  (void)state;
  load("HAKOZUNA_PROFILE=toy-wied");
  assert_said(
      "HAKOZUNA_PROFILE: there is no profile \"toy-wied\"; the nearest is \"toy-wide\". The "
      "setting is ignored; `hakozuna profiles` lists all.\n");
  assert_string_equal(config.profile->profile->name, "toy");
}

static void unknown_key_gets_the_nearest_of_its_section(void **state) {
  (void)state;
  load_text("[toy]\nbacth = 7\n", NO_VARIABLE);
  assert_said_of_file("%s:2: section \"toy\" has no key \"bacth\"; the nearest is \"batch\". The "
                      "setting is ignored; `hakozuna config show` lists all.\n");
}

static void unknown_common_key_may_mean_profile(void **state) {
  (void)state;
  load_text("[hakozuna]\nprofil = toy\n", NO_VARIABLE);
  assert_said_of_file("%s:2: section \"hakozuna\" has no key \"profil\"; the nearest is "
                      "\"profile\". The setting is ignored; `hakozuna config show` lists all.\n");
}

static void unknown_section_gets_the_nearest(void **state) {
  (void)state;
  load_text("[tyo]\nbatch = 7\n", NO_VARIABLE);
  assert_said_of_file(
      "%s:2: \"batch\" is in no known section: \"tyo\" is none, the nearest is \"toy\". The "
      "setting is ignored; settings for one program stand under [program:NAME].\n");
}

static void wrong_choice_gets_all_and_the_nearest(void **state) {
  (void)state;
  load("HAKOZUNA_STATS=jsno");
  assert_said("HAKOZUNA_STATS: hakozuna.stats takes off, text or json, not \"jsno\"; the nearest "
              "is \"json\". The setting is ignored.\n");
  assert_int_equal(hz_common.stats, HZ_STATS_OFF);
}

static void value_out_of_range_gets_the_range_and_the_default_stays(void **state) {
  (void)state;
  load("HAKOZUNA_OPTIONS=arena.reserve=1M");
  assert_said("HAKOZUNA_OPTIONS: arena.reserve must be from 64M to 64T, not \"1M\". The setting is "
              "ignored.\n");
  assert_int_equal(hz_common.arena_reserve, HZ_TIB);
  assert_source(&line_rows[BATCH], "default");
}

static void unknown_variable_gets_the_nearest(void **state) {
  (void)state;
  load("HAKOZUNA_PROFLIE=toy");
  assert_said("there is no variable HAKOZUNA_PROFLIE; the nearest is HAKOZUNA_PROFILE. It is "
              "ignored.\n");
}

static void variables_of_the_test_scripts_are_left_alone(void **state) {
  (void)state;
  load("HAKOZUNA_LIB=/x/libhakozuna.so", "HAKOZUNA_TEST_PROFILES=toy");
  assert_said("");
  load("HAKOZUNA_LIBS=/x/libhakozuna.so");
  assert_int_equal(config.problems, 1);
}

static void bad_syntax_is_told_with_line_and_text(void **state) {
  (void)state;
  load_text("[toy]\n\nbatch 7\n", NO_VARIABLE);
  assert_said_of_file(
      "%s:3: \"batch 7\" is neither [section] nor key = value, so it is skipped.\n");
}

static void setting_before_any_section_is_told(void **state) {
  (void)state;
  load_text("profile = toy\n", NO_VARIABLE);
  assert_said_of_file("%s:1: \"profile\" stands before the first [section], so it is ignored; put "
                      "[hakozuna] above it.\n");
}

static void option_item_without_value_is_told(void **state) {
  (void)state;
  load("HAKOZUNA_OPTIONS=toy.batch=5,toy.eager, toy.wait_ms = 1s ,");
  assert_said("HAKOZUNA_OPTIONS: \"toy.eager\" is not section.key=value. The setting is "
              "ignored.\n");
  assert_int_equal(batch, 5);
  assert_int_equal(wait_ms, 1000);
}

static void each_problem_is_counted(void **state) {
  (void)state;
  load("HAKOZUNA_PROFILE=none", "HAKOZUNA_STATS=none", "HAKOZUNA_NONE=1");
  assert_int_equal(config.problems, 3);
}

static void empty_variables_count_as_unset(void **state) {
  (void)state;
  load("HAKOZUNA_PROFILE=", "HAKOZUNA_STATS=", "HAKOZUNA_CONFIG=", "HAKOZUNA_OPTIONS=");
  assert_said("");
}

// ---- Single variables ---------------------------------------------------------------------------

static void stats_may_carry_a_path(void **state) {
  (void)state;
  load("HAKOZUNA_STATS=json:/var/log/%e.%p.json");
  assert_said("");
  assert_int_equal(hz_common.stats, HZ_STATS_JSON);
  assert_string_equal(config.stats_path, "/var/log/%e.%p.json");
}

static void stronger_stats_without_a_path_drop_the_weaker_path(void **state) {
  (void)state;
  load_text("[hakozuna]\nstats = json:/tmp/a\n", "HAKOZUNA_STATS=text");
  assert_int_equal(hz_common.stats, HZ_STATS_TEXT);
  assert_string_equal(config.stats_path, "");
}

static void too_long_stats_path_is_told(void **state) {
  (void)state;
  char variable[700] = "HAKOZUNA_STATS=text:";
  memset(variable + strlen(variable), 'x', 600);
  load(variable);
  assert_said("HAKOZUNA_STATS: the path of hakozuna.stats has 600 bytes, 511 at most. The setting "
              "is ignored.\n");
  assert_int_equal(hz_common.stats, HZ_STATS_OFF);
}

static void strict_and_on_misuse_have_variables(void **state) {
  (void)state;
  load("HAKOZUNA_STRICT=1", "HAKOZUNA_ON_MISUSE=report");
  assert_said("");
  assert_true(config.strict);
  assert_int_equal(hz_common.on_misuse, 1);
}

static void profile_may_stand_in_hakozuna_options(void **state) {
  (void)state;
  load("HAKOZUNA_OPTIONS=profile=toy-wide");
  assert_said("");
  assert_string_equal(config.profile->profile->name, "toy-wide");
}

static void long_paths_keep_their_end_in_sources(void **state) {
  (void)state;
  char path[300], variable[340];
  int length = snprintf(path, sizeof path, "%s", folder);
  while (length < 200) length += snprintf(path + length, sizeof path - (size_t)length, "/.");
  snprintf(path + length, sizeof path - (size_t)length, "/hakozuna.ini");
  write_file(path, "[toy]\nbatch = 3\n");
  snprintf(variable, sizeof variable, "HAKOZUNA_CONFIG=%s", path);
  load(variable);
  const char *source = hz_config_source(&line_rows[BATCH]);
  assert_int_equal(strlen(source), HZ_SOURCE_BYTES - 1);
  assert_int_equal(strncmp(source, "...", 3), 0);
  assert_string_equal(source + strlen(source) - 15, "/hakozuna.ini:2");
}

static void environment_of_the_process_is_read_from_the_kernel(void **state) {
  (void)state;
  struct hz_config_input input = input_of(NULL);
  load_input(&input);
  assert_int_equal(batch, 17);
}

// ---- Showing ------------------------------------------------------------------------------------

static void take_line(void *context, const char *name, const char *value, const char *unit,
                      const char *source) {
  char line[512];
  snprintf(line, sizeof line, "%s = %s %s(%s)\n", name, value, unit, source);
  assert_true(strlen(context) + strlen(line) < 4096);
  strcat(context, line);
}

static void show_names_every_value_with_its_source(void **state) {
  (void)state;
  char text[4096] = "";
  const char *const environment[] = {"HAKOZUNA_PROFILE=toy-wide", "HAKOZUNA_STATS=text:/tmp/x",
                                     NULL};
  struct hz_config_input input = input_of(environment);
  load_input(&input);
  hz_config_show(&input, &config, take_line, text);
  assert_string_equal(text, "hakozuna.profile = toy-wide (HAKOZUNA_PROFILE)\n"
                            "hakozuna.stats = text:/tmp/x (HAKOZUNA_STATS)\n"
                            "hakozuna.on_misuse = abort (default)\n"
                            "hakozuna.dlopen_deepbind = strip (default)\n"
                            "hakozuna.strict = off (default)\n"
                            "arena.reserve = 1T (default)\n"
                            "purge.idle_ms = 2000ms (profile toy-wide)\n"
                            "cache.run_bytes = 4M (default)\n"
                            "cache.run_batch = 1 blocks(default)\n"
                            "cache.run_transfer = 0 blocks(default)\n"
                            "cache.large_bytes = 64M (default)\n"
                            "stats.exact = off (default)\n"
                            "stats.interval_s = 0 s(default)\n"
                            "toy.batch = 256 blocks(profile toy-wide)\n"
                            "toy.spill_bytes = 64K (default)\n"
                            "toy.wait_ms = 250ms (default)\n"
                            "toy.eager = off (default)\n"
                            "toy.mode = near (default)\n");
}

static void common_rows_are_complete_and_their_defaults_in_range(void **state) {
  (void)state;
  for (size_t i = 0; i < hz_common_options.count; i++) {
    const struct hz_option *row = &hz_common_options.rows[i];
    char text[HZ_VALUE_BYTES];
    uint64_t value;
    assert_non_null(row->dest);
    assert_non_null(row->unit);
    assert_true(strlen(row->help) > 20);
    hz_value_format(row, row->value, text);
    assert_int_equal(hz_value_parse(row, text, &value), HZ_VALUE_OK);
    assert_int_equal(value, row->value);
  }
}

#define TEST(name) cmocka_unit_test_teardown(name, remove_files)

int main(int argc, char **argv) {
  // /proc/self/environ shows what the process was started with, so that it starts itself again.
  (void)argc;
  const char *options = getenv("HAKOZUNA_OPTIONS");
  if (options == NULL || strcmp(options, "toy.batch=17") != 0) {
    setenv("HAKOZUNA_CONFIG", "/dev/null", 1);
    setenv("HAKOZUNA_OPTIONS", "toy.batch=17", 1);
    execv("/proc/self/exe", argv);
    return 1;
  }
  const struct CMUnitTest tests[] = {
      TEST(values_are_read_with_their_suffixes),
      TEST(malformed_values_are_refused),
      TEST(values_out_of_range_are_refused_also_beyond_64_bits),
      TEST(formatted_values_are_read_as_the_same_values),
      TEST(edit_distance_counts_steps),
      TEST(without_anything_every_row_has_its_default),
      TEST(profile_changes_defaults_of_its_line_and_of_common_rows),
      TEST(file_beats_profile),
      TEST(program_section_beats_other_sections_wherever_it_stands),
      TEST(environment_beats_program_section),
      TEST(later_line_of_the_file_wins),
      TEST(sections_of_other_programs_have_no_effect),
      TEST(check_programs_checks_sections_of_other_programs_without_effect),
      TEST(rows_go_back_to_their_defaults_at_the_next_load),
      TEST(hakozuna_config_names_the_file),
      TEST(user_file_is_read_instead_of_the_system_file),
      TEST(missing_user_file_leads_to_the_system_file),
      TEST(missing_file_that_was_named_is_told),
      TEST(folder_in_the_place_of_the_file_is_told),
      TEST(pipe_in_the_place_of_the_file_is_told_and_does_not_block),
      TEST(dev_null_reads_no_file),
      TEST(file_of_64_kib_is_read_and_one_byte_more_is_refused),
      TEST(secure_process_reads_the_system_file_and_no_variable),
      TEST(unknown_profile_gets_the_nearest),
      TEST(unknown_key_gets_the_nearest_of_its_section),
      TEST(unknown_common_key_may_mean_profile),
      TEST(unknown_section_gets_the_nearest),
      TEST(wrong_choice_gets_all_and_the_nearest),
      TEST(value_out_of_range_gets_the_range_and_the_default_stays),
      TEST(unknown_variable_gets_the_nearest),
      TEST(variables_of_the_test_scripts_are_left_alone),
      TEST(bad_syntax_is_told_with_line_and_text),
      TEST(setting_before_any_section_is_told),
      TEST(option_item_without_value_is_told),
      TEST(each_problem_is_counted),
      TEST(empty_variables_count_as_unset),
      TEST(stats_may_carry_a_path),
      TEST(stronger_stats_without_a_path_drop_the_weaker_path),
      TEST(too_long_stats_path_is_told),
      TEST(strict_and_on_misuse_have_variables),
      TEST(profile_may_stand_in_hakozuna_options),
      TEST(long_paths_keep_their_end_in_sources),
      TEST(environment_of_the_process_is_read_from_the_kernel),
      TEST(show_names_every_value_with_its_source),
      TEST(common_rows_are_complete_and_their_defaults_in_range),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
