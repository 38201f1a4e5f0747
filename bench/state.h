// Memory for the harness itself: never from malloc, touched before anything is measured, and padded
// so that no two threads' state shares a cache line or a pair of them.
#ifndef HZ_BENCH_STATE_H
#define HZ_BENCH_STATE_H

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "fail.h"

enum { PAD = 128 };

// Zeroed and resident. Never freed.
static inline void *state_map(size_t bytes) {
  void *p =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) {
    fail(EXIT_BROKEN, "%zu bytes of state could not be mapped: %s", bytes, strerror(errno));
  }
  return p;
}

#endif
