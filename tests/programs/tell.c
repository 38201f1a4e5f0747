// Prints what the allocator tells of itself while 30 MB are live. Argument: info (malloc_info's
// XML, on standard output), stats (malloc_stats, on standard error).
#define _GNU_SOURCE 1
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

int main(int argc, char **argv) {
  static void *blocks[10000];
  for (int i = 0; i < 10000; i++) {
    blocks[i] = malloc(3000);
    CHECK(blocks[i] != NULL, "no memory");
    memset(blocks[i], 1, 3000);
  }
  if (argc == 2 && strcmp(argv[1], "info") == 0) {
    CHECK(malloc_info(0, stdout) == 0, "malloc_info failed");
  } else if (argc == 2 && strcmp(argv[1], "stats") == 0) {
    malloc_stats();
  } else {
    FAIL("usage: tell info|stats");
  }
  for (int i = 0; i < 10000; i++) free(blocks[i]);
  return 0;
}
