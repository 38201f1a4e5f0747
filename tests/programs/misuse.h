// What the misuse programs share: blocks of a named size, and the moment by which a late discovery
// has been made.
//
// Each program says "survived" when the bad call itself has returned and "flushed" when everything
// that could still find it has run.
#ifndef TESTS_PROGRAMS_MISUSE_H
#define TESTS_PROGRAMS_MISUSE_H

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

// "small" is served from a cache, "run" lies above 64 KiB, "large" above 4 MiB.
static inline size_t misuse_size(const char *name) {
  if (strcmp(name, "small") == 0) return 64;
  if (strcmp(name, "page") == 0) return 5000;
  if (strcmp(name, "run") == 0) return 200000;
  if (strcmp(name, "large") == 0) return 9000000;
  FAIL("size '%s' is not one of small, page, run, large", name);
}

static inline char *misuse_block(const char *size) {
  size_t bytes = misuse_size(size);
  char *p = (char *)malloc(bytes);
  CHECK(p != NULL, "malloc(%zu) gave NULL", bytes);
  memset(p, 1, bytes);
  return (char *)opaque(p);
}

static inline void in_another_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0, "no thread");
  pthread_join(thread, NULL);
}

static inline void *free_it(void *p) {
  free(p);
  return NULL;
}

static inline int misuse_end(void) {
  say("survived\n");
  malloc_trim(0);
  say("flushed\n");
  return 0;
}

#endif
