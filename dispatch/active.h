// The active table: what every exported symbol jumps through.
//
// It begins as the boot table (boot.c), is published once at the end of the process's start, and is
// read-only from then on, so that an overflow elsewhere cannot redirect malloc. It has pages of its
// own, so that sealing it seals nothing else.
#ifndef HZ_DISPATCH_ACTIVE_H
#define HZ_DISPATCH_ACTIVE_H

#include "core/base.h"
#include "dispatch/family.h"
#include "lines/line.h"

enum { HZ_ACTIVE_ALIGN = 4096 };

struct hz_active {
  struct hz_table table;   // malloc, free, malloc_usable_size, and what the rules below call
  struct hz_family family; // everything else: rules.h, or the next allocator's own functions
} __attribute__((aligned(HZ_ACTIVE_ALIGN)));

extern struct hz_active hz_active __attribute__((visibility("hidden")));

// Puts the entries in place and seals them. Once, by the thread that starts the process; a kernel
// that refuses to seal is tolerated, and so are pages larger than the table's.
void hz_active_publish(const struct hz_table *table, const struct hz_family *family);

#endif
