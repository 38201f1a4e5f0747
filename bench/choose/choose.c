// What choosing a line at run time costs: the local loops of loops.h over hz3's own functions,
// called directly as a library with one line alone would, and over the exported malloc and free of
// dispatch, which jump through the active table.
//
//   choose direct|table single|batch|slots PAIRS     prints "pairs=N ns=TIME_PER_PAIR"
//
// Both ways are in one program and run on the same heap, so the jump is the only difference.
// bench/budgets.sh compares them, in instructions and in time.
#include "bench/loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lines/hz3/hz3_model.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t run(const char *way, const char *loop, size_t pairs) {
  if (strcmp(way, "direct") == 0) return hz_loop_run(loop, pairs, hz3_alloc, hz3_release);
  if (strcmp(way, "table") == 0) return hz_loop_run(loop, pairs, malloc, free);
  return 0;
}

int main(int argc, char **argv) {
  free(malloc(1)); // starts the library: from here on both ways reach a started line
  size_t pairs = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
  double begin = now_ns();
  size_t done = pairs == 0 ? 0 : run(argv[1], argv[2], pairs);
  double end = now_ns();
  if (done == 0) {
    fprintf(stderr, "choose: expected: choose direct|table single|batch|slots PAIRS\n");
    return 2;
  }
  printf("pairs=%zu ns=%.3f\n", done, (end - begin) / (double)done);
  return 0;
}
