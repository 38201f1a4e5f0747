// hz6, the contract-first line: small parts that each keep a contract, and what they say to each
// other. Each part has a header that is its contract, and a file:
//
//   Route      what an address is: MISS, VALID or INVALID, by the page map   hz6_route.h
//   FrontCache a thread's free blocks at hand, in magazines                  hz6_front.h
//              or a processor's                                              hz6_cpu.h
//   Transfer   whole magazines between threads, bounded                      hz6_transfer.h
//   Source     the runs: owns memory, knows what is free below the caches    hz6_source.h
//   Scavenge   memory that nobody needs goes back, within a budget           hz6_scavenge.h
//   Policy     the options as figures                                        hz6_policy.h
//
//   malloc:  FrontCache -> Transfer -> Source; then Route marks the block as live
//   free:    Route says that a live block begins here, and its class; the mark goes; FrontCache
//            -> Transfer -> Source
//
// Nobody owns a block: it stays with the thread that freed it (`owners` is the exception). Route is
// exact in every free: only the start of a live block is marked, and a block in any of the parts is
// not. What two threads free at the very same moment is found by Source.
//
// Invariants (hz6_check.c; those of arena and central hold too):
//   a marked block is in the program's hands, or in those of a thread on its way there: no part
//   holds it
//   a mark is its block's class + 1, and stands where one of the run's blocks begins
//   a magazine in Transfer holds 1..capacity blocks of its class, none marked, each taken from Source
#ifndef HZ_LINES_HZ6_MODEL_H
#define HZ_LINES_HZ6_MODEL_H

#include "lines/hz6/hz6_cpu.h"
#include "lines/hz6/hz6_front.h"
#include "lines/hz6/hz6_options.h"
#include "lines/hz6/hz6_policy.h"
#include "lines/hz6/hz6_route.h"
#include "lines/hz6/hz6_scavenge.h"
#include "lines/hz6/hz6_source.h"
#include "lines/hz6/hz6_transfer.h"
#include "lines/line.h"

// Marks of sizes above 1 KiB, by (bytes + 255) / 256. The line's own, because growth_room changes
// it (hz6_room.c).
extern HZ_HIDDEN _Atomic uint8_t hz6_mark_by_256[HZ_CLASS_MAX_BYTES / 256 + 1];

// bytes: above HZ_CLASS_BY_16_MAX, to HZ_CLASS_MAX_BYTES.
HZ_FAST unsigned hz6_medium_mark(size_t bytes) {
  return atomic_load_explicit(&hz6_mark_by_256[(bytes + 255) >> 8], memory_order_relaxed);
}

// hz6.c: the hot pair of thread caches, also called directly by the benchmarks; and what all hot
// entries have below them.
void *hz6_alloc(size_t bytes);
void hz6_release(void *p);
// The entries of the chosen profile.
const struct hz_table *hz6_table(void);
// For the entries of other front caches: blocks above 64 KiB, and what a free cannot be.
void *hz6_alloc_above(struct hz6_heap *heap, size_t align, size_t bytes, bool zeroed);
void hz6_release_above(struct hz6_heap *heap, void *p);
size_t hz6_usable_size(void *p);
void *hz6_resize(void *p, size_t bytes);

// hz6_strict.c: a release that asks the descriptor.
void hz6_strict_release(void *p);

// hz6_room.c: room for blocks that grow.
void hz6_room_start(void);
void hz6_room_period(void);
// hz_table.resize under growth_room. usable: of p; 0: p is no live block.
void *hz6_room_resize(void *p, size_t usable, size_t bytes);

// hz6_check.c
const char *hz6_check(void);

#endif
