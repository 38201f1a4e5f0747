// Memory goes back to the kernel. Arguments: how (trim, idle, idle_large), mix (small, mixed,
// large, huge, every_second), number of threads that allocate (1).
//
// 200 MiB are filled and freed (every_second: half of them). trim: malloc_trim(0) gives back at
// least 90 % of what is free. idle: so does time, seen by a program that goes on allocating a
// little now and then; here waiting is what is tested. idle_large: the only calls meanwhile are for
// blocks larger than all that were freed.
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/memory.h"
#include "tests/support/random.h"

enum { MOST_BLOCKS = 4 << 20, MOST_THREADS = 8, WAITS = 400, WAIT_MS = 50 };
static const size_t TOTAL_BYTES = (size_t)200 << 20;

static const struct mix {
  const char *name;
  size_t low, high;
  unsigned free_every;
} mixes[] = {
    {"small", 64, 512, 1},
    {"mixed", 16, 32768, 1},
    {"large", 100 << 10, 8 << 20, 1},
    {"huge", 5 << 20, 20 << 20, 1},
    {"every_second", 20 << 10, 20 << 10, 2},
};

// A part of the blocks, filled and freed by one thread.
struct part {
  const struct mix *mix;
  void **blocks;
  size_t count, total_bytes;
  uint64_t seed;
};

static void *blocks[MOST_BLOCKS];

static void *fill(void *argument) {
  struct part *part = argument;
  struct random_state random = random_start(part->seed);
  for (size_t filled = 0; filled < part->total_bytes; part->count++) {
    size_t bytes = random_between(&random, part->mix->low, part->mix->high);
    void *p = malloc(bytes);
    CHECK(p != NULL, "no block of %zu bytes", bytes);
    memset(p, 1, bytes);
    part->blocks[part->count] = p;
    filled += bytes;
  }
  return NULL;
}

static void fill_in_threads(struct part *parts, int threads, const struct mix *mix) {
  pthread_t ids[MOST_THREADS];
  for (int i = 0; i < threads; i++) {
    parts[i] = (struct part){mix, blocks + i * (MOST_BLOCKS / threads), 0,
                             TOTAL_BYTES / (size_t)threads, (uint64_t)i};
    if (threads == 1) {
      fill(&parts[i]);
    } else {
      CHECK(pthread_create(&ids[i], NULL, fill, &parts[i]) == 0, "no thread");
    }
  }
  for (int i = 0; threads > 1 && i < threads; i++) pthread_join(ids[i], NULL);
}

// Frees what the mix says. Returns the bytes of what it frees.
static size_t free_blocks(const struct part *parts, int threads) {
  size_t freed = 0;
  for (int i = 0; i < threads; i++) {
    for (size_t j = 0; j < parts[i].count; j += parts[i].mix->free_every) {
      freed += malloc_usable_size(parts[i].blocks[j]);
      free(parts[i].blocks[j]);
    }
  }
  return freed;
}

static void require_given_back(const char *by, size_t full, size_t freed) {
  size_t now = memory_resident(), given = full > now ? full - now : 0;
  say("%s: %zu KiB freed, %zu KiB given back\n", by, freed / 1024, given / 1024);
  CHECK(given >= freed / 10 * 9, "%s gave back %zu KiB of %zu KiB, expected 90 %%", by,
        given / 1024, freed / 1024);
}

// Enough calls to leave the fast paths: 2 MiB of blocks, taken and returned.
static void allocate_a_little(void) {
  static void *few[4096];
  for (int i = 0; i < 4096; i++) few[i] = malloc(512);
  for (int i = 0; i < 4096; i++) free(few[i]);
}

static void allocate_large(void) {
  free(opaque(malloc((size_t)300 << 20)));
}

static void wait_until_given_back(size_t full, size_t freed, void (*meanwhile)(void)) {
  for (int i = 0; i < WAITS && memory_resident() + freed / 10 * 9 > full; i++) {
    sleep_ms(WAIT_MS);
    meanwhile();
  }
  require_given_back("idle time", full, freed);
}

static const struct mix *mix_named(const char *name) {
  for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) {
    if (strcmp(mixes[i].name, name) == 0) return &mixes[i];
  }
  FAIL("mix '%s' is not one of small, mixed, large, huge, every_second", name);
}

int main(int argc, char **argv) {
  CHECK(argc == 3 || argc == 4, "usage: home_shrink trim|idle|idle_large MIX [THREADS]");
  struct part parts[MOST_THREADS] = {0};
  int threads = argc == 4 ? atoi(argv[3]) : 1;
  CHECK(threads >= 1 && threads <= MOST_THREADS, "%d threads, expected 1 to 8", threads);
  memset(blocks, 1, sizeof blocks); // resident before anything is measured
  fill_in_threads(parts, threads, mix_named(argv[2]));
  size_t full = memory_resident(), freed = free_blocks(parts, threads);
  if (strcmp(argv[1], "trim") == 0) {
    malloc_trim(0);
    require_given_back("malloc_trim", full, freed);
  } else {
    wait_until_given_back(full, freed,
                          strcmp(argv[1], "idle") == 0 ? allocate_a_little : allocate_large);
  }
  say("ok\n");
  return 0;
}
