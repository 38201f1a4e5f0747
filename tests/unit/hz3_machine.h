// hz3 on the machine of tests/support/line_machine.h.
#ifndef TESTS_UNIT_HZ3_MACHINE_H
#define TESTS_UNIT_HZ3_MACHINE_H

#include "lines/hz3/hz3_model.h"
#include "tests/unit/isolated.h"

extern const struct hz_line hz3_line;
static const struct hz_line *const line = &hz3_line;

#include "tests/support/line_machine.h"

#endif
