// Front caches of processors: FrontCache's contract (hz6_front.h) with a processor in the place of a
// thread, so that a thousand threads on two processors keep two caches.
//
// A processor has a top per mark (hz6_rseq.h), and no more state: magazines are popped, pushed and
// exchanged by restartable sequences, and what a slow path needs to know of a magazine follows from
// its top: it is empty where the top points to NULL, full where FULL is above it. A thread may be
// moved between any two steps; it then goes on with the processor that it finds itself on. A trim
// whose thread is moved leaves some of the first one's cache to the next trim.
//
// A fork cannot find a processor's cache half changed, so a child simply has it.
#ifndef HZ_LINES_HZ6_CPU_H
#define HZ_LINES_HZ6_CPU_H

#include "core/base.h"

// False: no restartable sequences here, or no memory.
bool hz6_cpu_start(void);

// The entries of struct hz_table.
void *hz6_cpu_alloc(size_t bytes);
void *hz6_cpu_alloc_zeroed(size_t bytes);
void *hz6_cpu_alloc_aligned(size_t align, size_t bytes);
void hz6_cpu_release(void *p);

// Caches in use.
uint64_t hz6_cpu_count(void);
// Empties the cache of the processor that the thread is on.
void hz6_cpu_flush(void);

#endif
