// config/ini: text to settings with line numbers.
#include "config/ini.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// What the parser said, one line per call: "3 [hz3] batch=64" or "4 !text! what".
struct record {
  char text[4096];
};

static void add(struct record *record, const char *line) {
  assert_true(strlen(record->text) + strlen(line) < sizeof record->text);
  strcat(record->text, line);
}

static void entry(void *context, unsigned line, const char *section, const char *key,
                  const char *value) {
  char text[512];
  snprintf(text, sizeof text, "%u [%s] %s=%s\n", line, section, key, value);
  add(context, text);
}

static void bad_line(void *context, unsigned line, const char *text, const char *what) {
  char said[512];
  snprintf(said, sizeof said, "%u !%s! %s\n", line, text, what);
  add(context, said);
}

static void parse_bytes(const char *text, size_t bytes, struct record *record) {
  record->text[0] = '\0';
  struct hz_ini_handler handler = {entry, bad_line, record};
  hz_ini_parse(text, bytes, &handler);
}

static void assert_parses(const char *text, const char *expected) {
  struct record record;
  parse_bytes(text, strlen(text), &record);
  assert_string_equal(record.text, expected);
}

static void settings_come_with_section_and_line_number(void **state) {
  (void)state;
  assert_parses("[hakozuna]\nprofile = hz3\n\n[hz3]\nbatch=64\n",
                "2 [hakozuna] profile=hz3\n5 [hz3] batch=64\n");
}

static void comments_and_blank_lines_count_as_lines_only(void **state) {
  (void)state;
  assert_parses("; one\n# two\n   \n[a]\nb = c ; three\n", "5 [a] b=c\n");
}

static void indented_lines_are_lines_of_their_own(void **state) {
  (void)state;
  assert_parses("[a]\n  b = 1\n\tc = 2\n", "2 [a] b=1\n3 [a] c=2\n");
}

static void windows_line_ends_and_byte_order_mark_are_accepted(void **state) {
  (void)state;
  assert_parses("\xEF\xBB\xBF[a]\r\nb = 1\r\n", "2 [a] b=1\n");
}

static void last_line_needs_no_newline(void **state) {
  (void)state;
  assert_parses("[a]\nb = 1", "2 [a] b=1\n");
}

static void setting_before_any_section_has_an_empty_section(void **state) {
  (void)state;
  assert_parses("b = 1\n", "1 [] b=1\n");
}

static void empty_text_says_nothing(void **state) {
  (void)state;
  assert_parses("", "");
}

static void every_bad_line_is_told_and_the_rest_is_read(void **state) {
  (void)state;
  assert_parses("[a]\nnonsense\nb = 1\n[c\nd = 2\nmore nonsense\n",
                "2 !nonsense! is neither [section] nor key = value, so it is skipped\n"
                "3 [a] b=1\n"
                "4 ![c! has no closing ], so the line is skipped; write [section]\n"
                "5 [a] d=2\n"
                "6 !more nonsense! is neither [section] nor key = value, so it is skipped\n");
}

static void long_line_is_told_once_and_skipped_whole(void **state) {
  (void)state;
  char text[1200], expected[256];
  memset(text, 'x', 1000);
  strcpy(text + 1000, " = 1\n[a]\nb = 2\n");
  memset(expected, 0, sizeof expected);
  strcpy(expected, "1 !");
  memset(expected + 3, 'x', 80);
  strcat(expected, "! is too long a line, so it is skipped; shorten it\n3 [a] b=2\n");
  assert_parses(text, expected);
}

static void too_long_section_name_is_told(void **state) {
  (void)state;
  struct record record;
  static const char text[] = "[program:0123456789012345678901234567890123456789012345]\n";
  parse_bytes(text, sizeof text - 1, &record);
  assert_non_null(strstr(record.text, "at most 49 bytes"));
}

static void zero_byte_is_told(void **state) {
  (void)state;
  struct record record;
  static const char text[] = "[a]\nb\0c = 1\nd = 2\n";
  parse_bytes(text, sizeof text - 1, &record);
  assert_string_equal(record.text,
                      "2 !b! holds a zero byte, so the line is skipped; is this a text "
                      "file?\n3 [a] d=2\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(settings_come_with_section_and_line_number),
      cmocka_unit_test(comments_and_blank_lines_count_as_lines_only),
      cmocka_unit_test(indented_lines_are_lines_of_their_own),
      cmocka_unit_test(windows_line_ends_and_byte_order_mark_are_accepted),
      cmocka_unit_test(last_line_needs_no_newline),
      cmocka_unit_test(setting_before_any_section_has_an_empty_section),
      cmocka_unit_test(empty_text_says_nothing),
      cmocka_unit_test(every_bad_line_is_told_and_the_rest_is_read),
      cmocka_unit_test(long_line_is_told_once_and_skipped_whole),
      cmocka_unit_test(too_long_section_name_is_told),
      cmocka_unit_test(zero_byte_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
