// Heaps of hz5: how a thread gets one, and what becomes of its runs at the thread's end.
//
// Heaps are never freed. One that its thread has left owns nothing: its runs are orphans, or full.
// The next thread that takes it has another token.
#include "lines/hz5/hz5_model.h"

#include <string.h>

#include "core/counter.h"
#include "core/meta.h"

static struct hz5_bits no_bits; // no block of it is free

#define NO_CURSOR                                                                                  \
  { .bits = &no_bits }
#define NO_HEAP                                                                                    \
  {                                                                                                \
    .token = HZ5_NO_HEAP,                                                                          \
    .cursor_by_16 = {[0 ... HZ_CLASS_BY_16_MAX / 16] = offsetof(struct hz5_heap, cursor)},         \
    .cursor = {[0 ... HZ_CLASS_COUNT - 1] = NO_CURSOR},                                            \
  }

const struct hz5_heap hz5_empty_heap = NO_HEAP;
const struct hz5_heap hz5_dead_heap = NO_HEAP;
__thread const struct hz5_heap *hz5_heap = &hz5_empty_heap;

static struct {
  struct hz_lock lock;
  struct hz5_heap *idle;
  uint32_t count;
  _Atomic(struct hz5_heap *) by_slot[HZ5_HEAPS + 1]; // from 1
} heaps;

// ---- Heaps --------------------------------------------------------------------------------------

void hz5_cursor_reset(struct hz5_heap *heap, unsigned class_id) {
  heap->cursor[class_id] = (struct hz5_cursor)NO_CURSOR;
}

// Under the lock.
static struct hz5_heap *heap_new(void) {
  if (heaps.count == HZ5_HEAPS - 1) return NULL; // the last slot would make HZ5_NO_HEAP
  struct hz5_heap *heap = hz_meta_take(sizeof *heap);
  if (heap == NULL) return NULL;
  memset(heap, 0, sizeof *heap);
  for (size_t i = 0; i < hz_count_of(heap->cursor_by_16); i++)
    heap->cursor_by_16[i] = (uint16_t)offsetof(struct hz5_heap, cursor[hz_class_by_16[i]]);
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) hz5_cursor_reset(heap, c);
  heap->slot = ++heaps.count;
  atomic_init(&heap->queue, HZ5_CLOSED);
  // Release pairs with the acquire in hz5_heap_of.
  atomic_store_explicit(&heaps.by_slot[heap->slot], heap, memory_order_release);
  return heap;
}

static struct hz5_heap *heap_take(void) {
  hz_lock(&heaps.lock);
  struct hz5_heap *heap = heaps.idle;
  if (heap != NULL) heaps.idle = heap->next_idle;
  else heap = heap_new();
  hz_unlock(&heaps.lock);
  if (heap == NULL) return NULL;
  // Another generation: what was this heap's is not this thread's.
  const uint32_t generation = (heap->token + 1) % HZ5_TOKENS;
  heap->token = heap->slot << HZ5_GENERATION_BITS | generation;
  atomic_store_explicit(&heap->queue, 0, memory_order_release);
  return heap;
}

static void heap_give(struct hz5_heap *heap) {
  hz_lock(&heaps.lock);
  heap->next_idle = heaps.idle;
  heaps.idle = heap;
  hz_unlock(&heaps.lock);
}

struct hz5_heap *hz5_heap_of(uint32_t token) {
  const uint32_t slot = token >> HZ5_GENERATION_BITS;
  return atomic_load_explicit(&heaps.by_slot[slot], memory_order_acquire);
}

// ---- Threads ------------------------------------------------------------------------------------

// All runs of the heap are given away, the current ones as well, full or not: who has found the
// queue closed relies on what hz5_pool_give does.
static void leave_runs(struct hz5_heap *heap) {
  hz5_queue_close(heap);
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz5_slab *run = hz5_named(heap->cursor[c].run);
    hz5_cursor_reset(heap, c);
    if (run != NULL) hz5_pool_give(run);
    while ((run = hz5_named(heap->listed[c].first)) != NULL) {
      hz5_run_unlist(&heap->listed[c], run);
      hz5_pool_give(run);
    }
  }
}

static HZ_SLOW struct hz5_heap *attach(void) {
  struct hz5_heap *heap = heap_take();
  if (heap == NULL) return NULL;
  hz5_heap = heap; // attaching may call malloc
  if (hz_thread_attach(&heap->thread)) return heap;
  hz5_heap = &hz5_empty_heap;
  leave_runs(heap);
  heap_give(heap);
  return NULL;
}

struct hz5_heap *hz5_heap_get(void) {
  const struct hz5_heap *heap = hz5_heap;
  if (hz_likely(heap != &hz5_empty_heap && heap != &hz5_dead_heap)) return (struct hz5_heap *)heap;
  return heap == &hz5_dead_heap ? NULL : attach();
}

static struct hz5_heap *heap_of(struct hz_thread *thread) {
  return (struct hz5_heap *)((char *)thread - offsetof(struct hz5_heap, thread));
}

// What the thread still frees or allocates from here on it frees and allocates as nobody.
static void on_thread_exit(struct hz_thread *thread) {
  struct hz5_heap *heap = heap_of(thread);
  hz5_heap = &hz5_dead_heap;
  leave_runs(heap);
  hz_run_cache_flush(&heap->above);
  hz_thread_detach(thread);
  heap_give(heap);
  hz_count(HZ_COUNT_threads_ended, 1);
  hz5_slow_path_done(NULL);
}

// ---- Forks --------------------------------------------------------------------------------------

// In the child, alone. Who was about to put a run into a queue may not be here: queues and chains
// are empty from now on, and whatever is marked as queued is not, until somebody looks for it
// (hz5_after_fork).
static void in_child(void) {
  hz5_forks++;
  for (uint32_t slot = 1; slot <= heaps.count; slot++) {
    struct hz5_heap *heap = hz5_heap_of(slot << HZ5_GENERATION_BITS);
    const uint32_t queue = atomic_load_explicit(&heap->queue, memory_order_relaxed);
    if (queue != 0 && queue != HZ5_CLOSED)
      atomic_store_explicit(&heap->queue, 0, memory_order_relaxed);
    for (unsigned i = 0; i < HZ5_CHAINS; i++)
      if (heap->chains[i].slabs != 0) heap->chains[i].slabs = 0;
  }
}

// A fork may have caught the thread between any two stores, so its lists are not believed: its runs
// are found by their owner, and counted anew. What it had in its hands is lost.
bool hz5_adopt_vanished(void) {
  struct hz_thread *thread = hz_thread_take_orphan();
  if (hz_likely(thread == NULL)) return false;
  do {
    struct hz5_heap *heap = heap_of(thread);
    hz5_queue_leave(heap);
    for (struct hz5_slab *run = NULL, *next = hz5_run_next(run); (run = next) != NULL;) {
      next = hz5_run_next(run);
      if (hz5_owner(run) != heap->token) continue;
      atomic_store_explicit(&run->state, HZ5_CURRENT, memory_order_relaxed);
      hz5_pool_give(run);
    }
    for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
      hz5_cursor_reset(heap, c);
      heap->listed[c] = (struct hz5_list){0, 0, 0};
    }
    hz_run_cache_flush(&heap->above);
    hz_thread_detach(thread);
    heap_give(heap);
    hz_count(HZ_COUNT_adopted, 1);
  } while ((thread = hz_thread_take_orphan()) != NULL);
  return true;
}

// ---- Start --------------------------------------------------------------------------------------

bool hz5_heaps_start(void) {
  hz5_runs_start();
  hz_locks_register(HZ_RANK_TABLE, &heaps.lock, 1, sizeof heaps.lock);
  hz5_pools_start();
  hz_threads_on_exit(on_thread_exit);
  hz_threads_after_fork(in_child);
  return true;
}
