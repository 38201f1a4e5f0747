// What choosing a line at run time costs: the local loops of loops.h over hz3's own functions, as a
// library with one line alone would export them, and over the exported malloc and free of dispatch,
// which jump through the active table.
//
//   choose WAY single|batch|slots PAIRS     prints "pairs=N ns=TIME_PER_PAIR"
//
//   direct          hz3 called as a program calls a shared library: through a stub that jumps to
//   table           an address in memory, the same for both ways
//   direct-linked   hz3 called as a program calls what is linked into it: no stub
//   table-linked
//
// All ways are in one program and run on the same heap, so the table is the only difference between
// the two of a pair. bench/budgets.sh compares them, in instructions and in time.
#include "bench/loops.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lines/hz3/hz3_model.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// What a procedure linkage table's entries do. The addresses are not constant to the compiler.
static void *(*volatile alloc_address)(size_t);
static void (*volatile release_address)(void *);
static __attribute__((noipa)) void *stub_alloc(size_t bytes) {
  return alloc_address(bytes);
}
static __attribute__((noipa)) void stub_release(void *p) {
  release_address(p);
}

static size_t run(const char *way, const char *loop, size_t pairs) {
  if (strcmp(way, "direct-linked") == 0) return hz_loop_run(loop, pairs, hz3_alloc, hz3_release);
  if (strcmp(way, "table-linked") == 0) return hz_loop_run(loop, pairs, malloc, free);
  bool table = strcmp(way, "table") == 0;
  if (!table && strcmp(way, "direct") != 0) return 0;
  alloc_address = table ? malloc : hz3_alloc;
  release_address = table ? free : hz3_release;
  return hz_loop_run(loop, pairs, stub_alloc, stub_release);
}

int main(int argc, char **argv) {
  free(malloc(1)); // starts the library: from here on both ways reach a started line
  size_t pairs = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
  double begin = now_ns();
  size_t done = pairs == 0 ? 0 : run(argv[1], argv[2], pairs);
  double end = now_ns();
  if (done == 0) {
    fprintf(stderr, "choose: expected: choose direct|table|direct-linked|table-linked "
                    "single|batch|slots PAIRS\n");
    return 2;
  }
  printf("pairs=%zu ns=%.3f\n", done, (end - begin) / (double)done);
  return 0;
}
