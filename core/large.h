// Blocks above 4 MiB (or aligned to more): whole segments each, committed as far as they are used.
//
// Freed ones wait in a small cache (cache.large_bytes) until they have been idle for purge.idle_ms.
// They grow in place, or by moving pages, never by copying bytes. Records are outside, so every bad
// free of one is found exactly.
#ifndef HZ_CORE_LARGE_H
#define HZ_CORE_LARGE_H

#include "core/arena.h"

struct hz_large;

// Budget of the cache in bytes: option cache.large_bytes.
extern size_t hz_large_cache_bytes;

// A block of `bytes` aligned to `align`. *zero: all its bytes are zero. NULL: no memory.
void *hz_large_take(size_t bytes, size_t align, bool *zero);

// The large block that p lies in, or NULL; *base: its first byte.
struct hz_large *hz_large_of(const void *p, void **base);

// Whether the block is in the program's hands, and not in the cache.
bool hz_large_live(const struct hz_large *large);
size_t hz_large_usable(const struct hz_large *large);

// Takes back a block; a bad `p` goes to hz_misuse.
void hz_large_give(struct hz_large *large, void *base, void *p);

// Room for `bytes` (above 4 MiB): the same base, another (pages moved), or NULL (copy it yourself).
void *hz_large_resize(struct hz_large *large, size_t bytes);

// Gives back cached blocks that have been idle for idle_ms. Returns bytes.
size_t hz_large_purge(uint64_t now_ms, uint64_t idle_ms);

void hz_large_read(uint64_t *live_bytes, uint64_t *live_blocks, uint64_t *cached_bytes);

// Registers the lock with the fork handlers.
void hz_large_start(void);

#endif
