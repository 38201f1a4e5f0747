// What the tests of lines/hz5 share: the line, and a look at its runs.
#ifndef TESTS_UNIT_HZ5_MACHINE_H
#define TESTS_UNIT_HZ5_MACHINE_H

#include "lines/hz5/hz5_model.h"
#include "tests/unit/isolated.h"

extern const struct hz_line hz5_line;
static const struct hz_line *const line = &hz5_line;

#include "tests/support/line_machine.h"

enum { FULL_RUN = 64 }; // blocks of BYTES that a run holds

static inline struct hz5_slab *run_of(const void *p) {
  return hz5_first(hz5_slab_of(p));
}
static inline uint32_t owner_of(const void *p) {
  return hz5_owner(run_of(p));
}
static inline uint32_t my_token(void) {
  return hz5_heap_get()->token;
}
static inline bool is_idle(const void *p) {
  uint32_t index;
  CHECK(hz5_begins(hz5_slab_of(p), p, &index), "no block begins at %p", p);
  return (run_of(p)->bits[index / 64].idle >> index % 64 & 1) != 0;
}

static inline uint64_t refused(void) {
  return count(HZ_COUNT_misuse_foreign) + count(HZ_COUNT_misuse_interior) +
         count(HZ_COUNT_misuse_double);
}

#endif
