// A small random generator whose seed is printed, so that a failed run can be repeated.
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct random_state {
  uint64_t value;
};

// Spreads consecutive seeds (splitmix64), so that thread n may use seed + n.
static inline struct random_state random_start(uint64_t seed) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  struct random_state state = {(z ^ (z >> 31)) | 1};
  return state;
}

static inline uint64_t random_next(struct random_state *state) {
  uint64_t x = state->value;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  state->value = x;
  return x * 0x2545f4914f6cdd1du;
}

// A number in [low, high].
static inline size_t random_between(struct random_state *state, size_t low, size_t high) {
  return low + (size_t)((random_next(state) >> 16) % (high - low + 1));
}

// The seed named by `text`, else by TEST_SEED, else a new one.
static inline uint64_t random_seed(const char *text) {
  if (text == NULL) text = getenv("TEST_SEED");
  if (text != NULL) return strtoull(text, NULL, 0);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_nsec * 2654435761u ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid();
}

#endif
