// hz4's hot paths and its function table: read this after lines/hz4/hz4_model.h.
//
// malloc: size -> class by table, pop the class's magazine, return. free: mask to the head, compare
// the owner, push into the class's magazine; another's block goes into the packet for its owner.
// Everything else is one tail call away.
#include "lines/hz4/hz4_model.h"

#include <string.h>

#include "core/above.h"
#include "core/large.h"
#include "core/misuse.h"

// ---- Blocks above the classes -------------------------------------------------------------------

static struct hz_run_cache *run_cache(struct hz4_heap *heap) {
  return heap != NULL ? &heap->runs : NULL;
}

static HZ_SLOW void *alloc_above(size_t align, size_t bytes, bool zeroed) {
  struct hz4_heap *heap = hz4_heap_get();
  bool pause;
  void *p = hz_above_take(run_cache(heap), align, bytes, zeroed, hz4_last_resort, &pause);
  if (pause) hz4_slow_path_done(heap);
  return p;
}

static HZ_SLOW void release_above(void *p) {
  struct hz4_heap *heap = hz4_heap_get();
  bool pause;
  hz_above_give(run_cache(heap), p, &pause);
  if (pause) hz4_slow_path_done(heap);
}

// ---- alloc --------------------------------------------------------------------------------------

static HZ_SLOW void *refill(unsigned class_id) {
  struct hz4_heap *heap = hz4_heap_get();
  void *p;
  if (heap == NULL || hz4_options.verify) {
    p = hz4_take_single(class_id);
  } else {
    p = hz_magazine_pop(&heap->top[class_id]); // a heap just taken over has blocks
    if (p == NULL) p = hz4_refill(heap, class_id);
  }
  hz4_slow_path_done(heap);
  return hz_likely(p != NULL) ? p : hz_no_memory();
}

// Takes the size, not the class, so that the hot path can leave its argument where it came.
static HZ_SLOW void *alloc_slow(size_t bytes) {
  return bytes <= HZ_CLASS_MAX_BYTES ? refill(hz_class_of(bytes))
                                     : alloc_above(HZ_MIN_ALIGN, bytes, false);
}

// The read-only heaps' magazines are empty as well as full, so nothing is written through the cast.
HZ_FAST struct hz4_heap *heap_for_hot(void) {
  return (struct hz4_heap *)hz4_heap;
}

HZ_HOT void *hz4_alloc(size_t bytes) {
  struct hz4_heap *heap = heap_for_hot();
  void *p = NULL;
  if (hz_likely(bytes <= HZ_CLASS_BY_16_MAX))
    p = hz_magazine_pop(&heap->top[heap->class_by_16[(bytes + 15) >> 4]]);
  else if (hz_likely(bytes <= HZ_CLASS_MAX_BYTES))
    p = hz_magazine_pop(&heap->top[hz_class_by_256[(bytes + 255) >> 8]]);
  return hz_likely(p != NULL) ? p : alloc_slow(bytes);
}

static void *hz4_alloc_zeroed(size_t bytes) {
  if (hz_unlikely(bytes > HZ_CLASS_MAX_BYTES)) return alloc_above(HZ_MIN_ALIGN, bytes, true);
  void *p = hz4_alloc(bytes);
  return hz_likely(p != NULL) ? memset(p, 0, bytes) : NULL;
}

static void *hz4_alloc_aligned(size_t align, size_t bytes) {
  const unsigned class_id = hz_class_of_aligned(align, bytes);
  if (hz_unlikely(class_id == HZ_CLASS_COUNT)) return alloc_above(align, bytes, false);
  void *p = hz_magazine_pop(&heap_for_hot()->top[class_id]);
  return hz_likely(p != NULL) ? p : refill(class_id);
}

// ---- release ------------------------------------------------------------------------------------

static HZ_SLOW void release_slow(void *p) {
  struct hz4_heap *owner = hz4_owner_of(p);
  if (owner == NULL) {
    release_above(p);
    return;
  }
  const struct hz4_page *page = hz4_page_at(p);
  struct hz4_heap *heap = hz4_heap_get();
  bool step = true;
  if (heap == NULL || hz4_options.verify) hz4_pages_give(&p, 1, NULL);
  else if (owner != heap) step = hz4_release_remote(heap, owner, p);
  else if (!hz_magazine_push(&heap->top[hz4_class(page)], p))
    hz4_overflow(heap, hz4_class(page), p);
  if (step) hz4_slow_path_done(heap);
}

static __attribute__((noinline)) void count_wide(struct hz4_heap *heap, struct hz4_packet *packet,
                                                 unsigned class_id) {
  if (hz_unlikely(hz4_count_wide(heap, packet, class_id))) hz4_slow_path_done(heap);
}

// Another heap's block: into the packet for its owner. A lane without a packet counts as full, so
// that its owner does not matter.
static __attribute__((noinline)) void release_foreign(void *p, const struct hz4_page *page,
                                                      struct hz4_heap *heap) {
  struct hz4_packet *packet =
      &heap->packets[atomic_load_explicit(&page->lane, memory_order_relaxed)];
  const unsigned class_id = hz4_class(page);
  const uint32_t count = packet->count;
  if (hz_unlikely(packet->owner != hz4_owner(page)) || hz_unlikely(count >= heap->packet_blocks)) {
    release_slow(p);
    return;
  }
  packet->blocks->slots[count + 1] = p;
  atomic_signal_fence(memory_order_release); // a fork must not find a count without its block
  packet->count = count + 1;
  packet->mixed |= (uint8_t)(class_id ^ packet->class_id);
  if (class_id >= HZ4_WIDE_CLASS) count_wide(heap, packet, class_id);
}

HZ_HOT void hz4_release(void *p) {
  if (hz_unlikely(!hz4_in_page(p))) {
    release_slow(p);
    return;
  }
  struct hz4_page *page = hz4_page_at(p);
  struct hz4_heap *heap = heap_for_hot();
  if (hz4_owner(page) != heap) release_foreign(p, page, heap);
  else if (hz_unlikely(!hz_magazine_push(&heap->top[hz4_class(page)], p))) release_slow(p);
}

// ---- the rest of the table ----------------------------------------------------------------------

static size_t hz4_usable_size(void *p) {
  const unsigned class_id = hz4_class_at(p);
  return hz_likely(class_id < HZ_CLASS_COUNT) ? hz_class_bytes(class_id) : hz_above_usable(p);
}

static void *hz4_resize(void *p, size_t bytes) {
  const unsigned class_id = hz4_class_at(p);
  if (hz_unlikely(class_id == HZ_CLASS_COUNT)) return hz_above_resize(p, bytes);
  return hz_class_fits(class_id, bytes) ? p : NULL;
}

static void hz4_gauges(struct hz_gauges *out) {
  struct hz_arena_totals arena;
  uint64_t large_cached, free_bytes = 0, cached = 0;
  // Free bytes first: a page that is cut meanwhile must not look freer than it is large.
  for (const struct hz4_heap *h = hz4_heaps_all(); h != NULL; h = h->next) {
    free_bytes += atomic_load_explicit(&h->free_bytes, memory_order_relaxed);
    cached += hz4_waiting_kib(h) * HZ_KIB;
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

const struct hz_line hz4_line = {
    .info = &hz4_info,
    .table = {.alloc = hz4_alloc,
              .alloc_zeroed = hz4_alloc_zeroed,
              .alloc_aligned = hz4_alloc_aligned,
              .release = hz4_release,
              .usable_size = hz4_usable_size,
              .resize = hz4_resize},
    .start = hz4_heaps_start,
    .trim = hz4_trim,
    .gauges = hz4_gauges,
    .check = hz4_check,
};
