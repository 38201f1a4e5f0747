// The arena on the machine of tests/support/fake_os.h.
#ifndef TESTS_UNIT_ARENA_MACHINE_H
#define TESTS_UNIT_ARENA_MACHINE_H

#include "tests/support/fake_os.h"
#include "tests/unit/arena_sound.h"

enum { SEGMENTS = 32 };

static inline void start(void) {
  fake_os_install();
  assert_true(hz_arena_start((size_t)SEGMENTS * HZ_SEGMENT_BYTES));
}

// What a taker does with a run, so that its slabs have contents.
static inline struct hz_run *take(unsigned slabs, size_t align) {
  struct hz_run *run = hz_arena_take(slabs, align);
  if (run != NULL) atomic_store(&run->state, HZ_RUN_LIVE);
  return run;
}

static inline void touch(const struct hz_run *run) {
  for (unsigned i = 0; i < run->slabs; i++) ((char *)hz_run_base(run))[i * HZ_SLAB_BYTES + i] = 1;
}

static inline bool reads_as_zero(const struct hz_run *run) {
  for (unsigned i = 0; i < run->slabs; i++)
    if (((char *)hz_run_base(run))[i * HZ_SLAB_BYTES + i] != 0) return false;
  return true;
}

static inline void purge_all(void) {
  bool more = true;
  hz_arena_purge(UINT64_MAX, 0, UINT32_MAX, &more);
  assert_false(more);
}

#endif
