// Blocks that are runs: see core/run_block.h.
#include "core/run_block.h"

#include "core/counter.h"
#include "core/misuse.h"
#include "core/run_transfer.h"

size_t hz_run_cache_bytes = 4 * HZ_MIB;
unsigned hz_run_batch = 1;

enum { BATCH_BYTES = 4 * 1024 * 1024 }; // most of what is fetched ahead: a segment

static size_t bytes_of(const struct hz_run *run) {
  return (size_t)run->slabs << HZ_SLAB_SHIFT;
}

static unsigned slabs_for(size_t bytes) {
  return (unsigned)((bytes + HZ_SLAB_BYTES - 1) >> HZ_SLAB_SHIFT);
}

static void push(struct hz_run_cache *cache, struct hz_run *run) {
  run->next = cache->head[run->slabs];
  cache->head[run->slabs] = run;
  cache->bytes += bytes_of(run);
}

// Runs to fetch: one, and others as far as they fit.
static unsigned batch_for(const struct hz_run_cache *cache, unsigned slabs) {
  const size_t left = hz_run_cache_bytes - hz_min(cache->bytes, hz_run_cache_bytes);
  const size_t room = hz_min(hz_min(hz_run_cache_bytes / 2, left), BATCH_BYTES) >> HZ_SLAB_SHIFT;
  return (unsigned)hz_min(hz_run_batch, room / slabs + 1);
}

// One run, and others for the cache. NULL: no memory.
static struct hz_run *fetch(struct hz_run_cache *cache, unsigned slabs, size_t align) {
  const unsigned most = cache != NULL ? batch_for(cache, slabs) : 1;
  struct hz_run *run = align <= HZ_SLAB_BYTES ? hz_run_transfer_take(slabs, most) : NULL;
  if (run == NULL) {
    hz_count(HZ_COUNT_run_blocks, 1);
    run = hz_arena_take_list(slabs, align, most);
    if (run == NULL) return NULL;
  }
  for (struct hz_run *next = run->next, *other; (other = next) != NULL;) {
    next = other->next;
    atomic_store_explicit(&other->state, HZ_RUN_CACHED, memory_order_relaxed);
    push(cache, other);
  }
  return run;
}

void *hz_run_block_take(struct hz_run_cache *cache, size_t bytes, size_t align, bool *zero) {
  const unsigned slabs = slabs_for(hz_max(bytes, 1));
  struct hz_run *run = cache != NULL ? cache->head[slabs] : NULL;
  if (run != NULL && ((uintptr_t)hz_run_base(run) & (align - 1)) == 0) {
    cache->head[slabs] = run->next;
    cache->bytes -= bytes_of(run);
  } else {
    run = fetch(cache, slabs, align);
    if (run == NULL) return NULL;
  }
  *zero = run->zero;
  atomic_store_explicit(&run->state, HZ_RUN_LIVE, memory_order_relaxed);
  return hz_run_base(run);
}

// Moves cached runs of one slab count to a list for the arena until the cache fits `keep_bytes`.
static struct hz_run *shed(struct hz_run_cache *cache, unsigned slabs, size_t keep_bytes,
                           struct hz_run *list) {
  while (cache->bytes > keep_bytes && cache->head[slabs] != NULL) {
    struct hz_run *run = cache->head[slabs];
    cache->head[slabs] = run->next;
    cache->bytes -= bytes_of(run);
    run->next = list;
    list = run;
  }
  return list;
}

void hz_run_block_give(struct hz_run_cache *cache, struct hz_run *run, void *p) {
  if (p != hz_run_base(run)) {
    hz_misuse(HZ_MISUSE_INTERIOR, p, "a block above 64 KiB");
    return;
  }
  uint8_t live = HZ_RUN_LIVE;
  // Two threads that free the same block at once must not both succeed.
  if (!atomic_compare_exchange_strong_explicit(&run->state, &live, HZ_RUN_CACHED,
                                               memory_order_relaxed, memory_order_relaxed)) {
    hz_misuse(HZ_MISUSE_DOUBLE, p, "a block above 64 KiB");
    return;
  }
  run->zero = false;
  if (cache == NULL || bytes_of(run) > hz_run_cache_bytes / 2) {
    run->next = NULL;
    hz_arena_give_list(hz_run_transfer_give(run));
    return;
  }
  push(cache, run);
  if (cache->bytes <= hz_run_cache_bytes) return;
  struct hz_run *list = shed(cache, run->slabs, hz_run_cache_bytes / 2, NULL);
  for (unsigned slabs = HZ_SEGMENT_SLABS; slabs > 0; slabs--)
    list = shed(cache, slabs, hz_run_cache_bytes / 2, list);
  hz_arena_give_list(hz_run_transfer_give(list));
}

bool hz_run_block_resize(struct hz_run *run, size_t bytes) {
  if (bytes > HZ_RUN_BLOCK_MAX_BYTES || bytes < bytes_of(run) / 2) return false;
  const unsigned slabs = slabs_for(bytes);
  return slabs == run->slabs || hz_arena_resize(run, slabs);
}

void hz_run_cache_flush(struct hz_run_cache *cache) {
  struct hz_run *list = NULL;
  for (unsigned slabs = 1; slabs <= HZ_SEGMENT_SLABS; slabs++) list = shed(cache, slabs, 0, list);
  hz_arena_give_list(list);
}
