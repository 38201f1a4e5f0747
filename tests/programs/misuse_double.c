// Frees one block twice. Arguments: when (now, later, many, threads, exit), size.
//
// now: at once; later: after another block; many: after 20,000 others; threads: first in another
// thread; exit: both in a thread that then ends. Live blocks of the same size lie around it, so
// that its memory is not given back between the two.
#define _GNU_SOURCE 1
#include "tests/programs/misuse.h"

static char *neighbours[8];

// Frees of other blocks of the same size between the two. Every sixteenth other block stays.
static void free_others(const char *size, unsigned count) {
  char **others = malloc(count * sizeof *others);
  for (unsigned i = 0; i < count; i++) others[i] = misuse_block(size);
  char *p = others[count / 2];
  free(p);
  for (unsigned i = 0; i < count; i++) {
    if (i != count / 2 && i % 16 != 7) free(others[i]);
  }
  free(p);
}

static void *free_twice(void *p) {
  free(p);
  free(p);
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: misuse_double now|later|many|threads|exit SIZE");
  const char *when = argv[1], *size = argv[2];
  for (int i = 0; i < 8; i++) neighbours[i] = misuse_block(size);
  if (strcmp(when, "now") == 0) {
    free_twice(misuse_block(size));
  } else if (strcmp(when, "later") == 0) {
    free_others(size, 2);
  } else if (strcmp(when, "many") == 0) {
    free_others(size, misuse_size(size) > 10000 ? 20 : 20000);
  } else if (strcmp(when, "threads") == 0) {
    char *p = misuse_block(size);
    in_another_thread(free_it, p);
    free(p);
  } else if (strcmp(when, "exit") == 0) {
    in_another_thread(free_twice, misuse_block(size));
  } else {
    FAIL("'%s' is not one of now, later, many, threads, exit", when);
  }
  return misuse_end();
}
