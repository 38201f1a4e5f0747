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

struct hz_neighbours {
  bool step_aside;
  char reason[512];         // why, as a clause: "the executable brings its own allocator (...)"
  unsigned replaced;        // libraries whose malloc ours takes the place of, libc not counted
  char replaced_names[128]; // their names, comma-separated, as many as fit
};

// Looks at the objects that are loaded now. Once, before the first block is given. Does not allocate.
void hz_neighbours_read(struct hz_neighbours *out);

#endif
