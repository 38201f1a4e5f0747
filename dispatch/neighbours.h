// Who else in this process allocates, and whether that leaves a place for us.
//
// The library steps aside where its blocks and another allocator's would meet in one free:
//   - a sanitizer's runtime is loaded, which has to see every block itself;
//   - the executable, or a library before ours, brings its own malloc, so that only the functions
//     that it lacks would reach us;
//   - an object uses another allocator's own block functions (mallocx, tc_malloc, ...).
// A library after ours that merely defines malloc is what a preload is there to replace.
#ifndef HZ_DISPATCH_NEIGHBOURS_H
#define HZ_DISPATCH_NEIGHBOURS_H

#include "core/base.h"

enum hz_aside {
  HZ_ASIDE_NO, // this library serves the process
  HZ_ASIDE_SANITIZER,
  HZ_ASIDE_OWN_MALLOC,
  HZ_ASIDE_BLOCK_FUNCTIONS,
  HZ_ASIDE_NO_MEMORY, // not a neighbour's doing: no line could start
};

enum { HZ_REPLACED_NAMED = 4 };

struct hz_neighbours {
  enum hz_aside aside;
  const char *object; // path of the object that decided; "" is the executable
  const char *symbol; // the name that gave it away
  unsigned replaced;  // libraries whose malloc ours takes the place of, libc not counted
  const char *replaced_paths[HZ_REPLACED_NAMED]; // the first of them, NULL after the last
};

// Looks at the objects that are loaded now. Once, before the first block is given. Calls no
// function of libc (dispatch/objects.h).
void hz_neighbours_read(struct hz_neighbours *out);

#endif
