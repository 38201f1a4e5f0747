// Who serves malloc in this process: found twice, by the symbols and by asking glibc whether its
// heap grows while blocks are allocated. A preload that did not take place, or a library that
// passes calls on, shows as a contradiction or under another name.
#ifndef HZ_BENCH_PROOF_H
#define HZ_BENCH_PROOF_H

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "fail.h"

// Above what glibc's per-thread cache keeps, which it would count as allocated already.
enum { PROOF_SMALL = 256, PROOF_LARGE = 4, PROOF_SMALL_BYTES = 4096, PROOF_LARGE_BYTES = 1 << 20 };

// The object that defines what a lookup of `name` finds.
static inline Dl_info proof_object(void *handle, const char *name) {
  Dl_info info;
  void *address = dlsym(handle, name);
  if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL) {
    fail(EXIT_NOT_SERVED, "no loaded object defines %s", name);
  }
  return info;
}

static inline size_t proof_used(struct mallinfo2 (*ask)(void)) {
  struct mallinfo2 info = ask();
  return info.uordblks + info.hblkhd;
}

// By how much glibc's own heap grows while the blocks of the proof are live.
static inline size_t proof_growth(struct mallinfo2 (*ask)(void)) {
  void *blocks[PROOF_SMALL + PROOF_LARGE];
  size_t before = proof_used(ask);
  for (size_t i = 0; i < PROOF_SMALL + PROOF_LARGE; i++) {
    blocks[i] = malloc(i < PROOF_SMALL ? PROOF_SMALL_BYTES : PROOF_LARGE_BYTES);
    if (blocks[i] == NULL) fail(EXIT_BROKEN, "malloc returned NULL to the proof of who serves");
  }
  size_t during = proof_used(ask);
  for (size_t i = 0; i < PROOF_SMALL + PROOF_LARGE; i++) free(blocks[i]);
  return during - before;
}

// The path of the object that serves, in a static buffer. A contradiction ends the process.
static inline const char *proof_find(void) {
  static char path[PATH_MAX];
  Dl_info taker = proof_object(RTLD_DEFAULT, "malloc"), giver = proof_object(RTLD_DEFAULT, "free");
  if (taker.dli_fbase != giver.dli_fbase) {
    fail(EXIT_NOT_SERVED, "malloc is defined by %s, but free by %s", taker.dli_fname,
         giver.dli_fname);
  }
  void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == NULL) fail(EXIT_NOT_SERVED, "libc.so.6 is not loaded; who serves cannot be told");
  Dl_info glibc = proof_object(libc, "mallinfo2");
  struct mallinfo2 (*ask)(void);
  *(void **)&ask = dlsym(libc, "mallinfo2"); // as POSIX has it: C knows no such cast
  size_t growth = proof_growth(ask);
  size_t asked = (size_t)PROOF_SMALL * PROOF_SMALL_BYTES + (size_t)PROOF_LARGE * PROOF_LARGE_BYTES;
  bool glibc_named = taker.dli_fbase == glibc.dli_fbase;
  if (glibc_named ? growth < asked : growth != 0) {
    fail(EXIT_NOT_SERVED,
         "malloc is defined by %s, but glibc's heap grew by %zu bytes while %zu "
         "were allocated; expected: %s",
         taker.dli_fname, growth, asked, glibc_named ? "at least as many" : "none");
  }
  if (realpath(taker.dli_fname, path) == NULL) snprintf(path, sizeof path, "%s", taker.dli_fname);
  return path;
}

#endif
