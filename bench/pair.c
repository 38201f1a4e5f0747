// One local loop of malloc and free, and what a pair costs in time.
//
//   pair single|batch|slots PAIRS        prints "pairs=N ns=TIME_PER_PAIR"
//
// bench/pair.sh runs it under callgrind twice and divides the difference: instructions per pair.
// By hand: gcc -O1 -fno-builtin -o /tmp/pair bench/pair.c && /tmp/pair single 10000000
#include "loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  size_t pairs = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
  double begin = now_ns();
  size_t done = pairs == 0 ? 0 : hz_loop_run(argv[1], pairs, malloc, free);
  double end = now_ns();
  if (done == 0) {
    fprintf(stderr, "pair: expected: pair single|batch|slots PAIRS, with PAIRS at least 1\n");
    return 2;
  }
  printf("pairs=%zu ns=%.3f\n", done, (end - begin) / (double)done);
  return 0;
}
