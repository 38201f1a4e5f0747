// Files of results are whole or as they were.
#include "tests/unit/bench_support.h"
#include "tools/bench/whole_file.h"
#include "tools/command.h"

static const struct hz_place place = {"<begin>", "<end>"};

static bool print_text(FILE *out, const void *context) {
  return fputs(context, out) >= 0;
}

static bool print_half(FILE *out, const void *context) {
  (void)context;
  fputs("hal", out);
  return false;
}

static int fill(const char *path) {
  return hz_whole_file_fill(path, "the tables", &place, print_text, "new\n");
}

static void a_new_file_gets_the_text(void **state) {
  (void)state;
  assert_int_equal(hz_whole_file_write("new", "the text", print_text, "hello\n"), HZ_EXIT_OK);
  assert_string_equal(bench_read_file("new"), "hello\n");
}

static void a_file_stays_as_it_was_when_printing_fails(void **state) {
  (void)state;
  bench_write_file("old", "old\n", 0600);
  assert_int_equal(hz_whole_file_write("old", "the text", print_half, NULL), HZ_EXIT_SYSTEM);
  assert_string_equal(bench_read_file("old"), "old\n");
}

static void a_file_keeps_its_mode_and_a_link_stays_one(void **state) {
  (void)state;
  struct stat there;
  bench_write_file("private", "old\n", 0600);
  assert_int_equal(symlink("private", "link"), 0);
  assert_int_equal(hz_whole_file_write("link", "the text", print_text, "new\n"), HZ_EXIT_OK);
  assert_int_equal(lstat("link", &there), 0);
  assert_true(S_ISLNK(there.st_mode));
  assert_int_equal(stat("private", &there), 0);
  assert_int_equal(there.st_mode & 0777, 0600);
  assert_string_equal(bench_read_file("private"), "new\n");
}

static void filling_changes_what_is_between_the_lines_alone(void **state) {
  (void)state;
  bench_write_file("doc", "a <begin>\n<begin>\nold\n<end>\nb\n<end>\n", 0600);
  assert_int_equal(hz_whole_file_check_place("doc", &place), HZ_EXIT_OK);
  assert_int_equal(fill("doc"), HZ_EXIT_OK);
  assert_string_equal(bench_read_file("doc"), "a <begin>\n<begin>\nnew\n<end>\nb\n<end>\n");
  assert_int_equal(fill("doc"), HZ_EXIT_OK);
  assert_string_equal(bench_read_file("doc"), "a <begin>\n<begin>\nnew\n<end>\nb\n<end>\n");
}

static void filling_no_file_or_an_empty_one_makes_the_whole(void **state) {
  (void)state;
  bench_write_file("empty", "", 0600);
  assert_int_equal(fill("empty"), HZ_EXIT_OK);
  assert_int_equal(fill("none yet"), HZ_EXIT_OK);
  assert_string_equal(bench_read_file("empty"), "new\n");
  assert_string_equal(bench_read_file("none yet"), "new\n");
}

// A mistyped line must not cost the document.
static void a_document_without_the_place_is_refused_and_stays(void **state) {
  (void)state;
  static const char *const documents[] = {"# mine\n", "<begin>\n", "<end>\n<begin>\n",
                                          "<begin>\r\n<end>\r\n", " <begin>\n<end>\n"};
  for (size_t i = 0; i < hz_count_of(documents); i++) {
    bench_write_file("doc", documents[i], 0600);
    bench_catch_stderr();
    int code = fill("doc");
    assert_has(bench_end_stderr(), "doc has no line \"<begin>\" with a line \"<end>\" behind it");
    assert_int_equal(code, HZ_EXIT_DATA);
    assert_string_equal(bench_read_file("doc"), documents[i]);
  }
}

static void a_folder_and_a_device_are_refused_beforehand(void **state) {
  (void)state;
  static const char *const paths[] = {".", "/dev/null", "no/such/folder/file"};
  for (size_t i = 0; i < hz_count_of(paths); i++) {
    bench_catch_stderr();
    int code = hz_whole_file_check(paths[i]);
    assert_has(bench_end_stderr(), "expected a file that can be written");
    assert_int_equal(code, HZ_EXIT_NO_FILE);
  }
  assert_int_equal(hz_whole_file_check("not there yet"), HZ_EXIT_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_file_gets_the_text),
      cmocka_unit_test(a_file_stays_as_it_was_when_printing_fails),
      cmocka_unit_test(a_file_keeps_its_mode_and_a_link_stays_one),
      cmocka_unit_test(filling_changes_what_is_between_the_lines_alone),
      cmocka_unit_test(filling_no_file_or_an_empty_one_makes_the_whole),
      cmocka_unit_test(a_document_without_the_place_is_refused_and_stays),
      cmocka_unit_test(a_folder_and_a_device_are_refused_beforehand),
  };
  return cmocka_run_group_tests(tests, bench_enter_folder, bench_leave_folder);
}
