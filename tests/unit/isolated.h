// cmocka, with every case in a process of its own: what core keeps, it keeps for the process.
//
// Threads of a case report with CHECK (tests/support/check.h); cmocka's assertions belong to the
// thread that runs the case.
#ifndef TESTS_UNIT_ISOLATED_H
#define TESTS_UNIT_ISOLATED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/check.h"

// Sanitizers make memory accesses some ten times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif !defined(__has_feature)
enum { SANITIZED = 0 };
#elif __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static inline bool isolated_case(const struct CMUnitTest *test) {
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL));
  int status;
  CHECK(waitpid(child, &status, 0) == child, "cannot wait for %s", test->name);
  if (WIFSIGNALED(status))
    say("[  FAILED  ] %s ended by signal %d\n", test->name, WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline int isolated_result(size_t cases, size_t failed) {
  say("%zu cases, %zu failed\n", cases, failed);
  return failed == 0 ? 0 : 1;
}

static inline int isolated_run(const struct CMUnitTest *tests, size_t count) {
  size_t failed = 0;
  for (size_t i = 0; i < count; i++) failed += !isolated_case(&tests[i]);
  return isolated_result(count, failed);
}

#endif
