// The transfer cache: whole magazines on their way from threads that free to threads that allocate.
//
// One stack per class, newest first, so that what was freed last, and is still in a processor's
// caches, goes out first. Full magazines are exchanged for empty ones: a pointer each way under the
// class's lock, whatever they hold. Bounded by Policy; what finds no room goes to Source. It is asked
// before Source is.
//
// A magazine here holds 1 to capacity blocks of the class, none of them marked (lines/hz6/
// hz6_route.h). It is nobody's: who takes it owns it.
#ifndef HZ_LINES_HZ6_TRANSFER_H
#define HZ_LINES_HZ6_TRANSFER_H

#include "lines/hz6/hz6_magazine.h"
#include "lines/hz6/hz6_policy.h"

void hz6_transfer_start(void);

// The newest magazine, `empty` (NULL: none) taken in for it; NULL: none waits, and `empty` stays
// with the caller.
struct hz6_magazine *hz6_transfer_get(unsigned class_id, struct hz6_magazine *empty);

// Takes `full` in. False: no room, it stays with the caller. *empty: one for it, or NULL.
bool hz6_transfer_put(unsigned class_id, struct hz6_magazine *full, struct hz6_magazine **empty);

// Takes in an empty one, or drops it.
void hz6_transfer_put_empty(unsigned class_id, struct hz6_magazine *empty);
// One for the class: from here, or new. NULL: no memory.
struct hz6_magazine *hz6_transfer_take_empty(unsigned class_id);

// A period has passed: what nobody has needed since the last one is due.
void hz6_transfer_period(void);
// Magazines of a class that are due, linked by next: one, and others as far as they would fit
// `bytes` if they were full. all: every magazine. NULL: none.
struct hz6_magazine *hz6_transfer_due(unsigned class_id, size_t bytes, bool all);

// Bytes of blocks that wait, at most. Without the locks.
uint64_t hz6_transfer_bytes(void);

// NULL, or the first broken invariant.
const char *hz6_transfer_check(void);

#endif
