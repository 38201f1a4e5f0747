// Chance that is the same for every allocator: a generator, and how a draw's bits are shared out.
#ifndef HZ_BENCH_DRAW_H
#define HZ_BENCH_DRAW_H

#include <stddef.h>
#include <stdint.h>

// xorshift64. The state is never 0.
static inline uint64_t draw(uint64_t *state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

// The state that the stream of this number begins with.
static inline uint64_t draw_begin(size_t stream) {
  return 0x2545f4914f6cdd1du * (stream + 1);
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
