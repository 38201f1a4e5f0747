// Memory for the allocator's own records: heaps, magazines, descriptors, bitmaps.
//
// Bump allocation from mapped chunks, with one free list per size; never unmapped, so that a stale
// pointer into it reads old records, not a fault. Records are of a few fixed sizes, which keeps the
// lists few.
#ifndef HZ_CORE_META_H
#define HZ_CORE_META_H

#include "core/base.h"

// A record of `bytes` (rounded up to 16), 16-aligned (64-aligned from 64 bytes on), NOT zeroed when
// it was used before. NULL: the kernel refused.
void *hz_meta_take(size_t bytes);

// Takes a record back; bytes as given to hz_meta_take.
void hz_meta_give(void *record, size_t bytes);

// Bytes mapped for records so far.
size_t hz_meta_bytes(void);

// Registers the lock with the fork handlers: last in lock order.
void hz_meta_start(void);

#endif
