// The table of allocators. The first row is ours; the order of the others does not matter.
#include "tools/allocators.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/command.h"
#include "tools/elf_file.h"
#include "tools/print.h"

static const struct hz_allocator allocators[] = {
    {.name = "hakozuna", .prefix = "libhakozuna"},
    {.name = "jemalloc",
     .prefix = "libjemalloc",
     .package = "libjemalloc2",
     .files = {"libjemalloc.so.2"}},
    {.name = "tcmalloc",
     .prefix = "libtcmalloc",
     .package = "libtcmalloc-minimal4",
     .files = {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}},
    {.name = "mimalloc",
     .prefix = "libmimalloc",
     .package = "libmimalloc2.0",
     .files = {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"}},
    {.name = "mimalloc3", .prefix = "libmimalloc", .files = {"libmimalloc.so"}, .built = true},
    {.name = "snmalloc", .prefix = "libsnmalloc", .files = {"libsnmalloc.so"}, .built = true},
    // Its caches per processor need restartable sequences that are not the C library's.
    {.name = "tcmalloc-google",
     .prefix = "libtcmalloc",
     .files = {"libtcmalloc-google.so"},
     .built = true,
     .setting = "GLIBC_TUNABLES=glibc.pthread.rseq=0"},
    {.name = "rpmalloc", .prefix = "librpmalloc"},
    {.name = "hardened_malloc", .prefix = "libhardened_malloc"},
    {.name = "scudo", .prefix = "libscudo"},
    {.name = "Hoard", .prefix = "libhoard"},
    {.name = "Mesh", .prefix = "libmesh"},
    {.name = "oneTBB", .prefix = "libtbbmalloc_proxy"},
};

const struct hz_allocator *hz_allocator_of(const char *file) {
  const char *slash = strrchr(file, '/');
  const char *name = slash ? slash + 1 : file;
  for (size_t i = 0; i < hz_count_of(allocators); i++) {
    size_t prefix = strlen(allocators[i].prefix);
    // "libmesh.so", "libjemalloc-5.so", "libtcmalloc_minimal.so", but not "libmeshlab.so".
    if (strncmp(name, allocators[i].prefix, prefix) != 0) continue;
    if (name[prefix] == '.' || name[prefix] == '-' || name[prefix] == '_') return &allocators[i];
  }
  return NULL;
}

int hz_library_check(const char *path) {
  struct hz_elf_file library;
  enum hz_elf_state state = hz_elf_open(&library, path);
  bool fits = state == HZ_ELF_READ && library.machine == hz_elf_own_machine() &&
              hz_elf_is_library(&library);
  hz_elf_close(&library);
  if (state == HZ_ELF_NO_FILE) {
    hz_log("%s: %s; a shared library is needed here.", path, strerror(errno));
    return HZ_EXIT_NO_FILE;
  }
  if (!fits) {
    hz_log("%s cannot be preloaded: it is no whole 64-bit shared library for this machine.", path);
    return HZ_EXIT_NO_LIBRARY;
  }
  // ld.so splits LD_PRELOAD at spaces and colons and knows no way of quoting them.
  if (strpbrk(path, " :")) {
    hz_log("%s cannot be preloaded: LD_PRELOAD cannot hold a path with a space or a colon; move "
           "the library to a folder without.",
           path);
    return HZ_EXIT_NO_LIBRARY;
  }
  return HZ_EXIT_OK;
}

// Where ld.so looks on Debian, Fedora and by hand, in its order. path: PATH_MAX bytes.
static bool find_in_system(const char *file, char *path) {
  struct utsname system;
  uname(&system);
  char multiarch[PATH_MAX / 2];
  hz_format(multiarch, sizeof multiarch, "/usr/lib/%s-linux-gnu", system.machine);
  const char *const folders[] = {"/usr/local/lib", multiarch, "/usr/lib64", "/usr/lib"};
  for (size_t i = 0; i < hz_count_of(folders); i++) {
    hz_format(path, PATH_MAX, "%s/%s", folders[i], file);
    if (access(path, R_OK) == 0) return true;
  }
  return false;
}

// Where bench/peers.sh puts what it builds, as the XDG base directories have it.
static void find_built(const struct hz_allocator *allocator, char *path) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  bool set = cache && cache[0] == '/';
  hz_format(path, PATH_MAX, "%s%s/hakozuna/peers/%s/%s",
            set    ? cache
            : home ? home
                   : "",
            set ? "" : "/.cache", allocator->name, allocator->files[0]);
}

const struct hz_allocator *hz_allocator_named(size_t i) {
  for (size_t row = 0; row < hz_count_of(allocators); row++)
    if (allocators[row].files[0] && i-- == 0) return &allocators[row];
  return NULL;
}

bool hz_allocator_find(const struct hz_allocator *allocator, char *path) {
  if (allocator->built) {
    find_built(allocator, path);
    return access(path, R_OK) == 0;
  }
  for (size_t i = 0; i < hz_count_of(allocator->files) && allocator->files[i]; i++)
    if (find_in_system(allocator->files[i], path)) return true;
  return false;
}

void hz_allocator_advice(const struct hz_allocator *allocator, char *sentence, size_t bytes) {
  char path[PATH_MAX];
  if (allocator->built) {
    find_built(allocator, path);
    hz_format(sentence, bytes, "%s is not built: there is no %s; bench/peers.sh builds it.",
              allocator->name, path);
  } else {
    hz_format(sentence, bytes,
              "%s is not installed: %s is in none of the system's library folders; `apt-get "
              "install %s` brings it.",
              allocator->name, allocator->files[0], allocator->package);
  }
}

int hz_allocator_locate(const char *option, const char *given, char *path) {
  if (strchr(given, '/')) {
    if (realpath(given, path)) return hz_library_check(path);
    hz_log("%s %s: %s; name a shared library.", option, given, strerror(errno));
    return HZ_EXIT_NO_FILE;
  }
  const struct hz_allocator *allocator;
  for (size_t i = 0; (allocator = hz_allocator_named(i)) != NULL; i++) {
    if (strcmp(allocator->name, given) != 0) continue;
    if (hz_allocator_find(allocator, path)) return hz_library_check(path);
    char sentence[PATH_MAX + 256];
    hz_allocator_advice(allocator, sentence, sizeof sentence);
    hz_log("%s Or give %s the library's path.", sentence, option);
    return HZ_EXIT_NO_LIBRARY;
  }
  hz_log("%s %s is unknown; it can be system, jemalloc, tcmalloc, mimalloc, mimalloc3, snmalloc, "
         "tcmalloc-google or "
         "the path of a library.",
         option, given);
  return HZ_EXIT_USAGE;
}
