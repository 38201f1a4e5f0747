// Does the library serve a process? Asked from outside (start a child under the library) and
// answered from inside (the hidden command `self-check`).
#ifndef HZ_TOOLS_SELF_CHECK_H
#define HZ_TOOLS_SELF_CHECK_H

#include "core/base.h"

struct hz_self_check {
  bool served;
  char path[512];   // the library that serves, as the loader knows it
  char version[64]; // what it says of itself
  char profile[64]; // the profile that it runs
  char reason[512]; // not served: why, or the first line that the child said
};

// Starts this executable again under `library` (the rest of the environment stays) and asks it.
void hz_self_check(const char *library, struct hz_self_check *result);

#endif
