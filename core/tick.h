// Time passes only in slow paths: each of them ends with hz_tick(), which now and then gives idle
// memory back. No thread of our own, no timer, no signal.
#ifndef HZ_CORE_TICK_H
#define HZ_CORE_TICK_H

#include "core/base.h"

// What one tick may spend, and again as much for the line's runs: in system calls that give back up
// to 256 KiB each. Some hundred microseconds, the longest pause of a malloc.
enum { HZ_TICK_CALLS = 32 };

// Option purge.idle_ms.
extern uint64_t hz_purge_idle_ms;

// Called on every due tick when set (the interval report). Must not allocate.
extern void (*hz_tick_hook)(uint64_t now_ms);

enum hz_tick {
  HZ_TICK_NONE,
  HZ_TICK_REST,   // a millisecond after work that did not fit: the line goes on with its own, too
  HZ_TICK_PERIOD, // time has passed: the line gives back what its caches have not needed since
};

// If it is time: gives idle slabs and large blocks back, within a bound. Returns what the line is
// to do now. No lock of ours held.
enum hz_tick hz_tick(void);

// The line could not finish either: HZ_TICK_REST will come.
void hz_tick_rest(void);

// Gives every free slab and every block above 64 KiB that waits for nobody in particular back at
// once. Returns bytes.
size_t hz_purge_all(void);

#endif
