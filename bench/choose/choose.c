// What choosing a line at run time costs: the local loops of loops.h over hz3's own functions, as a
// library with one line alone would export them, and over the exported malloc and free of dispatch,
// which jump through the active table.
//
//   choose WAY LOOP pairs=N       runs a loop one way: for callgrind
//   choose compare LOOP pairs=N   runs it both ways by turns, 201 times, and prints the medians of
//                               their times per pair and of the table's excess over its neighbour:
//                               "direct_ns=A table_ns=B percent=C"
//
// LOOP: single, batch, slots. WAY: direct, table. Both are called as a program calls a shared
// library, through a stub that jumps to an address in memory, and run on the same heap: the active
// table is the only difference. bench/budgets.sh judges what this prints.
#include "bench/loops.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lines/hz3/hz3_model.h"

enum { ROUNDS = 201 }; // odd: the median is one of them

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// What a procedure linkage table's entries do. The addresses are not constant to the compiler.
static void *(*volatile alloc_address)(size_t);
static void (*volatile release_address)(void *);
static __attribute__((noinline)) void *stub_alloc(size_t bytes) {
  return alloc_address(bytes);
}
static __attribute__((noinline)) void stub_release(void *p) {
  release_address(p);
}

// Returns the pairs done, 0 for a loop that is unknown.
static size_t run(bool table, const char *loop, size_t pairs) {
  alloc_address = table ? malloc : hz3_alloc;
  release_address = table ? free : hz3_release;
  return hz_loop_run(loop, pairs, stub_alloc, stub_release);
}

static double timed(bool table, const char *loop, size_t pairs) {
  double begin = now_ns();
  size_t done = run(table, loop, pairs);
  return (now_ns() - begin) / (double)done;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values) {
  qsort(values, ROUNDS, sizeof *values, compare_doubles);
  return values[ROUNDS / 2];
}

static void compare(const char *loop, size_t pairs) {
  static double direct[ROUNDS], table[ROUNDS], percent[ROUNDS];
  for (size_t i = 0; i < ROUNDS; i++) {
    direct[i] = timed(false, loop, pairs);
    table[i] = timed(true, loop, pairs);
    percent[i] = 100 * (table[i] / direct[i] - 1);
  }
  printf("direct_ns=%.3f table_ns=%.3f percent=%.1f\n", median(direct), median(table),
         median(percent));
}

int main(int argc, char **argv) {
  free(malloc(1)); // starts the library: from here on both ways reach a started line
  bool counted = argc == 4 && strncmp(argv[3], "pairs=", strlen("pairs=")) == 0;
  size_t pairs = counted ? strtoull(argv[3] + strlen("pairs="), NULL, 10) : 0;
  bool both = argc == 4 && strcmp(argv[1], "compare") == 0;
  bool table = argc == 4 && strcmp(argv[1], "table") == 0;
  bool direct = argc == 4 && strcmp(argv[1], "direct") == 0;
  if (pairs == 0 || !(both || table || direct) || run(table, argv[2], 1) == 0) {
    fprintf(stderr, "choose: expected: choose direct|table|compare single|batch|slots pairs=N\n");
    return 2;
  }
  if (both) compare(argv[2], pairs);
  else run(table, argv[2], pairs);
  return 0;
}
