// Which allocators come as a shared library, how to recognise one by its file name, and where this
// machine keeps those that can be asked for by name: as a package of Debian's, or as bench/peers.sh
// has built them.
#ifndef HZ_TOOLS_ALLOCATORS_H
#define HZ_TOOLS_ALLOCATORS_H

#include "core/base.h"

struct hz_allocator {
  const char *name;
  const char *prefix;   // of the file name: "libjemalloc"
  const char *package;  // Debian's; NULL: none
  const char *files[3]; // in order of preference
  bool built;           // by bench/peers.sh, into a folder of this name
  const char *setting;  // an environment variable that it wants, NAME=VALUE; NULL: none
};

// The allocator whose library `file` (a path or a file name) is; NULL: none of those known here.
const struct hz_allocator *hz_allocator_of(const char *file);

// The i-th allocator, besides ours, that can be asked for by name; NULL after the last.
const struct hz_allocator *hz_allocator_named(size_t i);

// Where its library is. path: PATH_MAX bytes. False: nowhere; hz_allocator_advice tells what to do.
bool hz_allocator_find(const struct hz_allocator *allocator, char *path);

// Writes a sentence: where it was looked for, and what brings it.
void hz_allocator_advice(const struct hz_allocator *allocator, char *sentence, size_t bytes);

// Turns a name or a path with a slash into the absolute path of a library that this machine can
// preload. path: PATH_MAX bytes; option: what it was given to, for sentences ("--allocator").
// Returns an exit code; after an error the sentence has been printed.
int hz_allocator_locate(const char *option, const char *given, char *path);

// Says in one sentence whether `path` can be preloaded into programs of this machine. An exit code.
int hz_library_check(const char *path);

#endif
