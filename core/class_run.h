// A run cut into blocks of one class: the truth about which of its blocks are free below the
// caches.
//
// The bitmap lies outside the slabs: bit set = the block is here, free. Taking clears bits, giving
// sets them, so a block that is given twice, or that does not begin where a block begins, is found
// out. Which list holds the run, and which lock protects it, is the caller's affair: core/central.h
// has a lock per class, hz4 one per heap.
//
// Invariants (hz_class_run_check): run->free is the number of bits set; no bit beyond run->blocks
// is set; no bit is set in a word below run->first_word.
#ifndef HZ_CORE_CLASS_RUN_H
#define HZ_CORE_CLASS_RUN_H

#include "core/arena.h"
#include "core/idle_blocks.h"
#include "core/misuse.h"
#include "core/size_class.h"

// Makes `run`, just taken from the arena with the class's number of slabs, a run of free blocks.
// False: no memory for its bitmap; nothing has changed.
bool hz_class_run_open(struct hz_run *run, unsigned class_id);

// Frees the bitmap. The run then goes to the arena.
void hz_class_run_close(struct hz_run *run);

// Takes up to `want` of the lowest free blocks, written downwards from out[want - 1]: a magazine
// hands out the lowest first. Returns how many.
uint32_t hz_class_run_take(struct hz_run *run, void **out, uint32_t want);

// Puts one block back. run: the one that hz_run_of names, or NULL. False, with the reason, for what
// is not the start of a taken block of this class; nothing has changed then.
bool hz_class_run_give(struct hz_run *run, unsigned class_id, const void *block,
                       enum hz_misuse_kind *reason);

// Whether a block is free here. block: the start of a block of this run.
bool hz_class_run_has(const struct hz_run *run, const void *block);

// Gives back the pages that only free blocks touch, as hz_idle_blocks_decay does it. The caller's
// lock is held: the free blocks must stay free meanwhile.
size_t hz_class_run_decay(struct hz_run *run, bool all, bool tick, unsigned *calls);

// NULL, or the first broken invariant.
const char *hz_class_run_check(const struct hz_run *run);

#endif
