// Free blocks of 64 KiB to 4 MiB on their way from one thread's run cache to another's: a bounded
// stack per slab count, under a lock each, between the caches and the arena. A block that was
// written to comes back as the same block, so that no other pages are touched in its place.
#ifndef HZ_CORE_RUN_TRANSFER_H
#define HZ_CORE_RUN_TRANSFER_H

#include "core/arena.h"

// Blocks of each slab count that may wait; 0: none do. Option cache.run_transfer.
extern size_t hz_run_transfer_blocks;

void hz_run_transfer_start(void);

// Up to `most` runs of so many slabs, linked by next; NULL: none wait.
struct hz_run *hz_run_transfer_take(unsigned slabs, unsigned most);

// Takes runs in (linked by next, free, of any slab counts). Returns those that found no room.
struct hz_run *hz_run_transfer_give(struct hz_run *list);

// A tick has passed: what nobody has needed since the last one goes to the arena.
void hz_run_transfer_decay(void);

// All goes to the arena. Returns the bytes.
size_t hz_run_transfer_flush(void);

#endif
