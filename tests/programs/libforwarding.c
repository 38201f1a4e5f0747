// Defines malloc and free and passes each call on to the next definition, as heap profilers do.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic unsigned long calls;

unsigned long forwarding_calls(void) {
  return calls;
}

void *malloc(size_t bytes) {
  static void *(*_Atomic next)(size_t);
  if (next == NULL) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  calls++;
  return next(bytes);
}

void free(void *p) {
  static void (*_Atomic next)(void *);
  if (next == NULL) next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
  next(p);
}
