// Calls that look suspicious and are legal: frees after the owning thread has ended, NULL, and
// blocks that were moved by realloc. Nothing may be reported.
#define _GNU_SOURCE 1
#include "tests/programs/misuse.h"

enum { BLOCKS = 3000 };
static char *blocks[BLOCKS];

static const char *size_of(unsigned i) {
  return i % 500 == 0 ? "large" : i % 50 == 0 ? "run" : i % 3 == 0 ? "page" : "small";
}

static void *allocate(void *unused) {
  for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = misuse_block(size_of(i));
  return unused;
}

static void *free_every_second(void *unused) {
  for (unsigned i = 0; i < BLOCKS; i += 2) free(blocks[i]);
  return unused;
}

int main(void) {
  for (int round = 0; round < 5; round++) {
    in_another_thread(allocate, NULL);
    in_another_thread(free_every_second, NULL);
    for (unsigned i = 1; i < BLOCKS; i += 2) {
      blocks[i] = realloc(blocks[i], misuse_size(size_of(i)) * 2);
      CHECK(blocks[i] != NULL && malloc_usable_size(blocks[i]) > 0, "realloc of an orphan failed");
      CHECK(blocks[i][10] == 1, "an orphan changed");
      free(blocks[i]);
    }
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0, "malloc_usable_size(NULL) is not 0");
  }
  return misuse_end();
}
