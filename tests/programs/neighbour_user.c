// Says whose blocks it gets. Argument: who has to serve it: ours (hakozuna), theirs (libneighbour),
// forwarded (hakozuna, through libforwarding).
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

static const char *our_profile(void) {
  const char *(*profile)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "hakozuna_profile");
  CHECK(profile != NULL, "hakozuna is not loaded");
  return profile();
}

static bool is_theirs(const void *p) {
  int (*has)(const void *) = (int (*)(const void *))dlsym(RTLD_DEFAULT, "neighbour_has");
  return has != NULL && has(p);
}

static unsigned long forwarded(void) {
  unsigned long (*calls)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "forwarding_calls");
  CHECK(calls != NULL, "libforwarding is not loaded");
  return calls();
}

int main(int argc, char **argv) {
  CHECK(argc == 2, "usage: neighbour_user ours|theirs|forwarded");
  bool theirs = strcmp(argv[1], "theirs") == 0;
  for (size_t bytes = 1; bytes < 1000000; bytes *= 3) {
    void *p = opaque(malloc(bytes)), *aligned = opaque(memalign(64, bytes));
    char *text = strdup("by libc");
    CHECK(p != NULL && aligned != NULL && text != NULL, "no block of %zu bytes", bytes);
    CHECK(is_theirs(p) == theirs && is_theirs(aligned) == theirs && is_theirs(text) == theirs,
          "a block of %zu bytes came from the wrong allocator", bytes);
    free(realloc(p, bytes * 2));
    free(aligned);
    free(text);
  }
  const char *expected = theirs ? "none" : "hz", *profile = our_profile();
  CHECK(strncmp(profile, expected, 2) == 0, "the profile is '%s', expected '%s...'", profile,
        expected);
  if (strcmp(argv[1], "forwarded") == 0) CHECK(forwarded() > 0, "no call went through");
  say("ok\n");
  return 0;
}
