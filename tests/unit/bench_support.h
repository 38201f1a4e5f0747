// What the tests of the measuring tools share: a folder of their own, files in it, what is said on
// stderr, and results built from a few figures.
#ifndef TESTS_UNIT_BENCH_SUPPORT_H
#define TESTS_UNIT_BENCH_SUPPORT_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/result.h"
#include "tools/print.h"
#include "tools/text.h"

static inline void assert_has(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static inline void assert_near(double value, double expected) {
  double off = value > expected ? value - expected : expected - value;
  double size = expected > 0 ? expected : -expected;
  if (!(off <= 1e-6 * (1 + size))) fail_msg("%.9g is not %.9g", value, expected);
}

// ---- Files: the current folder of the tests is one of their own ---------------------------------

static char bench_folder[PATH_MAX];

// Below TEST_TMPDIR, else below /tmp. For a group's setup.
static inline int bench_enter_folder(void **state) {
  (void)state;
  const char *parent = getenv("TEST_TMPDIR");
  char template[PATH_MAX];
  hz_format(template, sizeof template, "%s/hakozuna_bench_XXXXXX", parent ? parent : "/tmp");
  if (!mkdtemp(template) || !realpath(template, bench_folder)) return -1;
  return chdir(bench_folder);
}

static inline int bench_remove(const char *path, const struct stat *is, int kind, struct FTW *ftw) {
  (void)is, (void)kind, (void)ftw;
  return remove(path);
}

// For a group's teardown.
static inline int bench_leave_folder(void **state) {
  (void)state;
  if (chdir("/") != 0) return -1;
  return nftw(bench_folder, bench_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void bench_write_file(const char *path, const char *text, mode_t mode) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fputs(text, file) < 0, 0);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, mode), 0);
}

// A shell script of that name; text: what follows the first line.
static inline void bench_write_script(const char *path, const char *text) {
  char *whole = hz_text("#!/bin/sh\n%s\n", text);
  bench_write_file(path, whole, 0755);
  free(whole);
}

// The whole file, up to 64 KiB; valid until the next call.
static inline const char *bench_read_file(const char *path) {
  static char text[64 * 1024];
  FILE *file = fopen(path, "re");
  if (!file) fail_msg("%s cannot be read", path);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

// ---- What is said on stderr ---------------------------------------------------------------------

static int bench_kept_stderr = -1;

// From now on, fd 2 is a file.
static inline void bench_catch_stderr(void) {
  int fd = open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  bench_kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(fd, STDERR_FILENO);
  close(fd);
}

// fd 2 is itself again. What was said meanwhile; valid until the next file is read.
static inline const char *bench_end_stderr(void) {
  dup2(bench_kept_stderr, STDERR_FILENO);
  close(bench_kept_stderr);
  return bench_read_file("stderr.txt");
}

// ---- Results ------------------------------------------------------------------------------------

static inline void bench_set_text(char **text, const char *value) {
  free(*text);
  *text = hz_text("%s", value);
}

static inline struct hz_lane_result *bench_add_lane(struct hz_result *result, const char *name,
                                                    bool more_is_better) {
  struct hz_lane_result *lane = hz_result_add_lane(result, name);
  bench_set_text(&lane->unit, more_is_better ? "Mops/s" : "s");
  lane->more_is_better = more_is_better;
  return lane;
}

// Five rounds around `value`, the outermost one part in two hundred away.
static inline struct hz_sample bench_sample_around(double value) {
  return (struct hz_sample){
      .count = 5, .values = {value, value * 1.005, value * 0.995, value * 1.002, value * 0.998}};
}

#endif
