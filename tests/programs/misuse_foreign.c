// Frees what malloc never gave. Arguments: place, how often the one call runs (1).
//
// place: stack, static, mapped (mmap), libc (glibc's own allocator), neighbour (16 MiB beyond a
// block of ours: inside the heap's address range, no block there), head (the start of the 4 MiB
// that hold a block, where a line may have its own records), or sites (two calls on the stack, each
// run three times).
#define _GNU_SOURCE 1
#include <sys/mman.h>

#include "tests/programs/misuse.h"

extern void *__libc_malloc(size_t bytes);

static char in_data[256] __attribute__((aligned(64))) = {1};

static void *mapped(void) {
  void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED, "mmap failed");
  return p;
}

static char *head_of(char *block) {
  return block - ((uintptr_t)block & (((uintptr_t)4 << 20) - 1));
}

static void *place_named(const char *name, char *on_stack) {
  if (strcmp(name, "stack") == 0) return on_stack;
  if (strcmp(name, "static") == 0) return in_data;
  if (strcmp(name, "mapped") == 0) return mapped();
  if (strcmp(name, "libc") == 0) return __libc_malloc(100);
  if (strcmp(name, "neighbour") == 0) return misuse_block("small") + ((size_t)16 << 20);
  if (strcmp(name, "head") == 0) return head_of(misuse_block("small"));
  FAIL("place '%s' is unknown", name);
}

static void free_from_two_sites(void *p) {
  for (int i = 0; i < 3; i++) {
    free(p);
    free(p);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 2 || argc == 3, "usage: misuse_foreign PLACE [COUNT]");
  char on_stack[256] __attribute__((aligned(64))) = {1};
  free(misuse_block("small")); // the heap is at work before the bad call
  if (strcmp(argv[1], "sites") == 0) {
    free_from_two_sites(opaque(on_stack));
    return misuse_end();
  }
  void *p = place_named(argv[1], on_stack);
  int count = argc == 3 ? atoi(argv[2]) : 1;
  for (int i = 0; i < count; i++) free(opaque(p));
  return misuse_end();
}
