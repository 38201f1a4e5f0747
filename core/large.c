// Blocks of whole segments: see core/large.h.
#include "core/large.h"

#include <string.h>

#include "core/counter.h"
#include "core/lock.h"
#include "core/meta.h"
#include "core/misuse.h"
#include "core/os.h"

enum large_state { LARGE_LIVE, LARGE_CACHED };

struct hz_large {
  struct hz_large *next; // in the cache, newest first
  void *base;
  size_t segments;
  size_t committed; // bytes from base that are readable and writable
  uint64_t freed_ms;
  _Atomic uint8_t state;
  bool moved; // to the kernel, pages committed behind moved ones are another mapping
  bool stays; // the kernel has refused to move it
};

size_t hz_large_cache_bytes = 64 * HZ_MIB;

static struct {
  struct hz_lock lock;
  struct hz_large *cached;
  uint64_t cached_bytes, live_bytes, live_blocks;
} large;

static size_t segments_for(size_t bytes) {
  return (bytes + HZ_SEGMENT_BYTES - 1) >> HZ_SEGMENT_SHIFT;
}

static void account(int64_t blocks, int64_t bytes) {
  hz_lock(&large.lock);
  large.live_blocks += (uint64_t)blocks;
  large.live_bytes += (uint64_t)bytes;
  hz_unlock(&large.lock);
}

// Makes `bytes` (whole pages) usable. Pages beyond what was committed are zero.
static bool commit_to(struct hz_large *block, size_t bytes) {
  if (bytes <= block->committed) return true;
  if (!hz_os.commit((char *)block->base + block->committed, bytes - block->committed)) {
    hz_count(HZ_COUNT_os_failures, 1);
    return false;
  }
  hz_count(HZ_COUNT_committed, bytes - block->committed);
  block->committed = bytes;
  return true;
}

static void destroy(struct hz_large *block, bool lost) {
  hz_arena_give_segments(block->base, block->segments, lost);
  hz_meta_give(block, sizeof *block);
}

// Pages behind the first `bytes` go back to the kernel. Failing is harmless: they stay usable.
static void trim_to(struct hz_large *block, size_t bytes) {
  if (bytes < block->committed &&
      hz_os.decommit((char *)block->base + bytes, block->committed - bytes))
    block->committed = bytes;
}

// A cached block of exactly as many segments, aligned as wanted.
static struct hz_large *take_cached(size_t segments, size_t align) {
  hz_lock(&large.lock);
  struct hz_large **link = &large.cached;
  while (*link != NULL &&
         ((*link)->segments != segments || ((uintptr_t)(*link)->base & (align - 1)) != 0))
    link = &(*link)->next;
  struct hz_large *block = *link;
  if (block != NULL) {
    *link = block->next;
    large.cached_bytes -= block->committed;
  }
  hz_unlock(&large.lock);
  return block;
}

static struct hz_large *map_new(size_t segments, size_t align) {
  struct hz_large *block = hz_meta_take(sizeof *block);
  if (block == NULL) return NULL;
  memset(block, 0, sizeof *block);
  block->segments = segments;
  block->base = hz_arena_take_segments(segments, align, block);
  if (block->base != NULL) return block;
  hz_meta_give(block, sizeof *block);
  return NULL;
}

void *hz_large_take(size_t bytes, size_t align, bool *zero) {
  if (bytes > PTRDIFF_MAX - HZ_SEGMENT_BYTES) return NULL;
  const size_t wanted = hz_align_up(hz_max(bytes, 1), hz_page_bytes);
  struct hz_large *block = take_cached(segments_for(wanted), align);
  *zero = block == NULL;
  if (block == NULL) block = map_new(segments_for(wanted), align);
  if (block == NULL) return NULL;
  hz_count(*zero ? HZ_COUNT_large_maps : HZ_COUNT_large_reuses, 1);
  if (!commit_to(block, wanted)) {
    destroy(block, false);
    return NULL;
  }
  trim_to(block, wanted);
  atomic_store_explicit(&block->state, LARGE_LIVE, memory_order_relaxed);
  account(1, (int64_t)block->committed);
  return block->base;
}

struct hz_large *hz_large_of(const void *p, void **base) {
  return hz_arena_large_of(p, base);
}

bool hz_large_live(const struct hz_large *block) {
  return atomic_load_explicit(&block->state, memory_order_relaxed) == LARGE_LIVE;
}

size_t hz_large_usable(const struct hz_large *block) {
  return block->committed;
}

void hz_large_give(struct hz_large *block, void *base, void *p) {
  if (p != base) {
    hz_misuse(HZ_MISUSE_INTERIOR, p, "a block above 4 MiB");
    return;
  }
  uint8_t live = LARGE_LIVE;
  if (!atomic_compare_exchange_strong_explicit(&block->state, &live, LARGE_CACHED,
                                               memory_order_relaxed, memory_order_relaxed)) {
    hz_misuse(HZ_MISUSE_DOUBLE, p, "a block above 4 MiB");
    return;
  }
  hz_lock(&large.lock);
  large.live_blocks--;
  large.live_bytes -= block->committed;
  const bool keep = large.cached_bytes + block->committed <= hz_large_cache_bytes;
  if (keep) {
    block->freed_ms = hz_os.now_ms();
    block->next = large.cached;
    large.cached = block;
    large.cached_bytes += block->committed;
  }
  hz_unlock(&large.lock);
  if (!keep) destroy(block, false);
}

// The pages go to other segments, and the mapping grows there in the same call, so that there is no
// way to fail in between; nothing is copied. The record stays with the block.
static bool move(struct hz_large *block, size_t segments, size_t wanted) {
  struct hz_large *left = hz_meta_take(sizeof *left); // stands for the old place until it is free
  if (left == NULL) return false;
  void *to = hz_arena_take_segments(segments, HZ_SEGMENT_BYTES, block);
  if (to == NULL || !hz_os.move(block->base, block->committed, to, wanted)) {
    if (to != NULL) hz_arena_give_segments(to, segments, false);
    block->stays = to != NULL;
    hz_meta_give(left, sizeof *left);
    return false;
  }
  *left = *block;
  block->base = to;
  block->segments = segments;
  block->committed = wanted;
  block->moved = true;
  // The old addresses are unmapped now. They become ours again, unless somebody was quicker.
  destroy(left, !hz_os.claim(left->base, left->committed));
  hz_count(HZ_COUNT_large_moves, 1);
  return true;
}

static bool grow_in_place(struct hz_large *block, size_t wanted) {
  const size_t segments = segments_for(wanted);
  if (segments > block->segments) {
    if (!hz_arena_extend_segments(block->base, block->segments, segments)) return false;
    block->segments = segments;
  }
  return commit_to(block, wanted);
}

// mremap refuses what the kernel sees as two mappings. So a block that has moved once grows by
// moving again, with room to the end of its last segment for small steps; in place only at last.
static bool grow(struct hz_large *block, size_t wanted) {
  const size_t segments = segments_for(wanted), roomy = segments << HZ_SEGMENT_SHIFT;
  if (!block->moved && grow_in_place(block, wanted)) return true;
  return (!block->stays && move(block, segments, roomy)) ||
         (block->moved && grow_in_place(block, wanted));
}

void *hz_large_resize(struct hz_large *block, size_t bytes) {
  if (bytes <= HZ_SEGMENT_BYTES || bytes > PTRDIFF_MAX - HZ_SEGMENT_BYTES) return NULL;
  const size_t wanted = hz_align_up(bytes, hz_page_bytes), old = block->committed;
  if (wanted > old && !grow(block, wanted)) return NULL;
  if (wanted + HZ_SEGMENT_BYTES <= block->committed) trim_to(block, wanted);
  account(0, (int64_t)block->committed - (int64_t)old);
  return block->base;
}

size_t hz_large_purge(uint64_t now_ms, uint64_t idle_ms) {
  struct hz_large *idle = NULL;
  size_t bytes = 0;
  hz_lock(&large.lock);
  for (struct hz_large **link = &large.cached; *link != NULL;) {
    struct hz_large *block = *link;
    if (block->freed_ms + idle_ms > now_ms) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    large.cached_bytes -= block->committed;
    bytes += block->committed;
    block->next = idle;
    idle = block;
  }
  hz_unlock(&large.lock);
  while (idle != NULL) {
    struct hz_large *next = idle->next;
    hz_count(HZ_COUNT_purged, idle->committed);
    hz_count(HZ_COUNT_purge_calls, 1);
    destroy(idle, false);
    idle = next;
  }
  return bytes;
}

void hz_large_read(uint64_t *live_bytes, uint64_t *live_blocks, uint64_t *cached_bytes) {
  hz_lock(&large.lock);
  *live_bytes = large.live_bytes;
  *live_blocks = large.live_blocks;
  *cached_bytes = large.cached_bytes;
  hz_unlock(&large.lock);
}

void hz_large_start(void) {
  hz_locks_register(HZ_RANK_LARGE, &large.lock, 1, sizeof large.lock);
}
