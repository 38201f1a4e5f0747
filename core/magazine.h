// Magazines: arrays of pointers to free blocks. A free block itself is never written to.
//
//   slots: [ NULL | block ... block |   ...   | FULL ]
//            ^0     ^1         ^top             ^capacity + 1
//
// `top` points at the newest block, or at the NULL below the first. A pop that finds NULL is
// "empty", a push that finds FULL above top is "full": one compare each, no count, any capacity.
// While a magazine is loaded, top is its whole state and lives in its thread's heap; `count` is
// valid only while it is not.
//
// Whole magazines are exchanged with what is below (core/depot.h, a line's stash): moving one costs
// the same whatever it holds.
#ifndef HZ_CORE_MAGAZINE_H
#define HZ_CORE_MAGAZINE_H

#include <string.h>

#include "core/base.h"
#include "core/meta.h"

#define HZ_MAGAZINE_FULL ((void *)1) // no block has this address

struct hz_magazine {
  struct hz_magazine *next;
  uint32_t capacity;
  uint32_t count;
  _Atomic uint32_t depth; // weight of this packet and those below in a stash (hz_stash_push)
  uint32_t note;          // the line's own (hz4: what a packet holds)
  void *slots[];
};

// The top of no magazine: empty and full at once, for ever; nothing is written there.
extern HZ_HIDDEN void *const hz_no_slots[2];
#define HZ_NO_TOP ((void **)hz_no_slots)
#define HZ_NO_TOPS                                                                                 \
  { [0 ... HZ_CLASS_COUNT - 1] = HZ_NO_TOP }

HZ_FAST size_t hz_magazine_bytes(uint32_t capacity) {
  return sizeof(struct hz_magazine) + ((size_t)capacity + 2) * sizeof(void *);
}

// An empty magazine; NULL: no memory.
static inline struct hz_magazine *hz_magazine_new(uint32_t capacity) {
  struct hz_magazine *m = hz_meta_take(hz_magazine_bytes(capacity));
  if (m == NULL) return NULL;
  m->next = NULL;
  m->capacity = capacity;
  m->count = 0;
  // The record may have been anything before: no slot may look like the upper sentinel.
  memset(m->slots, 0, (capacity + 1) * sizeof *m->slots);
  m->slots[capacity + 1] = HZ_MAGAZINE_FULL;
  return m;
}

static inline void hz_magazine_drop(struct hz_magazine *m) {
  hz_meta_give(m, hz_magazine_bytes(m->capacity));
}

// The hot pair. `top` is where the heap keeps the loaded magazine's state.
HZ_FAST void *hz_magazine_pop(void ***top) {
  void *block = **top;
  if (hz_likely(block != NULL)) --*top;
  return block;
}

HZ_FAST bool hz_magazine_push(void ***top, void *block) {
  void **at = *top;
  if (hz_unlikely(at[1] == HZ_MAGAZINE_FULL)) return false;
  at[1] = block;
  // A fork between the two stores must not find a top without its block.
  atomic_signal_fence(memory_order_release);
  *top = at + 1;
  return true;
}

// Many pushers, one taker: a stack of packets (magazines) by one compare and swap per packet. The
// taker exchanges the whole list, so there is no ABA.
//
// weight: what the packet counts. Returns false, and pushes nothing, when about `most` would then
// be exceeded by all that wait.
static inline bool hz_stash_push(_Atomic(struct hz_magazine *) *head, struct hz_magazine *packet,
                                 uint32_t weight, uint32_t most) {
  // Acquire, here and where the exchange fails: the record below is read, and may be new.
  struct hz_magazine *below = atomic_load_explicit(head, memory_order_acquire);
  do {
    // `below` may just have been taken and reused: its depth is then a wrong guess, nothing worse,
    // because records of magazines are never unmapped.
    const uint32_t depth =
        below == NULL ? 0 : atomic_load_explicit(&below->depth, memory_order_relaxed);
    if (depth + weight > most) return false;
    atomic_store_explicit(&packet->depth, depth + weight, memory_order_relaxed);
    packet->next = below;
    // Release pairs with the acquire in hz_stash_take: the packet's contents come with it.
  } while (!atomic_compare_exchange_weak_explicit(head, &below, packet, memory_order_release,
                                                  memory_order_acquire));
  return true;
}

static inline struct hz_magazine *hz_stash_take(_Atomic(struct hz_magazine *) *head) {
  if (atomic_load_explicit(head, memory_order_relaxed) == NULL) return NULL;
  return atomic_exchange_explicit(head, NULL, memory_order_acquire);
}

#endif
