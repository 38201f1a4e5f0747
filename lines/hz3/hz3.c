// hz3's hot paths and its function table: read this after lines/hz3/hz3_model.h.
//
// malloc: size -> class by table, pop the class's magazine, return. free: address -> tag, xor with
// the heap's tag, push. Everything else is one tail call away.
#include "lines/hz3/hz3_model.h"

#include <string.h>

#include "core/large.h"
#include "core/misuse.h"

// ---- Blocks above the classes -------------------------------------------------------------------

static void *take_above(size_t align, size_t bytes, bool *zero) {
  if (bytes > HZ_RUN_BLOCK_MAX_BYTES || align > HZ_RUN_BLOCK_MAX_BYTES)
    return hz_large_take(bytes, align, zero);
  struct hz3_heap *heap = hz3_heap_get();
  return hz_run_block_take(heap != NULL ? &heap->runs : NULL, bytes, align, zero);
}

// Run blocks come and go by the million, so the clock is read for every 16th of a thread's calls
// only. Source: docs/DECISIONS.md, "Run blocks read the clock at every 16th call".
static void above_done(struct hz3_heap *heap) {
  if (heap == NULL || ++heap->calls_above % 16 == 0) hz3_slow_path_done(heap);
}

static HZ_SLOW void *alloc_above(size_t align, size_t bytes, bool zeroed) {
  bool zero = false;
  void *p = take_above(align, bytes, &zero);
  // When the kernel has no more, what lies in caches may do.
  if (hz_unlikely(p == NULL) && bytes < hz_arena_bytes() && hz3_last_resort())
    p = take_above(align, bytes, &zero);
  if (bytes > HZ_RUN_BLOCK_MAX_BYTES) hz3_slow_path_done(hz3_heap_get());
  else above_done(hz3_heap_get());
  if (hz_unlikely(p == NULL)) return hz_no_memory();
  if (zeroed && !zero) memset(p, 0, bytes);
  return p;
}

static HZ_SLOW void release_above(void *p) {
  if (p == NULL) return;
  void *base;
  struct hz3_heap *heap = hz3_heap_get();
  struct hz_run *run = hz_run_of(p);
  struct hz_large *large = run == NULL ? hz_large_of(p, &base) : NULL;
  if (large != NULL) {
    hz_large_give(large, base, p);
    hz3_slow_path_done(heap);
  } else if (run != NULL && run->state != HZ_RUN_CLASS) {
    hz_run_block_give(heap != NULL ? &heap->runs : NULL, run, p);
    above_done(heap);
  } else {
    const bool inside = hz_slab_of(p) < hz_arena.slab_count;
    hz_misuse(HZ_MISUSE_FOREIGN, p, inside ? "inside the heap, so freed before, perhaps" : NULL);
  }
}

// ---- alloc --------------------------------------------------------------------------------------

static HZ_SLOW void *refill(unsigned class_id) {
  struct hz3_heap *heap = hz3_heap_get();
  void *p;
  if (heap == NULL || hz3_options.verify) {
    p = hz3_take_single(class_id);
  } else {
    p = hz_magazine_pop(&heap->top[class_id]);
    if (p == NULL) p = hz3_refill(heap, class_id);
  }
  hz3_slow_path_done(heap);
  return hz_likely(p != NULL) ? p : hz_no_memory();
}

// Takes the size, not the class, so that the hot path can leave its argument where it came.
static HZ_SLOW void *alloc_slow(size_t bytes) {
  return bytes <= HZ_CLASS_MAX_BYTES ? refill(hz_class_of(bytes))
                                     : alloc_above(HZ_MIN_ALIGN, bytes, false);
}

// The read-only heaps have no block to pop, so nothing is written through the cast.
HZ_FAST struct hz3_heap *heap_for_pop(void) {
  return (struct hz3_heap *)hz3_heap;
}

HZ_HOT void *hz3_alloc(size_t bytes) {
  struct hz3_heap *heap = heap_for_pop();
  void *p = NULL;
  if (hz_likely(bytes <= HZ_CLASS_BY_16_MAX))
    p = hz_magazine_pop(&heap->top[heap->class_by_16[(bytes + 15) >> 4]]);
  else if (hz_likely(bytes <= HZ_CLASS_MAX_BYTES))
    p = hz_magazine_pop(&heap->top[hz_class_by_256[(bytes + 255) >> 8]]);
  return hz_likely(p != NULL) ? p : alloc_slow(bytes);
}

static void *hz3_alloc_zeroed(size_t bytes) {
  if (hz_unlikely(bytes > HZ_CLASS_MAX_BYTES)) return alloc_above(HZ_MIN_ALIGN, bytes, true);
  void *p = hz3_alloc(bytes);
  return hz_likely(p != NULL) ? memset(p, 0, bytes) : NULL;
}

static void *hz3_alloc_aligned(size_t align, size_t bytes) {
  const unsigned class_id = hz_class_of_aligned(align, bytes);
  if (hz_unlikely(class_id == HZ_CLASS_COUNT)) return alloc_above(align, bytes, false);
  void *p = hz_magazine_pop(&heap_for_pop()->top[class_id]);
  return hz_likely(p != NULL) ? p : refill(class_id);
}

// ---- release ------------------------------------------------------------------------------------

static HZ_SLOW void release_slow(void *p) {
  const uint32_t tag = hz3_tag_of(p);
  if (tag == 0) {
    release_above(p);
    return;
  }
  struct hz3_heap *heap = hz3_heap_get();
  const unsigned class_id = hz3_tag_class(tag);
  if (heap == NULL || hz3_options.verify) {
    hz3_give_central(class_id, &p, 1);
    hz3_slow_path_done(heap);
  } else if (hz3_tag_shard(tag) != heap->shard) hz3_release_remote(heap, tag, p);
  else if (!hz_magazine_push(&heap->top[class_id], p)) hz3_overflow(heap, class_id, p);
}

HZ_HOT void hz3_release(void *p) {
  const size_t slab = hz_slab_of(p);
  if (hz_unlikely(slab >= hz_arena.slab_count)) {
    release_slow(p);
    return;
  }
  struct hz3_heap *heap = (struct hz3_heap *)hz3_heap;
  const uint32_t tag = atomic_load_explicit(&hz3_tags[slab], memory_order_relaxed);
  const uint32_t class_id = tag ^ heap->tag;
  // The read-only heaps' magazines are full as well as empty: nothing is written through the cast.
  if (hz_unlikely(class_id >= HZ_CLASS_COUNT) ||
      hz_unlikely(!hz_magazine_push(&heap->top[class_id], p)))
    release_slow(p);
}

// ---- the rest of the table ----------------------------------------------------------------------

static size_t hz3_usable_size(void *p) {
  const uint32_t tag = hz3_tag_of(p);
  if (hz_likely(tag != 0)) return hz_class_bytes(hz3_tag_class(tag));
  void *base;
  const struct hz_run *run = hz_run_of(p);
  const struct hz_large *large = run == NULL ? hz_large_of(p, &base) : NULL;
  if (run != NULL) base = run->base;
  const bool live = run != NULL ? run->state == HZ_RUN_LIVE : large != NULL && hz_large_live(large);
  if (live && p == base)
    return run != NULL ? (size_t)run->slabs << HZ_SLAB_SHIFT : hz_large_usable(large);
  if (p == NULL) return 0;
  const bool ours = run != NULL || large != NULL;
  hz_misuse(!ours       ? HZ_MISUSE_FOREIGN
            : p != base ? HZ_MISUSE_INTERIOR
                        : HZ_MISUSE_DOUBLE,
            p, "asked for its size");
  return 0;
}

static void *hz3_resize(void *p, size_t bytes) {
  const uint32_t tag = hz3_tag_of(p);
  if (hz_likely(tag != 0)) {
    const unsigned class_id = hz3_tag_class(tag);
    const size_t usable = hz_class_bytes(class_id);
    const bool fits = bytes <= usable && (bytes >= usable / 2 || hz_class_of(bytes) == class_id);
    return fits ? p : NULL;
  }
  void *base;
  struct hz_run *run = hz_run_of(p);
  if (run != NULL && run->state == HZ_RUN_LIVE && p == run->base)
    return hz_run_block_resize(run, bytes) ? p : NULL;
  struct hz_large *large = run == NULL ? hz_large_of(p, &base) : NULL;
  return large != NULL && p == base && hz_large_live(large) ? hz_large_resize(large, bytes) : NULL;
}

static void hz3_gauges(struct hz_gauges *out) {
  struct hz_arena_totals arena;
  uint64_t large_cached, free_bytes = 0, cached = 0;
  // Free bytes first: a class that grows meanwhile must not look freer than it is large.
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    free_bytes += hz_central_free_bytes(c);
    for (unsigned s = 0; s < hz3_options.shards; s++)
      cached += (uint64_t)__atomic_load_n(&hz3_shards[s].depots[c].count, __ATOMIC_RELAXED) *
                hz3_limits[c].capacity * hz_class_bytes(c);
  }
  hz_arena_read_totals(&arena);
  hz_large_read(&out->large_bytes, &out->large_blocks, &large_cached);
  out->reserved_bytes = arena.reserved_bytes;
  out->committed_bytes = arena.committed_bytes + out->large_bytes + large_cached;
  out->live_bytes = arena.run_bytes - hz_min(free_bytes, arena.run_bytes) + out->large_bytes;
  out->cached_bytes = hz_min(cached, out->live_bytes);
  out->free_bytes = free_bytes + arena.dirty_bytes + large_cached;
  out->threads = hz_thread_count();
}

const struct hz_line hz3_line = {
    .info = &hz3_info,
    .table = {.alloc = hz3_alloc,
              .alloc_zeroed = hz3_alloc_zeroed,
              .alloc_aligned = hz3_alloc_aligned,
              .release = hz3_release,
              .usable_size = hz3_usable_size,
              .resize = hz3_resize},
    .start = hz3_heaps_start,
    .trim = hz3_trim,
    .gauges = hz3_gauges,
    .check = hz3_check,
};
