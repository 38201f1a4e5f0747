// Magazines between threads: see lines/hz6/hz6_transfer.h.
#include "lines/hz6/hz6_transfer.h"

#include "core/counter.h"
#include "core/lock.h"
#include "lines/hz6/hz6_route.h"

enum { EMPTIES = 16 }; // empty magazines kept per class: a pair of threads needs one or two

static struct transfer {
  _Alignas(HZ_CACHE_LINE) struct hz_lock lock;
  struct hz6_magazine *full; // linked by next, newest first; looked at without the lock, as count
  uint32_t count;
  uint32_t low;                 // the smallest count in this period: magazines that nobody needed
  struct hz6_magazine *empties; // linked by next; looked at without the lock, to pass by
  uint32_t empty_count;
  uint32_t due; // magazines that nobody has needed for a period
} transfers[HZ_CLASS_COUNT];

void hz6_transfer_start(void) {
  hz_locks_register(HZ_RANK_GROUP, &transfers[0].lock, HZ_CLASS_COUNT, sizeof transfers[0]);
}

// ---- Magazines, under the lock ------------------------------------------------------------------

static void push_full(struct transfer *t, struct hz6_magazine *m) {
  m->next = t->full;
  __atomic_store_n(&t->full, m, __ATOMIC_RELAXED);
  __atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELAXED);
}

static struct hz6_magazine *pop_full(struct transfer *t) {
  struct hz6_magazine *m = t->full;
  if (m == NULL) return NULL;
  __atomic_store_n(&t->full, m->next, __ATOMIC_RELAXED);
  __atomic_store_n(&t->count, t->count - 1, __ATOMIC_RELAXED);
  if (t->count < t->low) t->low = t->count;
  return m;
}

// Returns what there is no room for.
static struct hz6_magazine *keep_empty(struct transfer *t, struct hz6_magazine *m) {
  if (m == NULL || t->empty_count == EMPTIES) return m;
  m->next = t->empties;
  __atomic_store_n(&t->empties, m, __ATOMIC_RELAXED);
  t->empty_count++;
  return NULL;
}

static struct hz6_magazine *pop_empty(struct transfer *t) {
  struct hz6_magazine *m = t->empties;
  if (m == NULL) return NULL;
  __atomic_store_n(&t->empties, m->next, __ATOMIC_RELAXED);
  t->empty_count--;
  return m;
}

// ---- The exchange -------------------------------------------------------------------------------

struct hz6_magazine *hz6_transfer_get(unsigned class_id, struct hz6_magazine *empty) {
  struct transfer *t = &transfers[class_id];
  if (__atomic_load_n(&t->full, __ATOMIC_RELAXED) == NULL) return NULL;
  hz_lock(&t->lock);
  struct hz6_magazine *full = pop_full(t);
  struct hz6_magazine *over = full != NULL ? keep_empty(t, empty) : NULL;
  hz_unlock(&t->lock);
  if (over != NULL) hz6_magazine_drop(over);
  if (full != NULL) hz_count(HZ_COUNT_transfers, 1);
  return full;
}

bool hz6_transfer_put(unsigned class_id, struct hz6_magazine *full, struct hz6_magazine **empty) {
  struct transfer *t = &transfers[class_id];
  *empty = NULL;
  if (hz6_policy.of[class_id].transfer == 0) return false;
  hz_lock(&t->lock);
  const bool room = t->count < hz6_policy.of[class_id].transfer;
  if (room) {
    push_full(t, full);
    *empty = pop_empty(t);
  }
  hz_unlock(&t->lock);
  return room;
}

void hz6_transfer_put_empty(unsigned class_id, struct hz6_magazine *empty) {
  struct transfer *t = &transfers[class_id];
  hz_lock(&t->lock);
  struct hz6_magazine *over = keep_empty(t, empty);
  hz_unlock(&t->lock);
  if (over != NULL) hz6_magazine_drop(over);
}

struct hz6_magazine *hz6_transfer_take_empty(unsigned class_id) {
  struct transfer *t = &transfers[class_id];
  struct hz6_magazine *m = NULL;
  if (__atomic_load_n(&t->empties, __ATOMIC_RELAXED) != NULL) {
    hz_lock(&t->lock);
    m = pop_empty(t);
    hz_unlock(&t->lock);
  }
  return m != NULL ? m : hz6_magazine_new(hz6_policy.of[class_id].capacity);
}

// ---- What nobody needs --------------------------------------------------------------------------

void hz6_transfer_period(void) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct transfer *t = &transfers[c];
    hz_lock(&t->lock);
    t->due = t->low;
    t->low = t->count;
    hz_unlock(&t->lock);
  }
}

struct hz6_magazine *hz6_transfer_due(unsigned class_id, size_t bytes, bool all) {
  struct transfer *t = &transfers[class_id];
  const size_t magazine = hz6_policy.of[class_id].capacity * hz_class_bytes(class_id);
  struct hz6_magazine *list = NULL;
  if (__atomic_load_n(&t->full, __ATOMIC_RELAXED) == NULL) return NULL;
  hz_lock(&t->lock);
  // Those below the low mark are still what nobody needs.
  t->due = all ? t->count : (uint32_t)hz_min(t->due, t->low);
  for (size_t room = bytes / magazine + 1; t->due != 0 && (all || room != 0); room--) {
    struct hz6_magazine *m = pop_full(t);
    if (m == NULL) t->due = 0;
    else {
      t->due--;
      m->next = list;
      list = m;
    }
  }
  hz_unlock(&t->lock);
  return list;
}

uint64_t hz6_transfer_bytes(void) {
  uint64_t bytes = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    bytes += (uint64_t)__atomic_load_n(&transfers[c].count, __ATOMIC_RELAXED) *
             hz6_policy.of[c].capacity * hz_class_bytes(c);
  return bytes;
}

// ---- Check --------------------------------------------------------------------------------------

static const char *check_magazine(const struct hz6_magazine *m, unsigned class_id) {
  if (m->count == 0 || m->count > m->capacity) return "hz6: a waiting magazine's count is off";
  if (m->capacity != hz6_policy.of[class_id].capacity) return "hz6: a magazine of another class";
  if (m->items[0].block != NULL) return "hz6: a magazine lost its lower sentinel";
  if (m->items[m->capacity + 1].block != HZ6_FULL) return "hz6: a magazine lost its upper sentinel";
  for (uint32_t i = 1; i <= m->count; i++) {
    const struct hz6_route r = hz6_route(m->items[i].block);
    if (r.kind != HZ6_KIND_CLASS || r.class_id != class_id)
      return "hz6: a waiting block is of another class";
    if (r.answer != HZ6_INVALID || r.why != HZ_MISUSE_DOUBLE)
      return "hz6: a waiting block is marked as live, or is none";
    if (m->items[i].mark != hz6_route_mark(m->items[i].block))
      return "hz6: a waiting block's mark is another's";
  }
  return NULL;
}

static const char *check_transfer(const struct transfer *t, unsigned class_id) {
  uint32_t count = 0;
  for (const struct hz6_magazine *m = t->full; m != NULL; m = m->next, count++) {
    const char *broken = check_magazine(m, class_id);
    if (broken != NULL) return broken;
  }
  if (count != t->count) return "hz6: the transfer cache miscounts its magazines";
  return t->low > t->count ? "hz6: a low mark is above its count" : NULL;
}

const char *hz6_transfer_check(void) {
  const char *broken = NULL;
  for (unsigned c = 0; c < HZ_CLASS_COUNT && broken == NULL; c++) {
    hz_lock(&transfers[c].lock);
    broken = check_transfer(&transfers[c], c);
    hz_unlock(&transfers[c].lock);
  }
  return broken;
}
