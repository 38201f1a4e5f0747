// Stepping aside: every entry becomes the one that the program would have without this library.
#ifndef HZ_DISPATCH_ASIDE_H
#define HZ_DISPATCH_ASIDE_H

#include "dispatch/neighbours.h"

// Publishes links to the next definitions, before any block was given. Calls no function of libc
// but mprotect. False: there is no other malloc to step aside for; nothing was published.
bool hz_step_aside(void);

// Says why in one line. From the constructor on.
void hz_aside_explain(const char *program, const struct hz_neighbours *neighbours);

#endif
