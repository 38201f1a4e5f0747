// Blocks above a line's size classes, for every line: runs of slabs to 4 MiB (core/run_block.h),
// whole segments beyond (core/large.h). Which of the two p is, core knows from the arena.
#ifndef HZ_CORE_ABOVE_H
#define HZ_CORE_ABOVE_H

#include "core/run_block.h"

// cache: the calling thread's, or NULL for threads that have none, here and below.
// A block of `bytes` aligned to `align`, its first `bytes` zero if `zeroed`. When the kernel refuses
// memory, last_resort is asked to give back what lies in caches (true: there was something), once.
// NULL, with ENOMEM: nothing helped. *pause: it is time for the line to end its slow path with a
// look at the clock.
void *hz_above_take(struct hz_run_cache *cache, size_t align, size_t bytes, bool zeroed,
                    bool (*last_resort)(void), bool *pause);

// Takes back a block. p: not of a class; NULL does nothing, anything that is no block goes to
// hz_misuse. *pause: as above.
void hz_above_give(struct hz_run_cache *cache, void *p, bool *pause);

// Bytes that may be used at p; 0 for NULL and, after hz_misuse, for what is no block.
size_t hz_above_usable(void *p);

// The contract of hz_table.resize (lines/line.h).
void *hz_above_resize(void *p, size_t bytes);

#endif
