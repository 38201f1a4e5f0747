// Blocks on their way from one thread to one other, with their stamps: a ring with one producer and
// one consumer.
#ifndef HZ_BENCH_RING_H
#define HZ_BENCH_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "slots.h"
#include "state.h"

enum { RING_MOST = 1 << 24 };

// Counts only grow; entries are taken modulo their number, a power of two.
struct ring {
  _Alignas(PAD) _Atomic uint64_t head; // written by the producer, release; read by the consumer
  _Alignas(PAD) uint64_t filled;       // the producer's: entries, of which head tells the consumer
  uint64_t tail_seen;                  // the producer's last view of tail
  _Atomic bool closed;                 // the producer has ended
  _Alignas(PAD) _Atomic uint64_t tail; // written by the consumer, release; read by the producer
  _Alignas(PAD) struct slots entries;  // constant, but for what they hold
};

#define RING_ARGUMENT(ring_entries, usually)                                                       \
  { .key = "ring", .value = (ring_entries), .usual = (usually), .least = 1, .most = RING_MOST }

static inline void ring_check(size_t entries) {
  if ((entries & (entries - 1)) != 0) {
    fail(EXIT_USAGE, "ring=%zu: expected a power of two", entries);
  }
}

// The producer's question. Looks at what the consumer writes only if it was full before.
static inline bool ring_has_room(struct ring *ring) {
  if (ring->filled - ring->tail_seen < ring->entries.count) return true;
  ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
  return ring->filled - ring->tail_seen < ring->entries.count;
}

// Fills an entry, if there is room, which the consumer sees after ring_publish.
static inline void ring_fill(struct ring *ring, void *p, uint64_t stamp) {
  slots_put(&ring->entries, ring->filled++ & (ring->entries.count - 1), p, stamp);
}
static inline void ring_publish(struct ring *ring) {
  atomic_store_explicit(&ring->head, ring->filled, memory_order_release);
}

// False: it is full.
static inline bool ring_push(struct ring *ring, void *p, uint64_t stamp) {
  if (!ring_has_room(ring)) return false;
  ring_fill(ring, p, stamp);
  ring_publish(ring);
  return true;
}

// The consumer's question: how many blocks are there, at most `most`.
static inline size_t ring_count(const struct ring *ring, size_t most) {
  uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
  uint64_t found = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
  return found < most ? found : most;
}

// Frees what is there, at most `most` blocks, and then tells the producer. Returns how many.
static inline size_t ring_drain(struct ring *ring, struct witness *w, size_t most) {
  size_t found = ring_count(ring, most);
  if (found == 0) return 0;
  uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
  for (size_t i = 0; i < found; i++) {
    size_t place = (tail + i) & (ring->entries.count - 1);
    block_drop(w, ring->entries.blocks[place], slots_stamp(&ring->entries, place));
  }
  atomic_store_explicit(&ring->tail, tail + found, memory_order_release);
  return found;
}

// The producer's last word; whoever sees it sees all entries before.
static inline void ring_close(struct ring *ring) {
  ring_publish(ring);
  atomic_store_explicit(&ring->closed, true, memory_order_release);
}
static inline bool ring_is_closed(const struct ring *ring) {
  return atomic_load_explicit(&ring->closed, memory_order_acquire);
}

#endif
