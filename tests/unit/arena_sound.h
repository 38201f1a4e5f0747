// What the arena says of itself, for tests of it and of what lies on top.
#ifndef TESTS_UNIT_ARENA_SOUND_H
#define TESTS_UNIT_ARENA_SOUND_H

#include "core/arena.h"
#include "tests/unit/isolated.h"

static inline void assert_sound(void) {
  const char *broken = hz_arena_check();
  if (broken != NULL) fail_msg("%s", broken);
}

static inline struct hz_arena_totals totals(void) {
  struct hz_arena_totals now;
  hz_arena_read_totals(&now);
  return now;
}

#endif
