// Magazines of hz6: arrays of free blocks, each with the address of its mark (hz6_route.h), so that
// malloc need not look for it. In the shape of core/magazine.h:
//
//   items: [ NULL | block ... block |   ...   | FULL ]
//            ^0     ^1         ^top             ^capacity + 1
//
// `top` points at the newest item, or at the NULL below the first; while a magazine is loaded, top
// is its whole state, and `count` is valid only while it is not.
#ifndef HZ_LINES_HZ6_MAGAZINE_H
#define HZ_LINES_HZ6_MAGAZINE_H

#include <string.h>

#include "core/base.h"
#include "core/meta.h"

struct hz6_item {
  void *block;
  _Atomic uint8_t *mark;
};

struct hz6_magazine {
  struct hz6_magazine *next;
  uint32_t capacity;
  uint32_t count;
  struct hz6_item items[];
};

#define HZ6_FULL ((void *)1) // no block has this address

// The top of no magazine: empty and full at once, for ever; nothing is written there.
extern HZ_HIDDEN const struct hz6_item hz6_no_items[2];
#define HZ6_NO_TOP ((struct hz6_item *)hz6_no_items)

HZ_FAST size_t hz6_magazine_bytes(uint32_t capacity) {
  return sizeof(struct hz6_magazine) + ((size_t)capacity + 2) * sizeof(struct hz6_item);
}

// An empty magazine; NULL: no memory.
static inline struct hz6_magazine *hz6_magazine_new(uint32_t capacity) {
  struct hz6_magazine *m = hz_meta_take(hz6_magazine_bytes(capacity));
  if (m == NULL) return NULL;
  m->next = NULL;
  m->capacity = capacity;
  m->count = 0;
  // The record may have been anything before: no item may look like the upper sentinel.
  memset(m->items, 0, (capacity + 1) * sizeof *m->items);
  m->items[capacity + 1].block = HZ6_FULL;
  return m;
}

static inline void hz6_magazine_drop(struct hz6_magazine *m) {
  hz_meta_give(m, hz6_magazine_bytes(m->capacity));
}

// block NULL: the magazine is empty.
HZ_FAST struct hz6_item hz6_magazine_pop(struct hz6_item **top) {
  const struct hz6_item item = **top;
  if (hz_likely(item.block != NULL)) --*top;
  // A fork must not find a block in a magazine that is marked as live already.
  atomic_signal_fence(memory_order_release);
  return item;
}

HZ_FAST bool hz6_magazine_push(struct hz6_item **top, struct hz6_item item) {
  struct hz6_item *at = *top;
  if (hz_unlikely(at[1].block == HZ6_FULL)) return false;
  at[1] = item;
  // A fork between the stores must not find a top without its block.
  atomic_signal_fence(memory_order_release);
  *top = at + 1;
  return true;
}

#endif
