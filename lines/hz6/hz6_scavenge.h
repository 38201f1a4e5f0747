// Scavenge: memory that nobody needs, on its way back. It works where slow paths end, and there
// only: no thread of our own, no timer. What one such quiet point may move is bounded in bytes
// (Policy) and in system calls (core/tick.h); what is left over follows a millisecond later.
//
//   transfer cache -> runs -> arena -> kernel
//
// Front caches are emptied by whom they belong to: at its next slow path, after someone has asked
// for all memory (malloc_trim, or none was left).
#ifndef HZ_LINES_HZ6_SCAVENGE_H
#define HZ_LINES_HZ6_SCAVENGE_H

#include "core/base.h"

// What Scavenge asks of the line.
struct hz6_scavenge_front {
  // Empties the caller's front cache.
  void (*flush)(void);
  // Empties those of threads that a fork left behind. True: there was one.
  bool (*adopt)(void);
  // Time has passed (core/tick.h, HZ_TICK_PERIOD).
  void (*period)(void);
  // In debug builds, now and then: NULL, or the first broken invariant.
  const char *(*check)(void);
};
void hz6_scavenge_start(const struct hz6_scavenge_front *front);

// A slow path has ended. *seen: which call for all memory the caller's front cache has followed.
// NULL: it has none.
void hz6_scavenge_pause(uint32_t *seen);

// Everything that can be reached without other threads' help goes back. True: there was something.
bool hz6_scavenge_all(void);

// The kernel has refused: the same, and address space that is held for later goes too.
bool hz6_scavenge_last_resort(void);

// hz_line.trim.
bool hz6_scavenge_trim(size_t keep_bytes);

#endif
