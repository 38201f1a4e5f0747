// Threads that allocate, resize, free and hand blocks to each other, every byte checked.
//
// Arguments: seed, calls per thread (100,000), threads (8), generations (4). A generation is a set
// of threads that ends before the next begins; blocks outlive it in the mailboxes. The seed of a
// run is printed; the same seed makes the same calls, though threads meet differently.
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"

enum { SLOTS = 256, MAILBOXES = 1024, MOST_THREADS = 64 };

// The head of a block; the pattern fills the rest and depends on both values.
struct block {
  size_t bytes;
  unsigned tag;
};

struct worker {
  pthread_t thread;
  unsigned calls;
  uint64_t seed;
  struct random_state random;
  struct block *slots[SLOTS];
};

static struct block *_Atomic mailboxes[MAILBOXES];

static size_t draw_size(struct random_state *random) {
  static const size_t tops[] = {32, 64, 128, 256, 512, 1024, 4096, 16384};
  size_t pick = random_between(random, 0, 9999);
  size_t top = pick < 2 ? 8 << 20 : pick < 30 ? 1 << 20 : pick < 300 ? 131072 : tops[pick % 8];
  return random_between(random, sizeof(struct block), top);
}

static void seal(struct block *block, size_t bytes, unsigned tag) {
  CHECK(block != NULL, "no block of %zu bytes", bytes);
  CHECK(((uintptr_t)block & 15) == 0, "%p is not 16-aligned", (void *)block);
  *block = (struct block){bytes, tag};
  pattern_fill(block + 1, bytes - sizeof *block, tag);
}

static void inspect(const struct block *block, size_t filled, size_t kept) {
  if (kept <= sizeof *block) return;
  size_t all = filled - sizeof *block, part = kept - sizeof *block;
  size_t intact = pattern_intact(block + 1, all, part, block->tag);
  CHECK(intact == part, "%p: byte %zu of a block of %zu bytes changed", (const void *)block, intact,
        filled);
}

static struct block *make(struct random_state *random) {
  size_t bytes = draw_size(random), align = (size_t)16 << random_between(random, 0, 9);
  unsigned tag = (unsigned)random_next(random);
  struct block *block;
  switch (random_between(random, 0, 9)) {
  case 0:
    block = calloc(1, bytes);
    for (size_t i = 0; block != NULL && i < bytes; i += 1 + bytes / 512) {
      CHECK(((char *)block)[i] == 0, "calloc of %zu bytes: byte %zu is not 0", bytes, i);
    }
    break;
  case 1:
    block = memalign(align, bytes);
    CHECK(((uintptr_t)block & (align - 1)) == 0, "%p is not aligned to %zu", (void *)block, align);
    break;
  default:
    block = malloc(bytes);
  }
  seal(block, bytes, tag);
  CHECK(malloc_usable_size(block) >= bytes, "usable_size of a block of %zu bytes is %zu", bytes,
        malloc_usable_size(block));
  return block;
}

static void discard(struct block *block) {
  if (block == NULL) return;
  inspect(block, block->bytes, block->bytes);
  free(block);
}

static struct block *resize(struct block *block, struct random_state *random) {
  size_t was = block->bytes, bytes = draw_size(random);
  block = realloc(block, bytes);
  CHECK(block != NULL, "realloc from %zu to %zu bytes gave NULL", was, bytes);
  inspect(block, was, was < bytes ? was : bytes);
  seal(block, bytes, (unsigned)random_next(random));
  return block;
}

static void step(struct worker *worker) {
  struct random_state *random = &worker->random;
  struct block **slot = &worker->slots[random_between(random, 0, SLOTS - 1)];
  if (*slot == NULL) {
    *slot = make(random);
    return;
  }
  size_t choice = random_between(random, 0, 9);
  if (choice < 4) { // hand it over, free what lay there
    unsigned box = (unsigned)random_between(random, 0, MAILBOXES - 1);
    discard(atomic_exchange(&mailboxes[box], *slot));
    *slot = NULL;
  } else if (choice < 5) { // adopt somebody else's
    struct block *found =
        atomic_exchange(&mailboxes[random_between(random, 0, MAILBOXES - 1)], NULL);
    discard(*slot);
    *slot = found;
  } else if (choice < 7) {
    *slot = resize(*slot, random);
  } else {
    discard(*slot);
    *slot = NULL;
  }
}

static void *work(void *argument) {
  struct worker *worker = argument;
  worker->random = random_start(worker->seed);
  for (unsigned call = 0; call < worker->calls; call++) step(worker);
  for (int i = 0; i < SLOTS; i++) {
    if (i % 2 == 0) {
      discard(worker->slots[i]);
    } else { // what is left in the mailboxes outlives its thread
      discard(atomic_exchange(&mailboxes[(worker->seed * SLOTS + (size_t)i) % MAILBOXES],
                              worker->slots[i]));
    }
    worker->slots[i] = NULL;
  }
  return NULL;
}

int main(int argc, char **argv) {
  static struct worker workers[MOST_THREADS];
  uint64_t seed = random_seed(argc > 1 ? argv[1] : NULL);
  unsigned calls = argc > 2 ? (unsigned)atoi(argv[2]) : 100000;
  int threads = argc > 3 ? atoi(argv[3]) : 8, generations = argc > 4 ? atoi(argv[4]) : 4;
  CHECK(threads >= 1 && threads <= MOST_THREADS, "%d threads, expected 1 to 64", threads);
  say("seed %llu, %u calls, %d threads, %d generations\n", (unsigned long long)seed, calls, threads,
      generations);
  for (int generation = 0; generation < generations; generation++) {
    for (int i = 0; i < threads; i++) {
      workers[i].calls = calls;
      workers[i].seed = seed + (uint64_t)(generation * threads + i);
      CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
    }
    for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
  }
  for (int i = 0; i < MAILBOXES; i++) discard(mailboxes[i]);
  say("ok\n");
  return 0;
}
