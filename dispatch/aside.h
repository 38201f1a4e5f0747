// Stepping aside: every entry becomes the one that the program would have without this library.
#ifndef HZ_DISPATCH_ASIDE_H
#define HZ_DISPATCH_ASIDE_H

#include "core/base.h"

// Publishes links to the next definitions, before any block was given, and says why in one line.
// reason: a clause. False: there is no other malloc to step aside for; nothing was published.
bool hz_step_aside(const char *program, const char *reason);

#endif
