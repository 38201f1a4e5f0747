// Blocks above the classes: see core/above.h.
#include "core/above.h"

#include <string.h>

#include "core/large.h"
#include "core/misuse.h"

// Run blocks come and go by the million, so the clock is read for every 16th of a thread's calls
// only. Source: docs/DECISIONS.md, "Run blocks read the clock at every 16th call".
enum { CALLS_PER_PAUSE = 16 };

static bool run_call_counts(struct hz_run_cache *cache) {
  return cache == NULL || ++cache->calls % CALLS_PER_PAUSE == 0;
}

static bool is_large(size_t align, size_t bytes) {
  return !hz_arena_run_fits(bytes, align);
}

static void *take(struct hz_run_cache *cache, size_t align, size_t bytes, bool *zero) {
  return is_large(align, bytes) ? hz_large_take(bytes, align, zero)
                                : hz_run_block_take(cache, bytes, align, zero);
}

void *hz_above_take(struct hz_run_cache *cache, size_t align, size_t bytes, bool zeroed,
                    bool (*last_resort)(void), bool *pause) {
  bool zero = false;
  void *p = take(cache, align, bytes, &zero);
  // When the kernel has no more, what lies in caches may do; for the whole arena it never does.
  if (hz_unlikely(p == NULL) && bytes < hz_arena_bytes() && last_resort())
    p = take(cache, align, bytes, &zero);
  *pause = is_large(align, bytes) || run_call_counts(cache);
  if (hz_unlikely(p == NULL)) return hz_no_memory();
  if (zeroed && !zero) memset(p, 0, bytes);
  return p;
}

void hz_above_give(struct hz_run_cache *cache, void *p, bool *pause) {
  *pause = false;
  if (p == NULL) return;
  void *base;
  struct hz_run *run = hz_run_of(p);
  struct hz_large *large = run == NULL ? hz_large_of(p, &base) : NULL;
  if (large != NULL) {
    hz_large_give(large, base, p);
    *pause = true;
  } else if (run != NULL && run->state != HZ_RUN_CLASS) {
    hz_run_block_give(cache, run, p);
    *pause = run_call_counts(cache);
  } else {
    const bool inside = hz_slab_of(p) < hz_arena.slab_count;
    if (hz_arena_run_began(p)) hz_misuse(HZ_MISUSE_DOUBLE, p, "its slabs are free");
    else
      hz_misuse(HZ_MISUSE_FOREIGN, p, inside ? "inside the heap, so freed before, perhaps" : NULL);
  }
}

size_t hz_above_usable(void *p) {
  void *base;
  const struct hz_run *run = hz_run_of(p);
  const struct hz_large *large = run == NULL ? hz_large_of(p, &base) : NULL;
  if (run != NULL) base = hz_run_base(run);
  const bool live = run != NULL ? run->state == HZ_RUN_LIVE : large != NULL && hz_large_live(large);
  if (live && p == base)
    return run != NULL ? (size_t)run->slabs << HZ_SLAB_SHIFT : hz_large_usable(large);
  if (p == NULL) return 0;
  const bool ours = run != NULL || large != NULL, freed = hz_arena_run_began(p);
  hz_misuse(freed || (ours && p == base) ? HZ_MISUSE_DOUBLE
            : ours                       ? HZ_MISUSE_INTERIOR
                                         : HZ_MISUSE_FOREIGN,
            p, "asked for its size");
  return 0;
}

void *hz_above_resize(void *p, size_t bytes) {
  void *base;
  struct hz_run *run = hz_run_of(p);
  if (run != NULL && run->state == HZ_RUN_LIVE && p == hz_run_base(run))
    return hz_run_block_resize(run, bytes) ? p : NULL;
  struct hz_large *large = run == NULL ? hz_large_of(p, &base) : NULL;
  return large != NULL && p == base && hz_large_live(large) ? hz_large_resize(large, bytes) : NULL;
}
