// The value of LD_PRELOAD: what is in it, and where a library goes.
#ifndef HZ_TOOLS_PRELOAD_H
#define HZ_TOOLS_PRELOAD_H

#include "core/base.h"

// Puts `library` into a value of LD_PRELOAD, after everything that watches allocations and before
// everything that replaces the allocator. `existing`: the present value or NULL. Its entries stay
// as they are; a library that serves already is not added again. Returns an allocated string, or
// NULL without memory.
char *hz_preload_join(const char *existing, const char *library);

// Finds the first entry of a value of LD_PRELOAD (NULL: unset) that is a known allocator. entry:
// PATH_MAX bytes.
bool hz_preload_allocator(const char *value, char *entry);

#endif
