// Seconds on a clock that only goes forward.
#ifndef HZ_TOOLS_BENCH_CLOCK_H
#define HZ_TOOLS_BENCH_CLOCK_H

#include <time.h>

static inline double hz_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
