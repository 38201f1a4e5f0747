// Loads libraries while the allocator is at work. Arguments: what (tls, deepbind, itself), path of
// the library.
//
// tls: one with its own thread-local data, loaded after threads have started and used by all.
// deepbind: RTLD_DEEPBIND, then blocks change sides. itself: any library, only loaded and closed.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

enum { THREADS = 16 };

static pthread_barrier_t loaded;
static int (*use)(int);

static void *function_of(void *library, const char *name) {
  void *function = dlsym(library, name);
  CHECK(function != NULL, "the library has no %s: %s", name, dlerror());
  return function;
}

static void *open_library(const char *path, int flags) {
  void *library = dlopen(path, RTLD_NOW | flags);
  CHECK(library != NULL, "dlopen failed: %s", dlerror());
  return library;
}

static void *use_after_load(void *argument) {
  int number = (int)(intptr_t)argument;
  free(opaque(malloc(100)));
  pthread_barrier_wait(&loaded);
  for (int i = 0; i < 100; i++) CHECK(use(number + i), "the library's thread-local data changed");
  return NULL;
}

static void load_among_threads(const char *path) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&loaded, NULL, THREADS + 1);
  for (intptr_t i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, use_after_load, (void *)i) == 0, "no thread");
  }
  void *library = open_library(path, 0);
  use = (int (*)(int))function_of(library, "own_tls_use");
  pthread_barrier_wait(&loaded);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK(use(1), "the library's thread-local data changed");
  dlclose(library);
}

static void exchange_blocks(const char *path) {
  void *library = open_library(path, RTLD_DEEPBIND);
  void *(*give)(size_t) = (void *(*)(size_t))function_of(library, "exchange_give");
  int (*take)(void *, size_t) = (int (*)(void *, size_t))function_of(library, "exchange_take");
  char *(*duplicate)(const char *) =
      (char *(*)(const char *))function_of(library, "exchange_duplicate");
  for (size_t bytes = 1; bytes < 10000000; bytes = bytes * 3 + 1) {
    char *theirs = give(bytes);
    CHECK(theirs != NULL && theirs[bytes - 1] == 3, "the library gave no block of %zu", bytes);
    free(realloc(theirs, bytes * 2));
    CHECK(take(opaque(malloc(bytes)), bytes), "the library does not know a block of %zu", bytes);
  }
  char *text = duplicate("made by libc for the library");
  CHECK(strcmp(text, "made by libc for the library") == 0, "strdup gave '%s'", text);
  free(text);
  dlclose(open_library(path, RTLD_DEEPBIND)); // a second time: still one message
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: home_dlopen tls|deepbind|itself LIBRARY");
  if (strcmp(argv[1], "tls") == 0) {
    for (int round = 0; round < 3; round++) load_among_threads(argv[2]);
  } else if (strcmp(argv[1], "deepbind") == 0) {
    exchange_blocks(argv[2]);
  } else {
    void *library = open_library(argv[2], 0);
    free(opaque(malloc(1000)));
    dlclose(library);
    free(opaque(malloc(1000)));
  }
  say("ok\n");
  return 0;
}
