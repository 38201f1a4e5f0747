// FrontCache: a thread's free blocks at hand, a loaded magazine per class (hz6_magazine.h).
//
// A block that the thread frees goes on top, whoever allocated it, and is the next that it gets: it
// is still in the processor's caches. An empty magazine is exchanged for a waiting one, a full one
// for an empty one, with the transfer cache; if that has none or no room, with Source. Blocks here
// are free and not marked; the block that the caller gets is not marked yet.
//
// The top under mark 0 is that of no magazine, empty and full for ever. So a free finds out with one
// compare that there is no live block, or no room (hz6.c).
//
// With Policy's `owners` a thread keeps only blocks of its own home's runs. Others go to their runs,
// collected in a magazine per class.
#ifndef HZ_LINES_HZ6_FRONT_H
#define HZ_LINES_HZ6_FRONT_H

#include "core/run_block.h"
#include "core/thread.h"
#include "lines/hz6/hz6_magazine.h"
#include "lines/hz6/hz6_route.h"

struct hz6_heap {
  // Hot paths.
  struct hz6_item *top[HZ6_MARKS];                 // by mark
  uint8_t mark_by_16[HZ_CLASS_BY_16_MAX / 16 + 1]; // a copy at hand saves malloc an instruction
  // Slow paths.
  struct hz6_magazine *loaded[HZ_CLASS_COUNT];  // what top points into; NULL: no magazine
  struct hz6_magazine *foreign[HZ_CLASS_COUNT]; // of other homes; NULL: none
  struct hz_run_cache above;
  struct hz_thread thread;
  uint32_t home;
  uint32_t calls_seen; // hz6_scavenge_pause
  bool joined;         // its home
};

extern HZ_HIDDEN const struct hz6_heap hz6_empty_heap; // of threads that have not allocated yet
extern HZ_HIDDEN const struct hz6_heap hz6_dead_heap;  // of threads that have ended
extern HZ_HIDDEN __thread const struct hz6_heap *hz6_heap
    __attribute__((tls_model("initial-exec")));

void hz6_front_start(void);

// The calling thread's heap, made if it has none yet. NULL: it cannot have one.
struct hz6_heap *hz6_front_get(void);

// A block when the magazine is empty. Its block NULL: no memory (errno is not set).
struct hz6_item hz6_front_refill(struct hz6_heap *heap, unsigned class_id);
// Takes in a block when the magazine is full.
void hz6_front_overflow(struct hz6_heap *heap, unsigned class_id, struct hz6_item item);
// A magazine with blocks that is loaded nowhere goes to the transfer cache, or its blocks to Source.
// Returns an empty one, the same or another; NULL: none.
struct hz6_magazine *hz6_front_give(unsigned class_id, struct hz6_magazine *m);
// A block of a run of another home (`owners`).
void hz6_front_foreign(struct hz6_heap *heap, unsigned class_id, struct hz6_item item);

// Empties the calling thread's heap; it stays usable. Nothing, if it has none.
void hz6_front_flush(void);
// Empties heaps of threads that a fork left behind. True: there was one.
bool hz6_front_adopt(void);

#endif
