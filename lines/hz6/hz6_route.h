// RouteLayer: what an address is.
//
// The page map has one byte for every place where a block may begin: 0, or the mark of the live
// block there, which is its class + 1. So one load answers a free: is p the start of a live block,
// and of which class? That is exact, and it is the state of the block as well: alloc writes the
// mark, free takes it away, and who frees twice finds 0.
//
//   small    classes to 2 KiB: a byte per 16 bytes, 4 KiB per slab
//   medium   classes above:    a byte per 256 bytes, 256 bytes per slab
//
// Both begin at the arena's base, so a slab has rows in either; that of the other kind is zero. The
// rows of a free slab are zero in both, and the small ones' pages go back with the slab's own.
//
// A mark is written by whoever holds the block, and read by whoever frees it: relaxed, like the
// block's contents. Two threads that free a block at the same moment may both read its mark; the
// runs' bitmaps (core/class_run.h) refuse the second when the block comes down.
//
// Route decides nothing: it answers. Blocks above 64 KiB are known to the arena.
#ifndef HZ_LINES_HZ6_ROUTE_H
#define HZ_LINES_HZ6_ROUTE_H

#include "core/arena.h"
#include "core/misuse.h"
#include "core/size_class.h"

enum {
  HZ6_MARKS = HZ_CLASS_COUNT + 1,                   // 0: no live block
  HZ6_SMALL_SHIFT = 4,                              // every class is a multiple of 16
  HZ6_SMALL_MARKS = 24,                             // classes to 2 KiB
  HZ6_MEDIUM_SHIFT = 8,                             // every class above is a multiple of 256
  HZ6_SMALL_ROW = HZ_SLAB_BYTES >> HZ6_SMALL_SHIFT, // bytes per slab
  HZ6_MEDIUM_ROW = HZ_SLAB_BYTES >> HZ6_MEDIUM_SHIFT,
};

// In a cache line of its own. After start only hz6_route_concede changes it.
struct hz6_map {
  _Alignas(HZ_CACHE_LINE) uintptr_t small_base; // the arena's, in places
  uintptr_t medium_base;
  size_t small_places, medium_places;
  _Atomic uint8_t *small, *medium;
};
extern HZ_HIDDEN struct hz6_map hz6_map;

HZ_FAST size_t hz6_rotate(uintptr_t n, unsigned by) {
  return n >> by | n << (64 - by);
}
// The place of an address, counted from the arena's base; beyond the last one for what lies
// outside of the arena, and for what lies between two places: its low bits turn up at the top.
HZ_FAST size_t hz6_small_place(const void *p) {
  return hz6_rotate((uintptr_t)p, HZ6_SMALL_SHIFT) - hz6_map.small_base;
}
HZ_FAST size_t hz6_medium_place(const void *p) {
  return hz6_rotate((uintptr_t)p, HZ6_MEDIUM_SHIFT) - hz6_map.medium_base;
}
// The same for the start of a block.
HZ_FAST size_t hz6_small_of(const void *p) {
  return ((uintptr_t)p >> HZ6_SMALL_SHIFT) - hz6_map.small_base;
}
HZ_FAST size_t hz6_medium_of(const void *p) {
  return ((uintptr_t)p >> HZ6_MEDIUM_SHIFT) - hz6_map.medium_base;
}
HZ_FAST unsigned hz6_mark_at(const _Atomic uint8_t *byte) {
  return atomic_load_explicit(byte, memory_order_relaxed);
}
HZ_FAST void hz6_mark_set(_Atomic uint8_t *byte, unsigned mark) {
  atomic_store_explicit(byte, (uint8_t)mark, memory_order_relaxed);
}
// The byte of a block of that mark. p: a block's start.
HZ_FAST _Atomic uint8_t *hz6_byte_of(const void *p, unsigned mark) {
  if (mark <= HZ6_SMALL_MARKS) return &hz6_map.small[hz6_small_of(p)];
  return &hz6_map.medium[hz6_medium_of(p)];
}

enum hz6_answer { HZ6_MISS, HZ6_VALID, HZ6_INVALID };
enum hz6_kind { HZ6_KIND_CLASS, HZ6_KIND_RUN, HZ6_KIND_LARGE };

struct hz6_route {
  enum hz6_answer answer; // MISS: not in the arena. INVALID: inside, but no live block begins there
  enum hz6_kind kind;     // VALID: of a class, a run of slabs, or above 4 MiB
  unsigned class_id;      // of a class; INVALID: of the run that p lies in, else HZ_CLASS_COUNT
  uint32_t generation;    // how many runs of classes have begun at the run's first slab
  void *descriptor;       // struct hz_run, or struct hz_large; NULL: none
  enum hz_misuse_kind why; // not VALID: what a free of p would be
};

// Takes the tables. False: no memory.
bool hz6_route_start(void);
// The arena has given address space up (hz_arena_concede): so does the map.
void hz6_route_concede(void);
// Makes the rows of a run's slabs writable, and counts its generation. False: no memory, or the run
// lies beyond the map's end.
bool hz6_route_open(struct hz_run *run);
// The answer in full, from the map and the descriptors.
struct hz6_route hz6_route(const void *p);
// The byte that says whether p is a live block of a class, whatever it says; NULL: p is in no place.
_Atomic uint8_t *hz6_route_byte(const void *p);
// Takes the mark of a live block away, exactly: of two threads that free it at once, one gets 0. 0:
// no live block of a class begins at p. Rows that were never used are read, not written.
unsigned hz6_route_unmark(const void *p);
// Whether no block of a run is marked.
bool hz6_route_is_clear(const struct hz_run *run);
// NULL, or what the map says of a listed run that its bitmap denies.
const char *hz6_route_check(const struct hz_run *run);

#endif
