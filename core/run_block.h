// Blocks of 64 KiB to 4 MiB: each is one run of slabs, kept for reuse per thread by slab count
// within a byte budget. Their records are outside, so every bad free of one is found exactly.
#ifndef HZ_CORE_RUN_BLOCK_H
#define HZ_CORE_RUN_BLOCK_H

#include "core/arena.h"

enum { HZ_RUN_BLOCK_MAX_BYTES = HZ_SEGMENT_BYTES };

// A thread's free run blocks; all zero = empty. Owner only.
struct hz_run_cache {
  size_t bytes;
  uint32_t calls;                            // core/above.c
  struct hz_run *head[HZ_SEGMENT_SLABS + 1]; // by slab count, newest first
};

// Budget of one cache in bytes: option cache.run_bytes.
extern size_t hz_run_cache_bytes;
// Blocks that a cache that has none of a slab count takes at once, as far as half of the budget and
// 4 MiB go: option cache.run_batch.
extern unsigned hz_run_batch;

// cache: NULL for threads that have none, here and in hz_run_block_give.
// A block of `bytes` aligned to `align`, as hz_arena_run_fits allows. *zero: all its bytes are zero.
void *hz_run_block_take(struct hz_run_cache *cache, size_t bytes, size_t align, bool *zero);

// Takes back a block that lies in `run`; a bad `p` goes to hz_misuse.
void hz_run_block_give(struct hz_run_cache *cache, struct hz_run *run, void *p);

// Resizes in place: true, or false if the neighbours are taken or too little would be used.
bool hz_run_block_resize(struct hz_run *run, size_t bytes);

// Gives the whole cache back to the arena.
void hz_run_cache_flush(struct hz_run_cache *cache);

#endif
