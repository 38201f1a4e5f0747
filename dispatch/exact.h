// Exact counting (stats.exact = on): every call by size class, and every free by a thread other
// than the one that allocated. A table around the line's table; off, it does not exist.
#ifndef HZ_DISPATCH_EXACT_H
#define HZ_DISPATCH_EXACT_H

#include "core/size_class.h"
#include "lines/line.h"
#include "stats/report.h"

// A row per class, one for runs (to 4 MiB), one for larger blocks.
enum { HZ_EXACT_RUN = HZ_CLASS_COUNT, HZ_EXACT_LARGE, HZ_EXACT_ROWS };

// The table to publish instead of the line's. The line and the arena have started.
const struct hz_table *hz_exact_start(const struct hz_table *line);

// The counts since the start, or since the fork in a child.
void hz_exact_read(struct hz_exact_class rows[HZ_EXACT_ROWS]);

// False: the kernel gave no memory to note who allocated, so remote frees are not known.
bool hz_exact_knows_remote(void);

// All counts to 0. Only while no other thread runs.
void hz_exact_reset(void);

#endif
