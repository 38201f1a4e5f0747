// SourceLayer: owns the memory of the classes, and hands it out block by block.
//
// Runs of slabs with a bitmap each (core/central.h, core/class_run.h): the truth about which blocks
// are free below the caches, so here every double free that two threads made at the same moment is
// found. A run whose blocks are all free goes back to the arena at once, for any class.
//
// Homes: with Policy's `owners` a run belongs to the group of threads that opened it, else all runs
// are home 0's. Source is asked by whoever found nothing in the transfer cache.
#ifndef HZ_LINES_HZ6_SOURCE_H
#define HZ_LINES_HZ6_SOURCE_H

#include "core/central.h"
#include "lines/hz6/hz6_magazine.h"
#include "lines/hz6/hz6_policy.h"

// Up to `want` blocks of a class into out, to be popped from the end: from runs of this home, of
// homes where nobody lives, from a new run, at last from anybody's. They are free and not marked.
// want: at most HZ6_MAX_FRONT_BLOCKS. Returns how many; 0: no memory.
uint32_t hz6_source_take(unsigned class_id, unsigned home, struct hz6_item *out, uint32_t want);

// Takes blocks back, each into its run. What is none, or is free already, goes to hz_misuse.
void hz6_source_give(unsigned class_id, const struct hz6_item *items, uint32_t count);

// A thread lives in a home from now on, or does so no more.
void hz6_source_join(unsigned home);
void hz6_source_leave(unsigned home);

#endif
