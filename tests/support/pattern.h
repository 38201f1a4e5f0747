// Block contents that can be told from any other block's: fill, then verify.
//
// Small blocks are covered byte by byte; above 64 KiB one byte in 61 and the last 64 stand for all.
#ifndef TESTS_SUPPORT_PATTERN_H
#define TESTS_SUPPORT_PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum { PATTERN_TAIL = 64 };

static inline size_t pattern_step(size_t bytes) {
  return bytes > 65536 ? 61 : 1;
}
static inline uint8_t pattern_byte(unsigned tag, size_t i) {
  return (uint8_t)(tag * 37u + i * 131u + (i >> 8));
}
static inline size_t pattern_tail(size_t bytes) {
  return bytes > PATTERN_TAIL ? bytes - PATTERN_TAIL : 0;
}

static inline void pattern_fill(void *p, size_t bytes, unsigned tag) {
  uint8_t *at = (uint8_t *)p;
  size_t step = pattern_step(bytes);
  for (size_t i = 0; i < bytes; i += step) at[i] = pattern_byte(tag, i);
  for (size_t i = pattern_tail(bytes); i < bytes; i++) at[i] = pattern_byte(tag, i);
}

// The offset of the first byte among the first `kept` that differs from what
// pattern_fill(p, filled, tag) wrote, or `kept` when all of them are intact.
static inline size_t pattern_intact(const void *p, size_t filled, size_t kept, unsigned tag) {
  const uint8_t *at = (const uint8_t *)p;
  size_t step = pattern_step(filled);
  for (size_t i = 0; i < kept; i += step) {
    if (at[i] != pattern_byte(tag, i)) return i;
  }
  for (size_t i = pattern_tail(filled); i < kept; i++) {
    if (at[i] != pattern_byte(tag, i)) return i;
  }
  return kept;
}

#endif
