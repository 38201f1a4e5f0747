// The counters' storage: one copy per stripe, so that threads on slow paths rarely meet.
//
// A stripe is picked from the address of the thread's control block: no thread-local memory, no
// registration, and right for threads that the library has never seen.
#include "core/counter.h"

#include <pthread.h>

enum { STRIPE_BITS = 4, STRIPES = 1 << STRIPE_BITS };

struct stripe {
  alignas(HZ_CACHE_LINE) _Atomic uint64_t count[HZ_COUNTER_COUNT];
};

static struct stripe stripes[STRIPES];

const struct hz_counter_row hz_counter_rows[HZ_COUNTER_COUNT] = {
#define ROW(name, unit, meaning) {#name, unit, meaning},
    HZ_COUNTERS(ROW)
#undef ROW
};

// Control blocks lie whole stacks apart; the multiplication (2^64 over the golden ratio) brings the
// bits that differ to the top.
static struct stripe *stripe_of_thread(void) {
  uint64_t hash = (uint64_t)pthread_self() * UINT64_C(0x9E3779B97F4A7C15);
  return &stripes[hash >> (64 - STRIPE_BITS)];
}

// Relaxed throughout: a count orders nothing, and a reader accepts a moment's lag.
void hz_count(enum hz_counter counter, uint64_t n) {
  atomic_fetch_add_explicit(&stripe_of_thread()->count[counter], n, memory_order_relaxed);
}

uint64_t hz_counter_read(enum hz_counter counter) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < STRIPES; i++) {
    sum += atomic_load_explicit(&stripes[i].count[counter], memory_order_relaxed);
  }
  return sum;
}

void hz_counters_reset(void) {
  for (unsigned i = 0; i < STRIPES; i++) {
    for (unsigned c = 0; c < HZ_COUNTER_COUNT; c++) {
      atomic_store_explicit(&stripes[i].count[c], 0, memory_order_relaxed);
    }
  }
}
