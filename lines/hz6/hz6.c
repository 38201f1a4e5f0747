// hz6's hot paths and its function tables: read this after lines/hz6/hz6_model.h.
//
// malloc: size -> mark by table, pop the class's magazine, write the mark. free: address -> slab ->
// block's number -> mark, take it away, push. Everything else is one tail call away.
#include "lines/hz6/hz6_model.h"

#include <string.h>

#include "core/above.h"
#include "core/large.h"
#include "core/log.h"
#include "core/misuse.h"

_Atomic uint8_t hz6_mark_by_256[HZ_CLASS_MAX_BYTES / 256 + 1];

// ---- Blocks above the classes -------------------------------------------------------------------

static void pause_of(struct hz6_heap *heap) {
  hz6_scavenge_pause(heap != NULL ? &heap->calls_seen : NULL);
}

static struct hz_run_cache *run_cache(struct hz6_heap *heap) {
  return heap != NULL ? &heap->above : NULL;
}

void *hz6_alloc_above(struct hz6_heap *heap, size_t align, size_t bytes, bool zeroed) {
  bool pause;
  void *p = hz_above_take(run_cache(heap), align, bytes, zeroed, hz6_scavenge_last_resort, &pause);
  if (pause) pause_of(heap);
  return p;
}

// Not of a class, or a bad free.
void hz6_release_above(struct hz6_heap *heap, void *p) {
  const struct hz6_route r = hz6_route(p);
  if (r.answer == HZ6_INVALID && r.class_id != HZ_CLASS_COUNT) {
    hz_misuse(r.why, p, "inside of memory that hz6 has cut into blocks");
    return;
  }
  bool pause;
  hz_above_give(run_cache(heap), p, &pause);
  if (pause) pause_of(heap);
}

// ---- alloc --------------------------------------------------------------------------------------

static void *marked(struct hz6_item item, unsigned class_id) {
  if (hz_unlikely(item.block == NULL)) return hz_no_memory();
  hz6_mark_set(item.mark, class_id + 1);
  return item.block;
}

static struct hz6_item single(unsigned class_id) {
  struct hz6_item item = {NULL, NULL};
  hz6_source_take(class_id, 0, &item, 1);
  return item;
}

static void *take_single(unsigned class_id) {
  struct hz6_item item = single(class_id);
  if (hz_unlikely(item.block == NULL) && hz6_scavenge_last_resort()) item = single(class_id);
  return marked(item, class_id);
}

static HZ_SLOW void *refill(unsigned class_id) {
  struct hz6_heap *heap = hz6_front_get();
  if (heap == NULL) {
    hz6_scavenge_pause(NULL);
    return take_single(class_id);
  }
  struct hz6_item item = hz6_magazine_pop(&heap->top[class_id + 1]);
  if (item.block == NULL) item = hz6_front_refill(heap, class_id);
  if (hz_unlikely(item.block == NULL) && hz6_scavenge_last_resort())
    item = hz6_front_refill(heap, class_id);
  void *p = marked(item, class_id);
  hz6_scavenge_pause(&heap->calls_seen);
  return p;
}

// Takes the size, not the class, so that the hot path can leave its argument where it came.
static HZ_SLOW void *alloc_slow(size_t bytes) {
  if (bytes <= HZ_CLASS_BY_16_MAX) return refill(hz_class_by_16[(bytes + 15) >> 4]);
  if (bytes <= HZ_CLASS_MAX_BYTES) return refill(hz6_medium_mark(bytes) - 1);
  return hz6_alloc_above(hz6_front_get(), HZ_MIN_ALIGN, bytes, false);
}

// The read-only heaps have no block to pop, so nothing is written through the cast.
HZ_FAST struct hz6_heap *heap_for_pop(void) {
  return (struct hz6_heap *)hz6_heap;
}

HZ_HOT void *hz6_alloc(size_t bytes) {
  struct hz6_heap *heap = heap_for_pop();
  size_t mark; // no narrower: it is an index
  if (hz_likely(bytes <= HZ_CLASS_BY_16_MAX)) mark = heap->mark_by_16[(bytes + 15) >> 4];
  else if (hz_likely(bytes <= HZ_CLASS_MAX_BYTES)) mark = hz6_medium_mark(bytes);
  else return alloc_slow(bytes);
  const struct hz6_item item = hz6_magazine_pop(&heap->top[mark]);
  if (hz_unlikely(item.block == NULL)) return alloc_slow(bytes);
  hz6_mark_set(item.mark, (unsigned)mark);
  return item.block;
}

static void *hz6_alloc_zeroed(size_t bytes) {
  if (hz_unlikely(bytes > HZ_CLASS_MAX_BYTES))
    return hz6_alloc_above(hz6_front_get(), HZ_MIN_ALIGN, bytes, true);
  void *p = hz6_alloc(bytes);
  return hz_likely(p != NULL) ? memset(p, 0, bytes) : NULL;
}

static void *hz6_alloc_aligned(size_t align, size_t bytes) {
  const unsigned class_id = hz_class_of_aligned(align, bytes);
  if (hz_unlikely(class_id == HZ_CLASS_COUNT))
    return hz6_alloc_above(hz6_front_get(), align, bytes, false);
  const struct hz6_item item = hz6_magazine_pop(&heap_for_pop()->top[class_id + 1]);
  return hz_likely(item.block != NULL) ? marked(item, class_id) : refill(class_id);
}

// ---- release ------------------------------------------------------------------------------------

static HZ_SLOW void release_slow(void *p) {
  if (p == NULL) return;
  struct hz6_heap *heap = hz6_front_get();
  struct hz6_item item = {.block = p};
  const unsigned mark = hz6_route_unmark(p, &item.mark);
  if (mark == 0) {
    hz6_release_above(heap, p);
    return;
  }
  if (heap == NULL) hz6_source_give(mark - 1, &item, 1);
  else if (!hz6_magazine_push(&heap->top[mark], item)) hz6_front_overflow(heap, mark - 1, item);
  pause_of(heap);
}

// Mark 0's top is always full, and so are all of the read-only heaps: nothing is written through
// the cast.
HZ_HOT void hz6_release(void *p) {
  struct hz6_item item;
  if (hz_unlikely(!hz6_item_of(p, &item))) {
    release_slow(p);
    return;
  }
  struct hz6_heap *heap = (struct hz6_heap *)hz6_heap;
  const unsigned mark = hz6_mark_at(item.mark);
  struct hz6_item *top = heap->top[mark];
  if (hz_unlikely(top[1].block == HZ6_FULL)) {
    release_slow(p);
    return;
  }
  hz6_mark_set(item.mark, 0);
  top[1] = item;
  // A fork between the stores must not find a top without its block.
  atomic_signal_fence(memory_order_release);
  heap->top[mark] = top + 1;
}

// ---- the rest of the table ----------------------------------------------------------------------

// The class of a live block; HZ_CLASS_COUNT: p is none of a class.
static unsigned class_of_live(const void *p) {
  const _Atomic uint8_t *at = hz6_route_mark(p);
  const unsigned mark = at != NULL ? hz6_mark_at(at) : 0;
  return mark != 0 ? mark - 1 : HZ_CLASS_COUNT;
}

size_t hz6_usable_size(void *p) {
  const unsigned class_id = class_of_live(p);
  if (hz_likely(class_id != HZ_CLASS_COUNT)) return hz_class_bytes(class_id);
  const struct hz6_route r = hz6_route(p);
  if (r.class_id == HZ_CLASS_COUNT) return hz_above_usable(p);
  hz_misuse(r.why, p, "asked for its size");
  return 0;
}

void *hz6_resize(void *p, size_t bytes) {
  const unsigned class_id = class_of_live(p);
  const bool above = class_id == HZ_CLASS_COUNT;
  if (hz_unlikely(hz6_policy.growth_room))
    return hz6_room_resize(p, above ? hz_above_usable(p) : hz_class_bytes(class_id), bytes);
  if (hz_unlikely(above)) return hz_above_resize(p, bytes);
  return hz_class_fits(class_id, bytes) ? p : NULL;
}

static void hz6_gauges(struct hz_gauges *out) {
  struct hz_arena_totals arena;
  uint64_t large_cached, free_bytes = 0;
  // Free bytes first: a class that grows meanwhile must not look freer than it is large.
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) free_bytes += hz_central_free_bytes(c);
  hz_arena_read_totals(&arena);
  hz_large_read(&out->large_bytes, &out->large_blocks, &large_cached);
  out->reserved_bytes = arena.reserved_bytes;
  out->committed_bytes = arena.committed_bytes + out->large_bytes + large_cached;
  out->live_bytes = arena.run_bytes - hz_min(free_bytes, arena.run_bytes) + out->large_bytes;
  out->cached_bytes = hz_min(hz6_transfer_bytes(), out->live_bytes);
  out->free_bytes = free_bytes + arena.dirty_bytes + large_cached;
  out->threads = hz6_policy.per_cpu ? hz6_cpu_count() : hz_thread_count();
}

// ---- Start --------------------------------------------------------------------------------------

static const struct hz6_scavenge_front thread_front = {.flush = hz6_front_flush,
                                                       .adopt = hz6_front_adopt,
                                                       .period = hz6_room_period,
                                                       .check = hz6_check};
static const struct hz6_scavenge_front cpu_front = {.flush = hz6_cpu_flush,
                                                    .adopt = hz6_front_adopt,
                                                    .period = hz6_room_period,
                                                    .check = hz6_check};

static bool hz6_start(void) {
  hz6_policy_start();
  for (unsigned i = 0; i < sizeof hz6_mark_by_256; i++)
    atomic_init(&hz6_mark_by_256[i], (uint8_t)(hz_class_of(i * 256) + 1));
  hz6_room_start();
  hz6_transfer_start();
  hz6_front_start();
  if (!hz6_route_start()) return false;
  if (hz6_policy.per_cpu && !hz6_cpu_start()) {
    hz6_options.per_cpu = 0;
    hz6_options.spread_bytes = HZ6_SPREAD_BYTES; // the profile packs marks for processors' sake
    hz6_policy_start();
    hz_log("hz6.per_cpu needs the restartable sequences of the C library, and this process has "
           "none; each thread has its own front cache instead, as with hz6-remote");
  }
  hz6_scavenge_start(hz6_policy.per_cpu ? &cpu_front : &thread_front);
  return true;
}

// ---- The line -----------------------------------------------------------------------------------

#define ENTRIES(alloc_, zeroed_, aligned_, release_)                                               \
  {                                                                                                \
    .alloc = alloc_, .alloc_zeroed = zeroed_, .alloc_aligned = aligned_, .release = release_,      \
    .usable_size = hz6_usable_size, .resize = hz6_resize                                           \
  }

static const struct hz_table cpu_table =
    ENTRIES(hz6_cpu_alloc, hz6_cpu_alloc_zeroed, hz6_cpu_alloc_aligned, hz6_cpu_release);
static const struct hz_table strict_table =
    ENTRIES(hz6_alloc, hz6_alloc_zeroed, hz6_alloc_aligned, hz6_strict_release);

const struct hz_line hz6_line = {
    .info = &hz6_info,
    .table = ENTRIES(hz6_alloc, hz6_alloc_zeroed, hz6_alloc_aligned, hz6_release),
    .choose = hz6_table,
    .start = hz6_start,
    .trim = hz6_scavenge_trim,
    .gauges = hz6_gauges,
    .check = hz6_check,
};

const struct hz_table *hz6_table(void) {
  return hz6_policy.per_cpu ? &cpu_table : hz6_policy.owners ? &strict_table : &hz6_line.table;
}
