// Heaps of hz3: how a thread gets one, and what happens to it at the thread's end.
#include "lines/hz3/hz3_model.h"

#include <string.h>

#include "core/counter.h"
#include "core/meta.h"

const struct hz3_heap hz3_empty_heap = {.top = HZ_NO_TOPS};
const struct hz3_heap hz3_dead_heap = {.top = HZ_NO_TOPS};
__thread const struct hz3_heap *hz3_heap = &hz3_empty_heap;

struct hz3_shard hz3_shards[HZ3_MAX_SHARDS];
struct hz3_limits hz3_limits[HZ_CLASS_COUNT];

// ---- Life of a heap -----------------------------------------------------------------------------

static void heap_init(struct hz3_heap *heap) {
  memset(heap, 0, sizeof *heap);
  memcpy(heap->class_by_16, hz_class_by_16, sizeof heap->class_by_16);
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) heap->top[c] = HZ_NO_TOP;
}

static void heap_join_shard(struct hz3_heap *heap, unsigned shard) {
  heap->shard = shard;
  heap->tag = hz3_tag(shard, 0);
  atomic_fetch_add_explicit(&hz3_shards[shard].live, 1, memory_order_relaxed);
  heap->in_shard = true;
}

static void heap_leave_shard(struct hz3_heap *heap) {
  if (!heap->in_shard) return; // a fork caught the thread just behind the next line
  heap->in_shard = false;
  atomic_signal_fence(memory_order_release);
  atomic_fetch_sub_explicit(&hz3_shards[heap->shard].live, 1, memory_order_relaxed);
}

// The heap of a thread that calls us for the first time.
static HZ_SLOW struct hz3_heap *heap_attach(void) {
  struct hz3_heap *heap = hz_meta_take(sizeof *heap);
  if (heap == NULL) return NULL;
  heap_init(heap);
  heap_join_shard(heap, 0);
  hz3_heap = heap; // attaching may call malloc
  if (!hz_thread_attach(&heap->thread)) {
    hz3_heap = &hz3_empty_heap;
    hz3_heap_flush(heap);
    heap_leave_shard(heap);
    hz_meta_give(heap, sizeof *heap);
    return NULL;
  }
  const unsigned shard = heap->thread.slot % (unsigned)hz3_options.shards;
  if (shard != heap->shard) {
    heap_leave_shard(heap);
    heap_join_shard(heap, shard);
  }
  return heap;
}

struct hz3_heap *hz3_heap_get(void) {
  const struct hz3_heap *heap = hz3_heap;
  if (hz_likely(heap != &hz3_empty_heap && heap != &hz3_dead_heap)) return (struct hz3_heap *)heap;
  return heap == &hz3_dead_heap ? NULL : heap_attach();
}

static void unload(struct hz3_heap *heap, struct hz3_shard *shard, unsigned class_id) {
  struct hz_magazine *m = heap->loaded[class_id];
  if (m == NULL) return;
  m->count = (uint32_t)(heap->top[class_id] - m->slots);
  heap->loaded[class_id] = NULL;
  heap->top[class_id] = HZ_NO_TOP;
  if (m->count != 0) hz3_give_magazine(shard, class_id, m);
  else hz_magazine_drop(m);
}

void hz3_heap_flush(struct hz3_heap *heap) {
  struct hz3_shard *shard = &hz3_shards[heap->shard];
  hz3_flush_packets(heap);
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    unload(heap, shard, c);
    if (heap->spare[c] != NULL) hz_magazine_drop(heap->spare[c]);
    heap->spare[c] = NULL;
  }
  hz_run_cache_flush(&heap->runs);
}

static void heap_end(struct hz3_heap *heap) {
  heap_leave_shard(heap);
  hz_thread_detach(&heap->thread);
  hz_meta_give(heap, sizeof *heap);
}

static struct hz3_heap *heap_of(struct hz_thread *thread) {
  return (struct hz3_heap *)((char *)thread - offsetof(struct hz3_heap, thread));
}

// What the thread still frees or allocates from here on goes to and comes from the runs, one by
// one.
static void on_thread_exit(struct hz_thread *thread) {
  hz3_heap = &hz3_dead_heap;
  hz3_heap_flush(heap_of(thread));
  heap_end(heap_of(thread));
  hz_count(HZ_COUNT_threads_ended, 1);
}

// A fork may have caught the orphan's thread between any two stores of a slow path. So a magazine
// is believed only where top lies inside of it, its record and the spare ones are never used again,
// and what the thread had in its hands is lost. What is given is forgotten first: another fork may
// catch us here.
static void salvage(struct hz3_heap *heap) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_magazine *m = heap->loaded[c];
    heap->loaded[c] = NULL;
    atomic_signal_fence(memory_order_release);
    if (m == NULL || heap->top[c] < m->slots || heap->top[c] > m->slots + m->capacity) continue;
    hz3_give_central(c, m->slots + 1, (uint32_t)(heap->top[c] - m->slots));
  }
  for (unsigned i = 0; i < hz3_options.stash_slots; i++) {
    struct hz3_packet *packet = &heap->packets[i];
    struct hz_magazine *m = packet->blocks;
    packet->blocks = NULL;
    atomic_signal_fence(memory_order_release);
    if (m != NULL) hz3_give_central(hz3_tag_class(packet->tag), m->slots + 1, m->count);
  }
  hz_run_cache_flush(&heap->runs);
}

bool hz3_adopt_orphans(void) {
  bool any = false;
  for (struct hz_thread *t; (t = hz_thread_take_orphan()) != NULL; any = true) {
    salvage(heap_of(t));
    heap_end(heap_of(t));
    hz_count(HZ_COUNT_adopted, 1);
  }
  return any;
}

// ---- Start --------------------------------------------------------------------------------------

static size_t clamp(size_t value, size_t low, size_t high) {
  return hz_min(hz_max(value, low), high);
}

static void limits_init(unsigned class_id) {
  const struct hz3_options *o = &hz3_options;
  const size_t bytes = hz_class_bytes(class_id);
  // Four at least: with fewer, every other call of a large class would be a slow one.
  const size_t capacity = clamp(o->magazine_bytes / bytes, 4, o->magazine_blocks);
  const size_t packet = clamp(o->packet_blocks, 1, capacity);
  hz3_limits[class_id] = (struct hz3_limits){
      .capacity = (uint16_t)capacity,
      .refill = (uint16_t)clamp(o->refill_blocks, 1, capacity),
      .packet = (uint16_t)packet,
      .depot_magazines = (uint32_t)(o->depot_bytes / (capacity * bytes)),
      .stash_packets = (uint32_t)(o->stash_bytes / (packet * bytes)),
  };
}

bool hz3_heaps_start(void) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) limits_init(c);
  if (!hz3_tags_start()) return false;
  hz_locks_register(HZ_RANK_GROUP, &hz3_shards[0].lock, HZ3_MAX_SHARDS, sizeof hz3_shards[0]);
  hz_threads_on_exit(on_thread_exit);
  return true;
}
