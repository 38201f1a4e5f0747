// Defines malloc and free and passes each call on to the next definition, as heap profilers do.
//
// Both are found at once, in the first malloc: dlsym itself frees, the text of an earlier error.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static _Atomic unsigned long calls;

unsigned long forwarding_calls(void) {
  return calls;
}

void *malloc(size_t bytes) {
  if (next_malloc == NULL) {
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  }
  calls++;
  return next_malloc(bytes);
}

void free(void *p) {
  if (p != NULL) next_free(p);
}
