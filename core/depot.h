// The bounded store of full magazines between threads and the runs below: one per size class and
// group of threads. Exchanging a magazine is a pointer swap; nothing is walked.
//
// The caller holds the lock that protects the depot (one lock for all classes of a group).
#ifndef HZ_CORE_DEPOT_H
#define HZ_CORE_DEPOT_H

#include "core/magazine.h"

// `full` and `count` may be read without the lock, atomically, as hints.
struct hz_depot {
  struct hz_magazine *full;
  uint32_t count;
  uint32_t low; // the smallest count since the last hz_depot_surplus: magazines nobody needed
};

HZ_FAST void hz_depot_put(struct hz_depot *depot, struct hz_magazine *m) {
  m->next = depot->full;
  __atomic_store_n(&depot->full, m, __ATOMIC_RELAXED);
  __atomic_store_n(&depot->count, depot->count + 1, __ATOMIC_RELAXED);
}

HZ_FAST struct hz_magazine *hz_depot_get(struct hz_depot *depot) {
  struct hz_magazine *m = depot->full;
  if (m == NULL) return NULL;
  __atomic_store_n(&depot->full, m->next, __ATOMIC_RELAXED);
  __atomic_store_n(&depot->count, depot->count - 1, __ATOMIC_RELAXED);
  if (depot->count < depot->low) depot->low = depot->count;
  return m;
}

// The magazines that were not needed since the last call, linked by next; or all of them.
static inline struct hz_magazine *hz_depot_surplus(struct hz_depot *depot, bool all) {
  struct hz_magazine *list = NULL;
  for (uint32_t n = all ? depot->count : depot->low; n > 0; n--) {
    struct hz_magazine *m = hz_depot_get(depot);
    m->next = list;
    list = m;
  }
  depot->low = depot->count;
  return list;
}

#endif
