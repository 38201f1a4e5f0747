// An array of places for blocks, each empty or full, with the stamps of the blocks beside it. One
// thread's at a time.
#ifndef HZ_BENCH_SLOTS_H
#define HZ_BENCH_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "state.h"

enum { SLOTS_MOST = 1 << 20 }; // draw_place has 20 bits

struct slots {
  size_t count;
  void **blocks;    // NULL: empty
  uint64_t *stamps; // NULL if blocks are not touched: then they take no cache from the work
};

static inline struct slots slots_map(size_t count) {
  struct slots s = {.count = count, .blocks = state_map(count * sizeof *s.blocks)};
  if (block_rules.touch != 0) s.stamps = state_map(count * sizeof *s.stamps);
  return s;
}

static inline uint64_t slots_stamp(const struct slots *s, size_t i) {
  return block_rules.touch != 0 ? s->stamps[i] : 0;
}

static inline void slots_put(struct slots *s, size_t i, void *p, uint64_t stamp) {
  s->blocks[i] = p;
  if (block_rules.touch != 0) s->stamps[i] = stamp;
}

static inline void slots_take(struct witness *w, struct slots *s, size_t i, size_t bytes) {
  uint64_t stamp;
  void *p = block_take(w, bytes, &stamp);
  slots_put(s, i, p, stamp);
}

static inline void slots_drop(struct witness *w, struct slots *s, size_t i) {
  block_drop(w, s->blocks[i], slots_stamp(s, i));
  s->blocks[i] = NULL;
}

static inline void slots_drop_all(struct witness *w, struct slots *s) {
  for (size_t i = 0; i < s->count; i++) {
    if (s->blocks[i] != NULL) slots_drop(w, s, i);
  }
}

#endif
