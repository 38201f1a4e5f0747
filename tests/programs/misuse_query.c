// realloc and malloc_usable_size of something that is no block. Arguments: function (realloc,
// usable), pointer (stack, interior, freed).
//
// interior and freed are a block above 64 KiB. When the call returns, realloc must have given NULL
// and usable_size 0.
#define _GNU_SOURCE 1
#include "tests/programs/misuse.h"

static void *pointer_named(const char *name, char *on_stack) {
  if (strcmp(name, "stack") == 0) return on_stack;
  char *p = misuse_block("run");
  if (strcmp(name, "interior") == 0) return p + 4096;
  if (strcmp(name, "freed") == 0) {
    free(p);
    return opaque(p);
  }
  FAIL("pointer '%s' is not one of stack, interior, freed", name);
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: misuse_query realloc|usable stack|interior|freed");
  char on_stack[256] __attribute__((aligned(64))) = {1};
  void *p = pointer_named(argv[2], on_stack);
  if (strcmp(argv[1], "realloc") == 0) {
    void *moved = realloc(opaque(p), opaque_size(300000));
    CHECK(moved == NULL, "realloc of a bad pointer gave %p, expected NULL", moved);
  } else {
    size_t bytes = malloc_usable_size(opaque(p));
    CHECK(bytes == 0, "malloc_usable_size of a bad pointer gave %zu, expected 0", bytes);
  }
  return misuse_end();
}
