// Who called: the return addresses above us, and their names, without allocation.
#ifndef HZ_CORE_BACKTRACE_H
#define HZ_CORE_BACKTRACE_H

#include "core/base.h"

enum { HZ_BACKTRACE_FRAMES = 32, HZ_FRAME_BYTES = 400 };

struct hz_backtrace {
  uintptr_t frames[HZ_BACKTRACE_FRAMES]; // innermost first
  size_t count;
  size_t first_outside; // index of the first frame that is not in this library; `count`: not known
};

// Walks the stack of the calling thread.
HZ_SLOW void hz_backtrace_take(struct hz_backtrace *trace);

// Writes "module+0xoffset (symbol+0xoffset)" for an address, cut to `bytes`. The symbol is left out
// where the module exports none.
void hz_frame_name(uintptr_t frame, char *text, size_t bytes);

// Logs one line per frame, from the first outside of this library on (all, where it is not known).
void hz_backtrace_log(const struct hz_backtrace *trace);

#endif
