// Cases that hold for every line: each runs once per line of lines/list.h, in a process of its own,
// and bears the line's name behind its own.
//
// A new line needs no word here. Where lines may differ, a case asks the line's data (its options,
// core's arena), not its name.
#ifndef TESTS_UNIT_LINES_MACHINE_H
#define TESTS_UNIT_LINES_MACHINE_H

#include "lines/line.h"
#include "lines/list.h"
#include "tests/unit/isolated.h"

static const struct hz_line *line; // that the case is about

#include "tests/support/line_machine.h"

#define LINE_DECLARED(name) extern const struct hz_line name##_line;
HZ_LINES(LINE_DECLARED)
#undef LINE_DECLARED

static const struct hz_line *const lines_all[] = {
#define LINE_ROW(name) &name##_line,
    HZ_LINES(LINE_ROW)
#undef LINE_ROW
};

// An option of the line's own section. NULL: it has none of this name.
static inline const struct hz_option *own_option(const char *key) {
  for (size_t i = 0; i < line->info->option_count; i++)
    if (strcmp(line->info->options[i].key, key) == 0) return &line->info->options[i];
  return NULL;
}

// Sets an option of the line's own section, if it has one of this name.
static inline void own_option_set(const char *key, uint64_t value) {
  const struct hz_option *option = own_option(key);
  if (option != NULL) *option->dest = value;
}

static inline int line_is_set(void **state) {
  line = *state;
  return 0;
}

static inline bool lines_case(const struct CMUnitTest *test, const struct hz_line *which) {
  char name[160];
  snprintf(name, sizeof name, "%s (%s)", test->name, which->info->name);
  const struct CMUnitTest named = {.name = name,
                                   .test_func = test->test_func,
                                   .setup_func = line_is_set,
                                   .initial_state = (void *)which};
  return isolated_case(&named);
}

static inline int lines_run(const struct CMUnitTest *tests, size_t count) {
  size_t failed = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < hz_count_of(lines_all); k++)
      failed += !lines_case(&tests[i], lines_all[k]);
  return isolated_result(count * hz_count_of(lines_all), failed);
}

#endif
