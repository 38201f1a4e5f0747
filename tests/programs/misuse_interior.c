// Frees the inside of a block. Arguments: who (owner, thread), size, offset in bytes.
#define _GNU_SOURCE 1
#include "tests/programs/misuse.h"

int main(int argc, char **argv) {
  CHECK(argc == 4, "usage: misuse_interior owner|thread SIZE OFFSET");
  char *inside = misuse_block(argv[2]) + atol(argv[3]);
  if (strcmp(argv[1], "owner") == 0) {
    free(opaque(inside));
  } else if (strcmp(argv[1], "thread") == 0) {
    in_another_thread(free_it, opaque(inside));
  } else {
    FAIL("'%s' is not one of owner, thread", argv[1]);
  }
  return misuse_end();
}
