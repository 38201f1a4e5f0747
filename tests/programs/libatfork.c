// A library whose fork handlers allocate and free, before the fork and after it on both sides.
//
// Preloaded behind an allocator it is initialised first: its handlers then run inside of the
// allocator's own.
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *across_the_fork;

static void use_memory(void) {
  for (size_t bytes = 10; bytes < 10000000; bytes *= 7) {
    char *p = malloc(bytes);
    if (p == NULL) abort();
    p[bytes - 1] = 1;
    p = realloc(p, bytes * 2);
    if (p == NULL || p[bytes - 1] != 1) abort();
    free(p);
  }
}

static void prepare(void) {
  use_memory();
  across_the_fork = malloc(3000);
}

static void after(void) {
  free(across_the_fork);
  use_memory();
}

__attribute__((constructor)) static void load(void) {
  use_memory();
  pthread_atfork(prepare, after, after);
}
