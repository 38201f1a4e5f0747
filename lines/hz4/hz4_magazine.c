// Records of magazines, all of one size: packets and loaded magazines change places. A heap keeps a
// few empty ones; those that one side of a pipeline empties go to the other through a pool, several
// at a time.
#include "lines/hz4/hz4_model.h"

enum { SPARES = 8, BATCH = 4 }; // a heap's empty magazines: at most; exchanged at once

static struct {
  struct hz_lock lock;
  struct hz_magazine *empty;
} pool;

void hz4_magazines_start(void) {
  hz_locks_register(HZ_RANK_TABLE, &pool.lock, 1, sizeof pool.lock);
}

// Moves the upper sentinel. What lies between the blocks and it is never read.
static void set_capacity(struct hz_magazine *m, uint32_t capacity) {
  if (m->capacity == capacity) return;
  m->slots[m->capacity + 1] = NULL;
  m->slots[capacity + 1] = HZ_MAGAZINE_FULL;
  m->capacity = capacity;
}

void hz4_magazines_drop(struct hz_magazine *list) {
  if (list == NULL) return;
  struct hz_magazine *last = list;
  while (last->next != NULL) last = last->next;
  hz_lock(&pool.lock);
  last->next = pool.empty;
  __atomic_store_n(&pool.empty, list, __ATOMIC_RELAXED);
  hz_unlock(&pool.lock);
}

// Up to BATCH empty ones, linked; NULL: the pool has none.
static struct hz_magazine *take_from_pool(uint32_t *count) {
  if (__atomic_load_n(&pool.empty, __ATOMIC_RELAXED) == NULL) return NULL;
  hz_lock(&pool.lock);
  struct hz_magazine *first = pool.empty, *last = first;
  if (first != NULL) {
    for (*count = 1; *count < BATCH && last->next != NULL; ++*count) last = last->next;
    __atomic_store_n(&pool.empty, last->next, __ATOMIC_RELAXED);
    last->next = NULL;
  }
  hz_unlock(&pool.lock);
  return first;
}

struct hz_magazine *hz4_magazine_take(struct hz4_heap *heap, uint32_t capacity) {
  if (heap->spares == NULL) {
    uint32_t count = 0;
    heap->spares = take_from_pool(&count);
    heap->spare_count = count;
  }
  struct hz_magazine *m = heap->spares;
  if (m != NULL) {
    heap->spares = m->next;
    heap->spare_count--;
  } else {
    m = hz_magazine_new(HZ4_MAGAZINE_BLOCKS);
    if (m == NULL) return NULL;
  }
  m->next = NULL;
  m->count = 0; // what came from the pool says what it held last
  set_capacity(m, capacity);
  return m;
}

void hz4_magazine_give(struct hz4_heap *heap, struct hz_magazine *m) {
  m->next = heap->spares;
  heap->spares = m;
  if (++heap->spare_count < SPARES) return;
  struct hz_magazine *last = m;
  for (unsigned i = 1; i < BATCH; i++) last = last->next;
  heap->spares = last->next;
  heap->spare_count -= BATCH;
  last->next = NULL;
  hz4_magazines_drop(m);
}

void hz4_magazine_load(struct hz4_heap *heap, unsigned class_id, struct hz_magazine *m) {
  set_capacity(m, hz4_limits[class_id].capacity);
  heap->loaded[class_id] = m;
  heap->top[class_id] = m->slots + m->count;
}
