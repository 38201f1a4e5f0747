// Blocks from malloc whose contents are checked: what is written after the malloc must be there
// before the free.
//
// With touch=N the first N bytes of a block (at most its size) and its last 8 are written. One
// block in 64, chosen by its stamp, is written in whole, so that blocks which overlap only in
// between are found too before long. The pattern depends on the stamp, which no other block has;
// the owner keeps it outside of the block. So if two live blocks have a written byte in common, or
// are one and the same, the one that was written first is found damaged at its free. With touch=0
// nothing is written or read.
#ifndef HZ_BENCH_BLOCKS_H
#define HZ_BENCH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "args.h"
#include "fail.h"

// BLOCK_WHOLE_BITS: two to that power blocks, and one of them is written in whole.
enum { BLOCK_ALIGNMENT = 16, BLOCK_LEAST_TOUCHED = 16, BLOCK_MOST = 1 << 30, BLOCK_WHOLE_BITS = 6 };

// From the command line; constant afterwards.
static struct { size_t min, max, touch; } block_rules;

#define SIZE_ARGUMENTS(usual_min, usual_max)                                                       \
  {.key = "min", .value = &block_rules.min, .usual = (usual_min), .least = 1, .most = BLOCK_MOST}, \
  {                                                                                                \
    .key = "max", .value = &block_rules.max, .usual = (usual_max), .least = 1, .most = BLOCK_MOST  \
  }
#define TOUCH_ARGUMENT(usually)                                                                    \
  { .key = "touch", .value = &block_rules.touch, .usual = (usually), .most = BLOCK_MOST }

static inline void block_rules_check(void) {
  if (block_rules.min > block_rules.max) {
    fail(EXIT_USAGE, "min=%zu is above max=%zu", block_rules.min, block_rules.max);
  }
  if (block_rules.touch == 0) return;
  if (block_rules.touch % 8 != 0 || block_rules.touch < BLOCK_LEAST_TOUCHED) {
    fail(EXIT_USAGE, "touch=%zu: expected 0, or a multiple of 8 that is at least %d",
         block_rules.touch, BLOCK_LEAST_TOUCHED);
  }
  if (block_rules.min < BLOCK_LEAST_TOUCHED) {
    fail(EXIT_USAGE, "min=%zu: a touched block (touch=%zu) has at least %d bytes", block_rules.min,
         block_rules.touch, BLOCK_LEAST_TOUCHED);
  }
}

// What one worker has seen. first_*: an example of the damage.
struct witness {
  uint64_t stamps; // given out so far
  uint64_t damaged;
  const void *first_block;
  size_t first_offset;
  uint64_t first_expected, first_found;
};

static inline void witness_note(struct witness *w, const void *block, size_t offset,
                                uint64_t expected, uint64_t found) {
  if (w->damaged++ != 0) return;
  w->first_block = block;
  w->first_offset = offset;
  w->first_expected = expected;
  w->first_found = found;
}

static inline void witness_add(struct witness *sum, const struct witness *w) {
  uint64_t damaged = sum->damaged + w->damaged;
  if (sum->damaged == 0) *sum = *w;
  sum->damaged = damaged;
}

// Unlike any other worker's, as long as each has another `stream` and takes fewer than 2^40.
static inline struct witness witness_begin(size_t stream) {
  return (struct witness){.stamps = (uint64_t)stream << 40};
}

// Odd, so never 0, and another one each time: the factor is odd too.
static inline uint64_t witness_stamp(struct witness *w) {
  return (2 * w->stamps++ + 1) * 0x9e3779b97f4a7c15u;
}

// The words at the block's begin that are written. The stamp's upper bits are evenly spread.
static inline size_t block_words(size_t bytes, uint64_t stamp) {
  bool whole = bytes < block_rules.touch || stamp >> (64 - BLOCK_WHOLE_BITS) == 0;
  return (whole ? bytes : block_rules.touch) / sizeof(uint64_t);
}

// The bytes at the block's end that are written: 8, or what the words have left of the block.
static inline size_t block_tail(size_t bytes, size_t words) {
  size_t rest = bytes - words * sizeof(uint64_t);
  return rest < sizeof(uint64_t) ? rest : sizeof(uint64_t);
}

// The stamp's lowest `tail` bytes, to the block's end or from there. The usual 8 are one access.
static inline void block_write_tail(void *p, size_t bytes, size_t tail, uint64_t stamp) {
  unsigned char *end = (unsigned char *)p + bytes - tail;
  if (tail == sizeof stamp) {
    __builtin_memcpy(end, &stamp, sizeof stamp);
    return;
  }
  for (size_t i = 0; i < tail; i++) end[i] = (unsigned char)(stamp >> (8 * i));
}
static inline uint64_t block_read_tail(const void *p, size_t bytes, size_t tail) {
  const unsigned char *end = (const unsigned char *)p + bytes - tail;
  uint64_t found = 0;
  if (tail == sizeof found) {
    __builtin_memcpy(&found, end, sizeof found);
    return found;
  }
  for (size_t i = 0; i < tail; i++) found |= (uint64_t)end[i] << (8 * i);
  return found;
}

// The first word is the stamp; the second, combined with it, the size; the others repeat the stamp.
static inline void block_write(void *p, size_t bytes, uint64_t stamp) {
  uint64_t *words = p;
  size_t n = block_words(bytes, stamp);
  words[0] = stamp;
  words[1] = stamp ^ bytes;
  for (size_t i = 2; i < n; i++) words[i] = stamp;
  block_write_tail(p, bytes, block_tail(bytes, n), stamp);
}

// The offset of the first word between the size and the tail that is not the stamp; 0: none.
static inline size_t block_find_damage(const uint64_t *words, size_t n, uint64_t stamp) {
  for (size_t i = 2; i < n; i++) {
    if (words[i] != stamp) return i * sizeof *words;
  }
  return 0;
}

// Notes the first damage that it finds. A damaged size was any of the range: the note says max.
static inline void block_verify(struct witness *w, const void *p, uint64_t stamp) {
  const uint64_t *words = p;
  size_t bytes = words[1] ^ stamp;
  if (words[0] != stamp) {
    witness_note(w, p, 0, stamp, words[0]);
    return;
  }
  if (bytes < block_rules.min || bytes > block_rules.max) {
    witness_note(w, p, sizeof *words, stamp ^ block_rules.max, words[1]);
    return;
  }
  size_t n = block_words(bytes, stamp), tail = block_tail(bytes, n);
  size_t damage = block_find_damage(words, n, stamp);
  if (damage != 0) {
    witness_note(w, p, damage, stamp, words[damage / sizeof *words]);
    return;
  }
  uint64_t expected = tail == sizeof stamp ? stamp : stamp & ~(UINT64_MAX << (8 * tail));
  uint64_t found = block_read_tail(p, bytes, tail);
  if (found != expected) witness_note(w, p, bytes - tail, expected, found);
}

// Checks what an allocating call returned.
static inline void block_accept(const void *p, size_t bytes, size_t alignment, const char *call) {
  if (p == NULL) fail(EXIT_BROKEN, "%s of %zu bytes returned NULL", call, bytes);
  if (((uintptr_t)p & (alignment - 1)) != 0) {
    fail(EXIT_BROKEN, "%s of %zu bytes returned %p, which is not aligned to %zu", call, bytes, p,
         alignment);
  }
}

// Writes the pattern. Returns the stamp, 0 if nothing is touched.
static inline uint64_t block_mark(struct witness *w, void *p, size_t bytes) {
  if (block_rules.touch == 0) return 0;
  uint64_t stamp = witness_stamp(w);
  block_write(p, bytes, stamp);
  return stamp;
}

// Reads it back, and clears the stamp: whoever owns the block too will notice.
static inline void block_check(struct witness *w, void *p, uint64_t stamp) {
  if (block_rules.touch == 0) return;
  block_verify(w, p, stamp);
  *(uint64_t *)p = 0;
}

static inline void *block_take(struct witness *w, size_t bytes, uint64_t *stamp) {
  void *p = malloc(bytes);
  block_accept(p, bytes, block_rules.touch != 0 ? BLOCK_ALIGNMENT : 1, "malloc");
  *stamp = block_mark(w, p, bytes);
  return p;
}

static inline void block_drop(struct witness *w, void *p, uint64_t stamp) {
  block_check(w, p, stamp);
  free(p);
}

#endif
