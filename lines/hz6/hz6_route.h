// RouteLayer: what an address is.
//
// The page map has a record per slab: of which run it is a part, how a block's mark is found from an
// address in it, and where the run's marks are. A mark is a byte: 0, or the block's class + 1 while
// it is live. So one look into the map answers a free: does a live block begin here, and of which
// class? That is exact, and the mark is the state of the block as well: malloc writes it, free takes
// it away, and who frees twice finds 0.
//
// A mark is written by whoever holds the block, and read by whoever frees it: relaxed, like the
// block's contents. Two threads that free a block at the same moment may both read its mark. The
// runs' bitmaps (core/class_run.h) refuse the second when the block comes down; until then it may be
// handed out twice. That is left to chance so that a free needs no atomic operation; with Policy's
// `owners` it is not.
//
// Route decides nothing: it answers. Blocks above 64 KiB are known to the arena.
#ifndef HZ_LINES_HZ6_ROUTE_H
#define HZ_LINES_HZ6_ROUTE_H

#include "core/arena.h"
#include "core/misuse.h"
#include "core/size_class.h"
#include "lines/hz6/hz6_magazine.h"

enum {
  HZ6_MARKS = HZ_CLASS_COUNT + 1, // values of a mark; 0: no live block
};

// Two to a cache line. All slabs of a run have the same.
struct hz6_page {
  uint64_t reciprocal; // 2^64 / bytes per mark, rounded up; 0: of no run of a class
  uintptr_t base;      // of the run
  _Atomic uint8_t *marks;
  uint64_t unused;
};
static_assert(sizeof(struct hz6_page) == 32, "found by shifting");

extern HZ_HIDDEN struct hz6_page *hz6_pages; // by slab

// Which mark of its run stands for an address, and whether one does: whether it is a multiple of the
// bytes per mark. p: in the arena. By a reciprocal that is less than 1 too large: of the product, the
// upper half is the quotient, and the lower half is below the reciprocal only without a remainder,
// as long as the offset is below the reciprocal itself, which is at least 2^48. Never so where it is
// 0.
HZ_FAST bool hz6_has_mark(const struct hz6_page *page, const void *p, size_t *index) {
  const uint64_t offset = (uintptr_t)p - page->base;
  const unsigned __int128 product = (unsigned __int128)page->reciprocal * offset;
  *index = (size_t)(product >> 64);
  return (uint64_t)product < page->reciprocal;
}

// The item of a block that may begin at p. False: nothing has a mark there.
HZ_FAST bool hz6_item_of(void *p, struct hz6_item *item) {
  const size_t slab = hz_slab_of(p);
  size_t index;
  if (hz_unlikely(slab >= hz_arena.slab_count) ||
      hz_unlikely(!hz6_has_mark(&hz6_pages[slab], p, &index)))
    return false;
  *item = (struct hz6_item){p, hz6_pages[slab].marks + index};
  return true;
}

HZ_FAST unsigned hz6_mark_at(const _Atomic uint8_t *mark) {
  return atomic_load_explicit(mark, memory_order_relaxed);
}
HZ_FAST void hz6_mark_set(_Atomic uint8_t *at, unsigned mark) {
  atomic_store_explicit(at, (uint8_t)mark, memory_order_relaxed);
}

enum hz6_answer { HZ6_MISS, HZ6_VALID, HZ6_INVALID };
enum hz6_kind { HZ6_KIND_CLASS, HZ6_KIND_RUN, HZ6_KIND_LARGE };

struct hz6_route {
  enum hz6_answer answer; // MISS: not in the arena. INVALID: inside, but no live block begins there
  enum hz6_kind kind;     // VALID: of a class, a run of slabs, or above 4 MiB
  unsigned class_id;      // of a class; INVALID: of the run that p lies in, else HZ_CLASS_COUNT
  uint32_t generation; // how many runs of classes have begun at the run's first slab, this one too
  void *descriptor;    // struct hz_run, or struct hz_large; NULL: none
  enum hz_misuse_kind why; // not VALID: what a free of p would be
};

// Takes the table. False: no memory.
bool hz6_route_start(void);
// The arena has given address space up (hz_arena_concede): so does the map.
void hz6_route_concede(void);
// Enters a run that will be cut into blocks of a class, none of them live, and counts its
// generation. False: no memory.
bool hz6_route_open(struct hz_run *run, unsigned class_id);
// Forgets it. None of its blocks is live.
void hz6_route_close(const struct hz_run *run, unsigned class_id);
// The answer in full, from the map and the descriptors.
struct hz6_route hz6_route(const void *p);
// The mark that stands for p; NULL: none does. Where no block begins it is 0.
_Atomic uint8_t *hz6_route_mark(const void *p);
// Takes the mark of a live block away, exactly: of two threads that free it at once, one gets 0. 0:
// no live block of a class begins at p. *at: where the mark was.
unsigned hz6_route_unmark(const void *p, _Atomic uint8_t **at);
// NULL, or what the map says of a listed run that its bitmap denies.
const char *hz6_route_check(const struct hz_run *run);

#endif
