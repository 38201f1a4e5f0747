// Chance that is the same for every allocator: a generator, and how a draw's bits are shared out.
#ifndef HZ_BENCH_DRAW_H
#define HZ_BENCH_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "args.h"

// From the command line; constant afterwards.
static struct {
  size_t seed; // the same one: the same work
} draw_rules;

#define SEED_ARGUMENT                                                                              \
  { .key = "seed", .value = &draw_rules.seed, .usual = 1, .most = UINT32_MAX }

// xorshift64. The state is never 0.
static inline uint64_t draw(uint64_t *state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

// The state that the stream of this number, below 2^32 - 1, begins with: each step takes different
// values to different ones, and only 0 to 0, so it is another one for every seed and stream.
static inline uint64_t draw_begin(uint32_t stream) {
  uint64_t x = ((uint64_t)draw_rules.seed << 32) + stream + 1;
  for (int i = 0; i < 2; i++) {
    x *= 0x2545f4914f6cdd1du;
    x ^= x >> 32;
  }
  return x;
}

// One draw serves a whole step: bits 0 to 19 choose a place, 20 to 43 a size, 44 to 63 a case.
static inline size_t draw_place(uint64_t drawn, size_t count) {
  return ((drawn & 0xfffff) * count) >> 20;
}
static inline size_t draw_size(uint64_t drawn, size_t min, size_t max) {
  return min + ((((drawn >> 20) & 0xffffff) * (max - min + 1)) >> 24);
}
static inline size_t draw_case(uint64_t drawn, size_t count) {
  return ((drawn >> 44) * count) >> 20;
}

#endif
