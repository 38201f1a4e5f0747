// Time passes only in slow paths: each of them ends with hz_tick(), which now and then gives idle
// memory back. No thread of our own, no timer, no signal.
#ifndef HZ_CORE_TICK_H
#define HZ_CORE_TICK_H

#include "core/base.h"

// System calls that one tick may make, and again as many for the line's runs: some 100
// microseconds, the longest pause of a malloc.
enum { HZ_TICK_CALLS = 64 };

// Option purge.idle_ms.
extern uint64_t hz_purge_idle_ms;

// Called on every due tick when set (the interval report). Must not allocate.
extern void (*hz_tick_hook)(uint64_t now_ms);

// If a tick is due: gives idle slabs and large blocks back, within a bound, and returns true: the
// line then gives back what its caches have not needed since the last time. No lock of ours held.
bool hz_tick(void);

// Gives every free slab and cached large block back at once. Returns bytes.
size_t hz_purge_all(void);

#endif
