// The runs of all threads, by class: where blocks are free below the caches.
//
// A class has one lock and, per home, a list of runs (core/class_run.h) with free blocks. What a
// home is (hz3: a shard) is the line's affair. A run whose blocks are all free leaves the class,
// and its slabs can serve any other.
#ifndef HZ_CORE_CENTRAL_H
#define HZ_CORE_CENTRAL_H

#include "core/class_run.h"

enum { HZ_HOMES = 64 };

// Makes `run`, just taken from the arena with the class's number of slabs, a run of free blocks
// that no list holds: the caller takes from it at once with hz_central_take_new. False: no memory
// for its bitmap; the run still belongs to the caller.
bool hz_central_carve(struct hz_run *run, unsigned class_id, unsigned home);

// Takes up to `want` blocks out of a run just carved and lists the run. Returns how many.
uint32_t hz_central_take_new(struct hz_run *run, void **out, uint32_t want);

// Takes up to `want` blocks from the runs of one home; the first in address order comes last in
// `out`, so that a magazine hands it out first. *from: the run of the last block (to move its home
// with hz_central_move while one of its blocks is still in hand). 0: the home has none.
uint32_t hz_central_take(unsigned class_id, unsigned home, void **out, uint32_t want,
                         struct hz_run **from);

// Whether a home seems to have free blocks. Without the lock: a hint.
bool hz_central_has(unsigned class_id, unsigned home);

// The first of some homes (a bit each) that seems to have free blocks; HZ_HOMES: none. Without the
// lock: a hint.
unsigned hz_central_find_home(unsigned class_id, uint64_t homes);

// Moves a run to another home.
void hz_central_move(struct hz_run *run, unsigned home);

// Puts blocks back. Blocks that are not (or are free already) go to hz_misuse and are dropped;
// `when` is said there of the moment, NULL: it is the program's own call.
// Returns the runs that became empty, linked by next, unlisted: the caller clears what it knows of
// them and gives them to hz_central_release.
struct hz_run *hz_central_give(unsigned class_id, void *const *blocks, uint32_t count,
                               const char *when);

// Frees the bitmaps of empty runs and gives their slabs to the arena.
void hz_central_release(struct hz_run *list);

// Gives back the pages inside runs that hold free blocks only, for malloc_trim. Returns bytes.
size_t hz_central_purge(unsigned class_id);

// Runs from which nothing was taken and to which nothing was given for HZ_IDLE_TICKS ticks give the
// pages back that only free blocks touch, once. tick: one has passed. *calls: system calls that may
// still be made; counted down to 0 when they do not suffice. Returns bytes.
size_t hz_central_decay(unsigned class_id, bool tick, unsigned *calls);

// Blocks of a class that are free here, in bytes.
uint64_t hz_central_free_bytes(unsigned class_id);

// Registers the locks with the fork handlers.
void hz_central_start(void);

// Walks every run of every class that is listed: NULL, or the first broken invariant. also: asked
// about each, under the class's lock; NULL: nobody.
const char *hz_central_check(const char *(*also)(const struct hz_run *run));

#endif
