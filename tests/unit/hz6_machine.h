// What the tests of lines/hz6 as a whole share: the line under one of its options.
#ifndef TESTS_UNIT_HZ6_MACHINE_H
#define TESTS_UNIT_HZ6_MACHINE_H

#include "lines/hz6/hz6_model.h"
#include "tests/unit/isolated.h"

extern const struct hz_line hz6_line;
static const struct hz_line *const line = &hz6_line;

#include "tests/support/line_machine.h"

// With the defaults, but for one option of the line.
static inline void line_start_with(const char *key, uint64_t value) {
  options_default();
  option_set("hz6", key, value);
  line_start_as_set();
}

static inline uint64_t refused(void) {
  return count(HZ_COUNT_misuse_foreign) + count(HZ_COUNT_misuse_interior) +
         count(HZ_COUNT_misuse_double);
}

#endif
