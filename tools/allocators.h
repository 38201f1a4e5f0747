// Which allocators come as a shared library, how to recognise one by its file name, and where a
// Debian system keeps those that `run --allocator` offers.
#ifndef HZ_TOOLS_ALLOCATORS_H
#define HZ_TOOLS_ALLOCATORS_H

#include "core/base.h"

struct hz_allocator {
  const char *name;
  const char *prefix;   // of the file name: "libjemalloc"
  const char *package;  // Debian's; NULL: not offered by --allocator
  const char *files[3]; // in order of preference
};

// The allocator whose library `file` (a path or a file name) is; NULL: none of those known here.
const struct hz_allocator *hz_allocator_of(const char *file);

// Turns what --allocator was given (a name, or a path with a slash) into the absolute path of a
// library that this machine can preload. path: PATH_MAX bytes. Returns an exit code; after an error
// the sentence has been printed.
int hz_allocator_locate(const char *given, char *path);

// Says in one sentence whether `path` can be preloaded into programs of this machine. An exit code.
int hz_library_check(const char *path);

#endif
