// hz5's hot paths and its function table: read this after lines/hz5/hz5_model.h.
//
// malloc: size -> cursor by table, lowest free block of the current word. free: slab -> descriptor,
// is it ours, offset -> block, is it live, set its idle bit. Everything else is one tail call away.
#include "lines/hz5/hz5_model.h"

#include <string.h>

#include "core/above.h"
#include "core/large.h"

// ---- Blocks above the classes -------------------------------------------------------------------

static struct hz_run_cache *run_cache(struct hz5_heap *heap) {
  return heap != NULL ? &heap->above : NULL;
}

static HZ_SLOW void *alloc_above(size_t align, size_t bytes, bool zeroed) {
  struct hz5_heap *heap = hz5_heap_get();
  bool pause;
  void *p = hz_above_take(run_cache(heap), align, bytes, zeroed, hz5_last_resort, &pause);
  if (pause) hz5_slow_path_done(heap);
  return p;
}

static HZ_SLOW void release_above(void *p) {
  struct hz5_heap *heap = hz5_heap_get();
  bool pause;
  hz_above_give(run_cache(heap), p, &pause);
  if (pause) hz5_slow_path_done(heap);
}

// ---- alloc --------------------------------------------------------------------------------------

static HZ_SLOW void *refill(unsigned class_id) {
  struct hz5_heap *heap = hz5_heap_get();
  void *p = heap != NULL ? hz5_refill(heap, class_id) : hz5_take_single(class_id);
  hz5_slow_path_done(heap);
  return hz_likely(p != NULL) ? p : hz_no_memory();
}

// Takes the size, not the class, so that the hot path can leave its argument where it came.
static HZ_SLOW void *alloc_slow(size_t bytes) {
  return bytes <= hz5_options.block_bytes ? refill(hz_class_of(bytes))
                                          : alloc_above(HZ_MIN_ALIGN, bytes, false);
}

HZ_HOT void *hz5_alloc(size_t bytes) {
  const struct hz5_heap *heap = hz5_heap;
  const struct hz5_cursor *cursor;
  if (hz_likely(bytes <= HZ_CLASS_BY_16_MAX))
    cursor = (const void *)((const char *)heap + heap->cursor_by_16[(bytes + 15) >> 4]);
  else if (hz_likely(bytes <= hz5_options.block_bytes))
    cursor = &heap->cursor[hz_class_by_256[(bytes + 255) >> 8]];
  else return alloc_slow(bytes);
  const struct hz5_free free = hz5_free_of(cursor->bits);
  return hz_likely(free.blocks != 0) ? hz5_take_lowest(cursor, free) : alloc_slow(bytes);
}

static void *hz5_alloc_zeroed(size_t bytes) {
  if (hz_unlikely(bytes > hz5_options.block_bytes)) return alloc_above(HZ_MIN_ALIGN, bytes, true);
  void *p = hz5_alloc(bytes);
  return hz_likely(p != NULL) ? memset(p, 0, bytes) : NULL;
}

static void *hz5_alloc_aligned(size_t align, size_t bytes) {
  const unsigned class_id = hz_class_of_aligned(align, bytes);
  if (hz_unlikely(class_id == HZ_CLASS_COUNT) || hz_unlikely(bytes > hz5_options.block_bytes))
    return alloc_above(align, bytes, false);
  const struct hz5_cursor *cursor = &hz5_heap->cursor[class_id];
  const struct hz5_free free = hz5_free_of(cursor->bits);
  return hz_likely(free.blocks != 0) ? hz5_take_lowest(cursor, free) : refill(class_id);
}

// ---- release ------------------------------------------------------------------------------------

// Not ours, as far as the hot path could see.
static HZ_SLOW void release_slow(void *p) {
  struct hz5_slab *slab = hz5_find(p);
  if (slab == NULL) {
    release_above(p);
    return;
  }
  hz5_release_foreign(hz5_heap_get(), slab, p);
}

static HZ_SLOW void refuse(void *p) {
  hz5_refuse(hz5_slab_of(p), p);
}

static HZ_SLOW void run_emptied(struct hz5_slab *slab) {
  struct hz5_heap *heap = hz5_heap_get();
  struct hz5_slab *run = hz5_first(slab);
  hz5_run_emptied(&heap->listed[run->class_id], run);
  hz5_collect(heap);
  hz5_slow_path_done(heap);
}

HZ_HOT void hz5_release(void *p) {
  const size_t number = hz_slab_of(p);
  if (hz_unlikely(number >= hz_arena.slab_count)) {
    release_slow(p);
    return;
  }
  struct hz5_slab *slab = &hz5_table()[number];
  if (hz_unlikely(hz5_owner(slab) != hz5_heap->token)) {
    release_slow(p);
    return;
  }
  uint32_t index;
  if (hz_unlikely(!hz5_begins(slab, p, &index))) {
    refuse(p);
    return;
  }
  struct hz5_bits *const all = slab->bits, *const bits = &all[index / 64];
  const uint64_t idle = atomic_load_explicit(&bits->idle, memory_order_relaxed);
  const uint64_t kept = atomic_load_explicit(&bits->kept, memory_order_relaxed);
  const uint64_t bit = UINT64_C(1) << index % 64;
  if (hz_unlikely((idle & bit) != 0) || hz_unlikely((kept & bit) == 0)) {
    refuse(p);
    return;
  }
  atomic_store_explicit(&bits->idle, idle | bit, memory_order_relaxed);
  if (hz_unlikely(--*hz5_until_of(all) == 0)) run_emptied(slab);
}

// ---- the rest of the table ----------------------------------------------------------------------

static size_t hz5_usable_size(void *p) {
  const struct hz5_slab *slab = hz5_find(p);
  if (hz_unlikely(slab == NULL)) return hz_above_usable(p);
  uint32_t index;
  if (hz_likely(hz5_is_live(slab, p, &index))) return hz_class_bytes(slab->class_id);
  hz5_refuse(slab, p);
  return 0;
}

static void *hz5_resize(void *p, size_t bytes) {
  const struct hz5_slab *slab = hz5_find(p);
  if (hz_unlikely(slab == NULL)) return hz_above_resize(p, bytes);
  return hz_class_fits(slab->class_id, bytes) ? p : NULL;
}

// Blocks are counted where they are: in the bitmaps.
static void hz5_gauges(struct hz_gauges *out) {
  struct hz_arena_totals arena;
  uint64_t large_cached;
  const struct hz5_sums runs = hz5_runs_sum();
  hz_arena_read_totals(&arena);
  hz_large_read(&out->large_bytes, &out->large_blocks, &large_cached);
  out->reserved_bytes = arena.reserved_bytes;
  out->committed_bytes = arena.committed_bytes + out->large_bytes + large_cached;
  out->live_bytes = arena.run_bytes - hz_min(runs.free_bytes, arena.run_bytes) + out->large_bytes;
  out->cached_bytes = hz_min(runs.freed_bytes, out->live_bytes);
  out->free_bytes = runs.free_bytes + arena.dirty_bytes + large_cached;
  out->threads = hz_thread_count();
}

const struct hz_line hz5_line = {
    .info = &hz5_info,
    .table = {.alloc = hz5_alloc,
              .alloc_zeroed = hz5_alloc_zeroed,
              .alloc_aligned = hz5_alloc_aligned,
              .release = hz5_release,
              .usable_size = hz5_usable_size,
              .resize = hz5_resize},
    .start = hz5_heaps_start,
    .trim = hz5_trim,
    .gauges = hz5_gauges,
    .check = hz5_check,
};
