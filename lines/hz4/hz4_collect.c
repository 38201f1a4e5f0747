// Frees by other threads than the owner, the owner's half: packets that wait are looked into when
// the owner runs out of blocks. Others do so for an owner that does not come.
#include "lines/hz4/hz4_model.h"

#include <limits.h>

#include "core/counter.h"

// Packets that one call looks into or settles: together some thousand blocks, so the longest pause
// of a malloc stays under a millisecond, whatever others send meanwhile.
enum { PACKETS_AT_ONCE = 16 };

// What the program did wrong earlier shows when blocks come to their pages.
static const char late[] = "found when blocks went back to their pages";

// ---- What waits ---------------------------------------------------------------------------------

static struct hz_magazine *inbox_of(const struct hz4_heap *heap) {
  return atomic_load_explicit(&heap->inbox, memory_order_relaxed);
}

static void set_inbox(struct hz4_heap *heap, struct hz_magazine *m) {
  atomic_store_explicit(&heap->inbox, m, memory_order_release); // hz4_waiting_kib looks into it
}

bool hz4_waiting(const struct hz4_heap *heap) {
  return inbox_of(heap) != NULL || atomic_load_explicit(&heap->queue, memory_order_relaxed) != NULL;
}

// A packet's depth is its weight and that of all below it, in the inbox as in the queue. It may have
// been taken and reused meanwhile: then this is a wrong guess.
static uint64_t depth_kib(struct hz_magazine *const _Atomic *top) {
  const struct hz_magazine *m = atomic_load_explicit(top, memory_order_acquire);
  return m != NULL ? atomic_load_explicit(&m->depth, memory_order_relaxed) : 0;
}

uint64_t hz4_waiting_kib(const struct hz4_heap *heap) {
  return depth_kib(&heap->queue) + depth_kib(&heap->inbox);
}

// Under the lock, here and below.
static void fill_inbox(struct hz4_heap *heap) {
  if (inbox_of(heap) == NULL) set_inbox(heap, hz_stash_take(&heap->queue));
}

// Up to `most` packets, linked by next.
static struct hz_magazine *take_some(struct hz4_heap *heap, unsigned most) {
  fill_inbox(heap);
  struct hz_magazine *first = inbox_of(heap), *last = first;
  if (first == NULL) return NULL;
  while (--most > 0 && last->next != NULL) last = last->next;
  set_inbox(heap, last->next);
  last->next = NULL;
  return first;
}

struct hz_magazine *hz4_waiting_take(struct hz4_heap *heap) {
  struct hz_magazine *first = take_some(heap, UINT_MAX), *last = first;
  if (first == NULL) return NULL;
  while (last->next != NULL) last = last->next;
  last->next = hz_stash_take(&heap->queue);
  return first;
}

// ---- For the owner ------------------------------------------------------------------------------

// The packet is a magazine of this class that may be loaded as it is.
static bool suits(const struct hz_magazine *m, unsigned class_id) {
  return m->note == class_id && m->count <= hz4_limits[class_id].capacity;
}

// An empty magazine, for the next sender or for ourselves.
static void give_back(struct hz4_heap *heap, struct hz_magazine *m) {
  m->next = NULL;
  // Release pairs with the acquire in hz_stash_take.
  m = atomic_exchange_explicit(&heap->returned, m, memory_order_acq_rel);
  if (m != NULL) hz4_magazine_give(heap, m);
}

static void load(struct hz4_heap *heap, unsigned class_id, struct hz_magazine *m) {
  struct hz_magazine *empty = heap->loaded[class_id];
  hz4_magazine_load(heap, class_id, m);
  if (empty != NULL) give_back(heap, empty);
}

static bool push(struct hz4_heap *heap, void *p) {
  const unsigned class_id = hz4_class_at(p);
  return class_id < HZ_CLASS_COUNT && hz_magazine_push(&heap->top[class_id], p);
}

// Blocks go into the magazines of their classes where there is room; the others stay, at the
// bottom, and go to their pages, where what is no block any more is told.
static void sort(struct hz4_heap *heap, struct hz_magazine *m) {
  uint32_t left = 0;
  for (uint32_t i = 1; i <= m->count; i++)
    if (!push(heap, m->slots[i])) m->slots[++left] = m->slots[i];
  if (left != 0) hz4_pages_give(m->slots + 1, left, late);
  give_back(heap, m);
}

// The blocks' addresses are in the sender's cache: all lines are asked for at once. m: or NULL.
static void fetch(const struct hz_magazine *m) {
  if (m == NULL) return;
  for (uint32_t i = m->count; i > 0; i -= hz_min(i, HZ_CACHE_LINE / sizeof(void *)))
    __builtin_prefetch(&m->slots[i]);
}

static struct hz_magazine *take_packet(struct hz4_heap *heap) {
  if (!hz4_waiting(heap)) return NULL;
  hz_lock(heap->lock);
  if (inbox_of(heap) == NULL) {
    fill_inbox(heap);
    fetch(inbox_of(heap));
  }
  struct hz_magazine *m = take_some(heap, 1);
  fetch(inbox_of(heap)); // the next one, while this one is looked into
  hz_unlock(heap->lock);
  return m;
}

bool hz4_collect(struct hz4_heap *heap, unsigned class_id) {
  uint64_t packets = 0;
  for (struct hz_magazine *m;
       packets < PACKETS_AT_ONCE && *heap->top[class_id] == NULL && (m = take_packet(heap)) != NULL;
       packets++) {
    if (suits(m, class_id)) load(heap, class_id, m);
    else sort(heap, m);
  }
  if (packets != 0) hz_count(HZ_COUNT_collected, packets);
  return *heap->top[class_id] != NULL;
}

// ---- For others ---------------------------------------------------------------------------------

void hz4_give_magazines(struct hz_magazine *list) {
  for (const struct hz_magazine *m = list; m != NULL; m = m->next)
    hz4_pages_give(m->slots + 1, m->count, late);
  hz4_magazines_drop(list);
}

void hz4_settle_some_waiting(struct hz4_heap *heap) {
  hz_lock(heap->lock);
  struct hz_magazine *list = take_some(heap, PACKETS_AT_ONCE);
  hz_unlock(heap->lock);
  hz4_give_magazines(list);
}

void hz4_settle_all_waiting(struct hz4_heap *heap) {
  if (!hz4_waiting(heap)) return;
  hz_lock(heap->lock);
  struct hz_magazine *list = hz4_waiting_take(heap);
  hz_unlock(heap->lock);
  hz4_give_magazines(list);
}

// The same packets on top as at the last tick: the owner does not come for them. Under the lock.
static bool is_stale(const struct hz4_heap *heap) {
  const struct hz_magazine *inbox = inbox_of(heap);
  return inbox != NULL
             ? inbox == heap->inbox_seen
             : atomic_load_explicit(&heap->queue, memory_order_relaxed) == heap->queue_seen;
}

void hz4_settle_waiting(struct hz4_heap *heap) {
  if (!hz4_waiting(heap)) return;
  hz_lock(heap->lock);
  struct hz_magazine *list = is_stale(heap) ? take_some(heap, 4 * PACKETS_AT_ONCE) : NULL;
  heap->inbox_seen = inbox_of(heap);
  heap->queue_seen = atomic_load_explicit(&heap->queue, memory_order_relaxed);
  hz_unlock(heap->lock);
  hz4_give_magazines(list);
}
