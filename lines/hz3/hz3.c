// hz3's hot paths and its function table: read this after lines/hz3/hz3_model.h.
//
// malloc: size -> class by table, pop the class's magazine, return. free: address -> tag, xor with
// the heap's tag, push. Everything else is one tail call away.
#include "lines/hz3/hz3_model.h"

#include <string.h>

#include "core/above.h"
#include "core/large.h"
#include "core/misuse.h"

// ---- Blocks above the classes -------------------------------------------------------------------

static struct hz_run_cache *run_cache(struct hz3_heap *heap) {
  return heap != NULL ? &heap->runs : NULL;
}

static HZ_SLOW void *alloc_above(size_t align, size_t bytes, bool zeroed) {
  struct hz3_heap *heap = hz3_heap_get();
  bool pause;
  void *p = hz_above_take(run_cache(heap), align, bytes, zeroed, hz3_last_resort, &pause);
  if (pause) hz3_slow_path_done(heap);
  return p;
}

static HZ_SLOW void release_above(void *p) {
  struct hz3_heap *heap = hz3_heap_get();
  bool pause;
  hz_above_give(run_cache(heap), p, &pause);
  if (pause) hz3_slow_path_done(heap);
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
  return hz_likely(tag != 0) ? hz_class_bytes(hz3_tag_class(tag)) : hz_above_usable(p);
}

static void *hz3_resize(void *p, size_t bytes) {
  const uint32_t tag = hz3_tag_of(p);
  if (hz_unlikely(tag == 0)) return hz_above_resize(p, bytes);
  return hz_class_fits(hz3_tag_class(tag), bytes) ? p : NULL;
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
