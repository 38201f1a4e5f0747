// stats: the report as text and as JSON, and the places that it goes to.
#include "stats/report.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/options.h"
#include "core/counter.h"
#include "core/log.h"
#include "stats/destination.h"
#include "stats/writer.h"

static char folder[] = "/tmp/hakozuna_report_test_XXXXXX";
static char path[128];

static const struct hz_profile profile = {.name = "toy"};
static const struct hz_profile_entry entry = {"toy", &profile};
static struct hz_config config;

static const struct hz_gauge gauges[] = {
    {"live_bytes", "bytes", 13107200, "in blocks"},
    {"threads", "threads", 3, "with a heap now"},
};
static const struct hz_exact_class classes[] = {
    {16, 1000, 800, 200}, {32, 0, 0, 0}, {UINT64_MAX, 4, 4, 0}};

static struct hz_report report_of(void) {
  config = (struct hz_config){.profile = &entry};
  strcpy(config.profile_source, "HAKOZUNA_PROFILE");
  for (size_t i = 0; i < hz_common_options.count; i++) {
    *hz_common_options.rows[i].dest = hz_common_options.rows[i].value;
  }
  return (struct hz_report){
      .config = &config,
      .groups = &hz_common_options,
      .group_count = 1,
      .program = "prog\n\"x\"",
      .reason = "exit",
      .pid = 4711,
      .wall_ns = 12045678901u,
      .gauges = gauges,
      .gauge_count = hz_count_of(gauges),
  };
}

static char *read_back(void) {
  static char text[64 * 1024];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  return text;
}

static char *written(const struct hz_report *report, enum hz_report_format format) {
  unlink(path);
  assert_true(hz_report_send(report, format, path));
  return read_back();
}

static void assert_has(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in:\n%s", part, text);
}

// ---- JSON's grammar: each function eats one thing and returns what is left, or NULL -------------

static const char *eat_value(const char *at);

static const char *eat(const char *at, char c) {
  return at != NULL && *at == c ? at + 1 : NULL;
}

static const char *eat_string(const char *at) {
  if ((at = eat(at, '"')) == NULL) return NULL;
  for (; *at != '"'; at++) {
    if ((unsigned char)*at < 0x20) return NULL;
    if (*at == '\\' && strchr("\"\\/bfnrtu", *++at) == NULL) return NULL;
  }
  return at + 1;
}

static const char *eat_list(const char *at, char close, bool named) {
  if (*++at == close) return at + 1;
  for (;; at++) {
    if (named) at = eat(eat_string(at), ':');
    if (at == NULL || (at = eat_value(at)) == NULL) return NULL;
    if (*at == close) return at + 1;
    if (*at != ',') return NULL;
  }
}

static const char *eat_value(const char *at) {
  static const char *const words[] = {"true", "false", "null"};
  if (*at == '{') return eat_list(at, '}', true);
  if (*at == '[') return eat_list(at, ']', false);
  if (*at == '"') return eat_string(at);
  for (size_t i = 0; i < hz_count_of(words); i++) {
    if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
  }
  size_t digits = strspn(at, "0123456789");
  return digits != 0 ? at + digits : NULL;
}

static void assert_is_one_json_line(const char *text) {
  const char *rest = eat_value(text);
  assert_non_null(rest);
  assert_string_equal(rest, "\n");
}

// ---- The report ---------------------------------------------------------------------------------

static void text_has_a_header_every_option_gauge_and_counter(void **state) {
  (void)state;
  struct hz_report report = report_of();
  const char *text = written(&report, HZ_REPORT_TEXT);
  assert_has(text, ": report (exit)\n");
  assert_has(text, "program   prog?\"x\", process 4711, 12.045 s\n");
  assert_has(text, "profile   toy of line toy (HAKOZUNA_PROFILE)\n");
  assert_has(text, "file      none\n");
  assert_has(text, "  live_bytes                    13107200 bytes    12.5 MiB: in blocks\n");
  for (size_t i = 0; i < hz_common_options.count; i++)
    assert_has(text, hz_common_options.rows[i].key);
  for (size_t i = 0; i < HZ_COUNTER_COUNT; i++) {
    assert_has(text, hz_counter_rows[i].name);
    assert_has(text, hz_counter_rows[i].meaning);
  }
  assert_null(strstr(text, "calls by block size"));
}

static void json_is_one_object_on_one_line(void **state) {
  (void)state;
  struct hz_report report = report_of();
  report.exact = classes;
  report.exact_count = hz_count_of(classes);
  const char *text = written(&report, HZ_REPORT_JSON);
  assert_is_one_json_line(text);
  assert_has(text, "{\"schema\":1,\"version\":\"");
  assert_has(text, "\"program\":\"prog\\u000a\\\"x\\\"\"");
  assert_has(text, "\"purge.idle_ms\":{\"value\":500,\"unit\":\"ms\",\"source\":\"default\"}");
  assert_has(text, "\"hakozuna.on_misuse\":{\"value\":\"abort\"");
  assert_has(text, "\"stats.exact\":{\"value\":false");
  assert_has(text, "\"live_bytes\":{\"value\":13107200,\"unit\":\"bytes\"}");
  assert_has(text, "\"total\":{\"allocs\":1004,\"frees\":804,\"remote_frees\":200}");
  assert_has(text, "{\"bytes\":16,\"allocs\":1000,\"frees\":800,\"remote_frees\":200}");
  assert_has(text, "{\"bytes\":null,\"allocs\":4,");
  for (size_t i = 0; i < HZ_COUNTER_COUNT; i++) {
    char name[64];
    snprintf(name, sizeof name, "\"%s\":{\"value\":", hz_counter_rows[i].name);
    assert_has(text, name);
  }
}

static void json_without_exact_counts_is_valid_too(void **state) {
  (void)state;
  struct hz_report report = report_of();
  const char *text = written(&report, HZ_REPORT_JSON);
  assert_is_one_json_line(text);
  assert_null(strstr(text, "\"exact\":{"));
}

static void exact_text_shows_used_classes_and_the_remote_share(void **state) {
  (void)state;
  struct hz_report report = report_of();
  report.exact = classes;
  report.exact_count = hz_count_of(classes);
  const char *text = written(&report, HZ_REPORT_TEXT);
  const char *table = strstr(text, "calls by block size");
  assert_non_null(table);
  assert_has(table, "\n  16 ");
  assert_has(table, "25.0 %\n");
  assert_null(strstr(table, "\n  32 "));
  assert_has(table, "\n  larger ");
  assert_has(table, "\n  all ");
}

static void counters_are_those_of_the_moment(void **state) {
  (void)state;
  struct hz_report report = report_of();
  hz_counters_reset();
  hz_count(HZ_COUNT_refills, 41);
  hz_count(HZ_COUNT_refills, 1);
  assert_has(written(&report, HZ_REPORT_JSON), "\"refills\":{\"value\":42,\"unit\":\"calls\"}");
  hz_counters_reset();
  assert_has(written(&report, HZ_REPORT_JSON), "\"refills\":{\"value\":0,");
}

static void refusing_descriptor_is_told_to_the_caller(void **state) {
  (void)state;
  struct hz_report report = report_of();
  int fd = open("/dev/full", O_WRONLY);
  assert_true(fd >= 0);
  assert_false(hz_report_write(&report, HZ_REPORT_TEXT, fd));
  close(fd);
}

// ---- The writer ---------------------------------------------------------------------------------

static const char *writer_text(void (*write)(struct hz_writer *)) {
  unlink(path);
  char buffer[256];
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  struct hz_writer writer = {.buffer = buffer, .capacity = sizeof buffer, .fd = fd};
  write(&writer);
  assert_true(hz_writer_flush(&writer));
  close(fd);
  return read_back();
}

static void write_much(struct hz_writer *writer) {
  for (int i = 0; i < 1000; i++) hz_writer_format(writer, "%03d,", i);
}

static void small_buffer_loses_nothing(void **state) {
  (void)state;
  const char *text = writer_text(write_much);
  assert_int_equal(strlen(text), 4000);
  for (int i = 0; i < 1000; i++) assert_int_equal(atoi(text + (size_t)i * 4), i);
}

static void write_bad_utf8(struct hz_writer *writer) {
  hz_writer_json(writer, "\xC3\xA9|\xE2\x82\xAC|\xF0\x9F\x98\x80|\\|\t|\x7F");
  hz_writer_json(writer, "\xC3|\xC0\x80|\xED\xA0\x80|\xF5|\xE2\x82");
}

static void json_strings_are_utf8_whatever_comes(void **state) {
  (void)state;
  assert_string_equal(writer_text(write_bad_utf8),
                      "\"\xC3\xA9|\xE2\x82\xAC|\xF0\x9F\x98\x80|\\\\|\\u0009|\\u007f\""
                      "\"\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd|\\ufffd\\ufffd\"");
}

// ---- Destinations -------------------------------------------------------------------------------

static void names_take_the_process_and_the_program(void **state) {
  (void)state;
  char name[HZ_DESTINATION_BYTES];
  assert_true(hz_destination_name("/tmp/%e.%p.%%.%x%", 42, "a/b", name));
  assert_string_equal(name, "/tmp/a_b.42.%.%x%");
}

static void too_long_name_is_refused(void **state) {
  (void)state;
  char name[HZ_DESTINATION_BYTES], program[HZ_DESTINATION_BYTES];
  memset(program, 'x', sizeof program - 1);
  program[sizeof program - 1] = '\0';
  assert_true(hz_destination_name("%e", 42, program, name));
  assert_false(hz_destination_name("/%e", 42, program, name));
}

static void file_is_private_and_appended_to(void **state) {
  (void)state;
  struct hz_report report = report_of();
  struct stat is;
  unlink(path);
  assert_true(hz_report_send(&report, HZ_REPORT_JSON, path));
  assert_true(hz_report_send(&report, HZ_REPORT_JSON, path));
  assert_int_equal(stat(path, &is), 0);
  assert_int_equal(is.st_mode & 07777, 0600);
  const char *second = eat(eat_value(read_back()), '\n');
  assert_non_null(second);
  assert_is_one_json_line(second);
}

// Runs `send` with fd 2 in the file `path`; core/log has made no duplicate here.
static const char *stderr_of_send(const char *destination) {
  struct hz_report report = report_of();
  int kept = dup(STDERR_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(fd, STDERR_FILENO);
  errno = ESRCH;
  bool sent = hz_report_send(&report, HZ_REPORT_TEXT, destination);
  int after = errno;
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(fd);
  assert_true(sent);
  assert_int_equal(after, ESRCH);
  return read_back();
}

static void without_a_path_the_report_goes_to_the_log(void **state) {
  (void)state;
  assert_int_equal(strncmp(stderr_of_send(""), "hakozuna ", 9), 0);
}

static void unusable_path_is_told_and_the_report_goes_to_the_log(void **state) {
  (void)state;
  const char *text = stderr_of_send("/nonexistent/%p.txt");
  static const char sentence[] =
      "hakozuna: the report cannot go to /nonexistent/4711.txt: its folder does not exist (error "
      "2), so it follows here; set `stats` to another path.\n";
  assert_int_equal(strncmp(text, sentence, sizeof sentence - 1), 0);
  assert_has(text, ": report (exit)\n");
}

static void symbolic_link_is_not_followed(void **state) {
  (void)state;
  char link_path[160], target[160];
  struct stat is;
  snprintf(link_path, sizeof link_path, "%s/link", folder);
  snprintf(target, sizeof target, "%s/target", folder);
  assert_int_equal(symlink(target, link_path), 0);
  assert_has(stderr_of_send(link_path), "it is a symbolic link, which reports do not follow");
  assert_int_equal(stat(target, &is), -1);
  unlink(link_path);
}

static void pipe_without_a_reader_does_not_block(void **state) {
  (void)state;
  char fifo[160];
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  assert_has(stderr_of_send(fifo), "it is a pipe that nobody reads");
  unlink(fifo);
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/report", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_has_a_header_every_option_gauge_and_counter),
      cmocka_unit_test(json_is_one_object_on_one_line),
      cmocka_unit_test(json_without_exact_counts_is_valid_too),
      cmocka_unit_test(exact_text_shows_used_classes_and_the_remote_share),
      cmocka_unit_test(counters_are_those_of_the_moment),
      cmocka_unit_test(refusing_descriptor_is_told_to_the_caller),
      cmocka_unit_test(small_buffer_loses_nothing),
      cmocka_unit_test(json_strings_are_utf8_whatever_comes),
      cmocka_unit_test(names_take_the_process_and_the_program),
      cmocka_unit_test(too_long_name_is_refused),
      cmocka_unit_test(file_is_private_and_appended_to),
      cmocka_unit_test(without_a_path_the_report_goes_to_the_log),
      cmocka_unit_test(unusable_path_is_told_and_the_report_goes_to_the_log),
      cmocka_unit_test(symbolic_link_is_not_followed),
      cmocka_unit_test(pipe_without_a_reader_does_not_block),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
