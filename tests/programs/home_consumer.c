// Sixteen threads allocate, one only frees: what it frees must serve the others again.
//
// Prints the peak of live bytes and of resident memory; fails when the second is over the first by
// more than the argument says, in per cent. The consumer never allocates: it is one of those threads that an allocator may forget.
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/memory.h"
#include "tests/support/random.h"

enum { PRODUCERS = 16, PLACES = 1 << 16, CALLS = 150000 };
static const size_t LIVE_EACH = (size_t)16 << 20; // per producer: 256 MiB in all

// One ring per producer, larger than its live set: it alone moves `head`, the consumer alone moves
// `tail`.
struct ring {
  _Alignas(128) _Atomic unsigned head;
  _Alignas(128) _Atomic unsigned tail;
  _Atomic size_t live;
  bool was_full; // the producer's: its live set has reached its size
  struct {
    void *p;
    size_t bytes;
  } places[PLACES];
};

static struct ring rings[PRODUCERS];
static _Atomic int producing = PRODUCERS, full;
static size_t live_peak; // the consumer's

static void wait_for_room(struct ring *ring, size_t bytes) {
  if (!ring->was_full) {
    ring->was_full = true;
    full++;
  }
  while (ring->live + bytes > LIVE_EACH) sched_yield();
}

static void *produce(void *argument) {
  struct ring *ring = argument;
  struct random_state random = random_start((uint64_t)(ring - rings));
  for (unsigned call = 0; call < CALLS; call++) {
    size_t bytes = random_between(&random, 64, call % 16 == 0 ? 8192 : 1024);
    if (ring->live + bytes > LIVE_EACH) wait_for_room(ring, bytes);
    void *p = malloc(bytes);
    CHECK(p != NULL, "no block of %zu bytes", bytes);
    memset(p, 1, bytes);
    CHECK(ring->head - ring->tail < PLACES, "the ring is too small for its live set");
    ring->live += bytes;
    ring->places[ring->head % PLACES].p = p;
    ring->places[ring->head % PLACES].bytes = bytes;
    ring->head++;
  }
  producing--;
  return NULL;
}

static bool consume_some(struct ring *ring) {
  unsigned taken = 0;
  for (; taken < 256 && ring->tail != ring->head; taken++) {
    size_t bytes = ring->places[ring->tail % PLACES].bytes;
    free(ring->places[ring->tail % PLACES].p);
    ring->live -= bytes;
    ring->tail++;
  }
  return taken > 0;
}

static size_t live_now(void) {
  size_t sum = 0;
  for (int i = 0; i < PRODUCERS; i++) sum += rings[i].live;
  return sum;
}

static void *consume(void *unused) {
  bool found = true, last_round = false;
  while (full < PRODUCERS) sched_yield(); // every live set fills first
  while (found || !last_round) {
    last_round = producing == 0; // read before the rings: what is in them now is all there will be
    size_t live = live_now();
    if (live > live_peak) live_peak = live;
    found = false;
    for (int i = 0; i < PRODUCERS; i++) found |= consume_some(&rings[i]);
    if (!found) sched_yield();
  }
  return unused;
}

int main(int argc, char **argv) {
  CHECK(argc == 2, "usage: home_consumer PERCENT");
  const size_t over = (size_t)atoi(argv[1]);
  pthread_t producers[PRODUCERS], consumer;
  memset(rings, 0, sizeof rings); // resident before the baseline is read
  size_t baseline = memory_resident();
  CHECK(pthread_create(&consumer, NULL, consume, NULL) == 0, "no thread");
  for (int i = 0; i < PRODUCERS; i++) {
    CHECK(pthread_create(&producers[i], NULL, produce, &rings[i]) == 0, "no thread");
  }
  for (int i = 0; i < PRODUCERS; i++) pthread_join(producers[i], NULL);
  pthread_join(consumer, NULL);
  size_t peak = memory_peak() - baseline;
  say("live peak %zu KiB, resident peak %zu KiB, ratio %.3f\n", live_peak / 1024, peak / 1024,
      (double)peak / (double)live_peak);
  CHECK(live_now() == 0, "%zu bytes were never freed", live_now());
  CHECK(peak < live_peak / 100 * (100 + over),
        "resident memory is more than %zu %% over what is live", over);
  say("ok\n");
  return 0;
}
