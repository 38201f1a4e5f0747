// Heaps of hz4: how a thread gets one, and what becomes of it at the thread's end.
//
// Heaps are never freed. One that its thread has left keeps its pages, its magazines and its queue;
// the next thread goes on with it. Until one comes, other threads settle it and take its pages over
// when they would need new ones.
#include "lines/hz4/hz4_model.h"

#include <string.h>

#include "core/counter.h"
#include "core/meta.h"

const struct hz4_heap hz4_empty_heap = {.top = HZ_NO_TOPS};
const struct hz4_heap hz4_dead_heap = {.top = HZ_NO_TOPS};
__thread const struct hz4_heap *hz4_heap = &hz4_empty_heap;

struct hz4_limits hz4_limits[HZ_CLASS_COUNT];

static struct padded_lock { _Alignas(HZ_CACHE_LINE) struct hz_lock lock; } locks[HZ4_LOCKS];

static struct {
  struct hz_lock lock;
  struct hz4_heap *idle; // newest first: its memory is the warmest
  _Atomic uint32_t idle_count;
  _Atomic(struct hz4_heap *) all; // newest first; only grows
  _Atomic uint32_t count;
} heaps;

// ---- Heaps --------------------------------------------------------------------------------------

static struct hz4_heap *heap_new(void) {
  struct hz4_heap *heap = hz_meta_take(sizeof *heap);
  if (heap == NULL) return NULL;
  memset(heap, 0, sizeof *heap);
  memcpy(heap->class_by_16, hz_class_by_16, sizeof heap->class_by_16);
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) heap->top[c] = HZ_NO_TOP;
  for (unsigned i = 0; i < HZ4_LANES; i++) heap->packets[i].count = HZ4_NO_PACKET;
  heap->packet_blocks = (uint32_t)hz4_options.packet_blocks;
  heap->room = (int64_t)hz4_options.packets_bytes;
  heap->index = atomic_fetch_add_explicit(&heaps.count, 1, memory_order_relaxed);
  heap->lock = &locks[heap->index % HZ4_LOCKS].lock;
  atomic_init(&heap->stripped, true);
  struct hz4_heap *next = atomic_load_explicit(&heaps.all, memory_order_relaxed);
  do heap->next = next;
  // Release pairs with the acquire in hz4_heaps_all.
  while (!atomic_compare_exchange_weak_explicit(&heaps.all, &next, heap, memory_order_release,
                                                memory_order_relaxed));
  return heap;
}

struct hz4_heap *hz4_heaps_all(void) {
  return atomic_load_explicit(&heaps.all, memory_order_acquire);
}

struct hz4_heap *hz4_heaps_next(hz4_round *round, struct hz4_heap **first) {
  const struct hz4_heap *last = atomic_load_explicit(round, memory_order_relaxed);
  struct hz4_heap *next = last != NULL ? last->next : NULL;
  if (next == NULL) next = hz4_heaps_all();
  if (next == *first) return NULL;
  if (*first == NULL) *first = next;
  // Several threads on the same round may see a heap twice, or not this time.
  atomic_store_explicit(round, next, memory_order_relaxed);
  return next;
}

bool hz4_heaps_idle(void) {
  return atomic_load_explicit(&heaps.idle_count, memory_order_relaxed) != 0;
}

static struct hz4_heap *idle_take(void) {
  if (!hz4_heaps_idle()) return NULL;
  hz_lock(&heaps.lock);
  struct hz4_heap *heap = heaps.idle;
  if (heap != NULL) {
    heaps.idle = heap->next_idle;
    atomic_fetch_sub_explicit(&heaps.idle_count, 1, memory_order_relaxed);
  }
  hz_unlock(&heaps.lock);
  return heap;
}

static void idle_give(struct hz4_heap *heap) {
  hz_lock(&heaps.lock);
  heap->next_idle = heaps.idle;
  heaps.idle = heap;
  atomic_fetch_add_explicit(&heaps.idle_count, 1, memory_order_relaxed);
  hz_unlock(&heaps.lock);
}

struct hz4_heap *hz4_heap_any(void) {
  struct hz4_heap *heap = hz4_heaps_all();
  if (heap != NULL) return heap;
  heap = heap_new();
  if (heap != NULL) idle_give(heap);
  return heap;
}

// ---- Threads ------------------------------------------------------------------------------------

static void attend(struct hz4_heap *heap, bool attended) {
  hz_lock(heap->lock);
  atomic_store_explicit(&heap->attended, attended, memory_order_relaxed);
  atomic_store_explicit(&heap->stripped, false, memory_order_relaxed);
  hz_unlock(heap->lock);
}

static void leave(struct hz4_heap *heap) {
  attend(heap, false);
  idle_give(heap);
}

// The heap of a thread that calls us for the first time.
static HZ_SLOW struct hz4_heap *attach(void) {
  struct hz4_heap *heap = idle_take();
  if (heap == NULL) heap = heap_new();
  if (heap == NULL) return NULL;
  attend(heap, true);
  hz4_heap_up_to_date(heap);
  hz4_heap = heap; // attaching may call malloc
  if (hz_thread_attach(&heap->thread)) return heap;
  hz4_heap = &hz4_empty_heap;
  hz4_send_all(heap);
  leave(heap);
  return NULL;
}

struct hz4_heap *hz4_heap_get(void) {
  const struct hz4_heap *heap = hz4_heap;
  if (hz_likely(heap != &hz4_empty_heap && heap != &hz4_dead_heap)) return (struct hz4_heap *)heap;
  return heap == &hz4_dead_heap ? NULL : attach();
}

static struct hz4_heap *heap_of(struct hz_thread *thread) {
  return (struct hz4_heap *)((char *)thread - offsetof(struct hz4_heap, thread));
}

// What the thread still frees or allocates from here on goes to and comes from pages, one by one.
static void on_thread_exit(struct hz_thread *thread) {
  struct hz4_heap *heap = heap_of(thread);
  hz4_heap = &hz4_dead_heap;
  hz4_send_all(heap);
  hz_thread_detach(thread);
  leave(heap);
  hz_count(HZ_COUNT_threads_ended, 1);
  hz4_slow_path_done(NULL);
}

// ---- What a heap holds --------------------------------------------------------------------------

static struct hz_magazine *unload(struct hz4_heap *heap, unsigned class_id) {
  struct hz_magazine *m = heap->loaded[class_id];
  if (m == NULL) return NULL;
  m->count = (uint32_t)(heap->top[class_id] - m->slots);
  heap->loaded[class_id] = NULL;
  heap->top[class_id] = HZ_NO_TOP;
  return m;
}

struct hz_magazine *hz4_heap_strip(struct hz4_heap *heap) {
  struct hz_magazine *list = hz4_waiting_take(heap);
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_magazine *m = unload(heap, c);
    if (m == NULL) continue;
    m->next = list;
    list = m;
  }
  hz4_magazines_drop(heap->spares);
  heap->spares = NULL;
  heap->spare_count = 0;
  hz_run_cache_flush(&heap->runs);
  return list;
}

void hz4_heap_flush(struct hz4_heap *heap) {
  hz4_send_all(heap);
  hz_lock(heap->lock);
  struct hz_magazine *list = hz4_heap_strip(heap);
  hz_unlock(heap->lock);
  hz4_give_magazines(list);
}

// True is certain only under the lock.
static bool is_idle(const struct hz4_heap *heap) {
  return !atomic_load_explicit(&heap->attended, memory_order_relaxed);
}

bool hz4_heap_settle(struct hz4_heap *heap) {
  if (!is_idle(heap)) return false;
  if (atomic_load_explicit(&heap->stripped, memory_order_relaxed) && !hz4_waiting(heap))
    return true;
  struct hz_magazine *list = NULL;
  hz_lock(heap->lock);
  const bool idle = is_idle(heap);
  if (idle) {
    list = hz4_heap_strip(heap);
    atomic_store_explicit(&heap->stripped, true, memory_order_relaxed);
  }
  hz_unlock(heap->lock);
  hz4_give_magazines(list);
  return idle;
}

// ---- Orphans of a fork --------------------------------------------------------------------------

static bool lies_in(void *const *top, const struct hz_magazine *m) {
  return top >= m->slots && top <= m->slots + m->capacity;
}

// A fork may have caught the orphan's thread between any two stores of a slow path. So a magazine
// is believed only where top lies inside of it, its record and the spare ones are never used again,
// and what the thread had in its hands is lost. What is given is forgotten first: another fork may
// catch us here.
static void salvage(struct hz4_heap *heap) {
  heap->spares = NULL;
  heap->spare_count = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_magazine *m = heap->loaded[c];
    void **top = heap->top[c];
    heap->loaded[c] = NULL;
    heap->top[c] = HZ_NO_TOP;
    atomic_signal_fence(memory_order_release);
    if (m != NULL && lies_in(top, m))
      hz4_pages_give(m->slots + 1, (uint32_t)(top - m->slots), "found after a fork");
  }
  for (unsigned i = 0; i < HZ4_LANES; i++) {
    struct hz4_packet *packet = &heap->packets[i];
    struct hz_magazine *m = packet->blocks;
    const uint32_t count = packet->count;
    *packet = (struct hz4_packet){.count = HZ4_NO_PACKET};
    atomic_signal_fence(memory_order_release);
    if (m != NULL && count <= HZ4_MAGAZINE_BLOCKS)
      hz4_pages_give(m->slots + 1, count, "found after a fork");
  }
  heap->room = (int64_t)hz4_options.packets_bytes;
}

bool hz4_adopt_orphans(void) {
  bool any = false;
  for (struct hz_thread *t; (t = hz_thread_take_orphan()) != NULL; any = true) {
    salvage(heap_of(t));
    hz_thread_detach(t);
    leave(heap_of(t));
    hz_count(HZ_COUNT_adopted, 1);
  }
  return any;
}

// ---- Start --------------------------------------------------------------------------------------

static size_t clamp(size_t value, size_t low, size_t high) {
  return hz_min(hz_max(value, low), high);
}

static void limits_init(unsigned class_id) {
  const struct hz4_options *o = &hz4_options;
  // Four at least: with fewer, every other call of a large class would be a slow one.
  const size_t capacity =
      clamp(o->magazine_bytes / hz_class_bytes(class_id), 4, o->magazine_blocks);
  hz4_limits[class_id] = (struct hz4_limits){
      .capacity = (uint16_t)capacity,
      .refill = (uint16_t)clamp(o->refill_blocks, 1, capacity),
  };
}

bool hz4_heaps_start(void) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) limits_init(c);
  hz_arena_keep_heads();
  hz_locks_register(HZ_RANK_GROUP, &locks[0].lock, HZ4_LOCKS, sizeof locks[0]);
  hz_locks_register(HZ_RANK_TABLE, &heaps.lock, 1, sizeof heaps.lock);
  hz_threads_on_exit(on_thread_exit);
  hz4_magazines_start();
  return true;
}
