// A library with thread-local data of its own, more than fits any spare static space, and a
// constructor that allocates: for home_dlopen.
#include <stdlib.h>
#include <string.h>

static _Thread_local char large[200000];
static _Thread_local void *kept;
static void *at_load;

__attribute__((constructor)) static void load(void) {
  at_load = malloc(5000);
}
__attribute__((destructor)) static void unload(void) {
  free(at_load);
}

// Uses the calling thread's data; the block of one call is freed by the next.
int own_tls_use(int value) {
  free(kept);
  kept = malloc(1000 + (size_t)value);
  if (kept == NULL) return 0;
  memset(large, value, sizeof large);
  memset(kept, value, 1000);
  return large[sizeof large - 1] == (char)value;
}
