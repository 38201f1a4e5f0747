// Threads that hand blocks around, come and go, and trim while others work: for the stress tests of
// all lines, and of one.
//
// TEST_SEED repeats a run as far as the scheduler allows; STRESS_STEPS sets the steps per thread.
// `line` and tests/support/line_machine.h are there already.
#ifndef TESTS_UNIT_STRESS_H
#define TESTS_UNIT_STRESS_H

#include "tests/support/line_machine.h"
#include "tests/unit/isolated.h"

enum {
  THREADS = 6,
  CROWD = 138, // more threads than any line has shards, locks or lanes: some share one
  OWN = 150,   // blocks that a thread keeps to itself
  OWN_IN_CROWD = 12,
  EXCHANGE = 512, // places through which blocks change hands
  EPOCH = 500,    // steps between two rare things
  DEFAULT_STEPS = SANITIZED  ? 3000
                  : HZ_DEBUG ? 12000
                             : 40000,
};

// A block in a place belongs to whoever swaps it out.
static _Atomic(struct block *) exchange[EXCHANGE];
static atomic_bool over;
static uint64_t steps_per_thread = DEFAULT_STEPS;

static inline uint64_t steps_wanted(void) {
  const char *text = getenv("STRESS_STEPS");
  return text != NULL ? strtoull(text, NULL, 0) : DEFAULT_STEPS;
}

// ---- Blocks change hands ------------------------------------------------------------------------

// The records of blocks on their way are blocks of the line themselves.
static inline void take_down(struct block *theirs) {
  if (theirs == NULL) return;
  block_give(theirs);
  give(theirs);
}

static inline void hand_over(struct random_state *random) {
  struct block *mine = take(sizeof *mine), new = {0};
  CHECK(mine != NULL && block_take(&new, random), "no memory");
  *mine = new;
  take_down(atomic_exchange(&exchange[random_between(random, 0, EXCHANGE - 1)], mine));
}

static inline void empty_exchange(void) {
  for (int i = 0; i < EXCHANGE; i++) take_down(atomic_exchange(&exchange[i], NULL));
}

// ---- Work ---------------------------------------------------------------------------------------

static inline void *come_and_go(void *seed) {
  struct random_state random = random_start(*(uint64_t *)seed);
  struct block mine[20] = {0};
  for (int i = 0; i < 100; i++) {
    CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
    hand_over(&random);
  }
  blocks_give(mine, hz_count_of(mine));
  return NULL;
}

static inline void rare_thing(struct random_state *random) {
  uint64_t seed = random_next(random);
  switch (random_between(random, 0, 3)) {
  case 0:
    line->trim(0);
    break;
  case 1:
    in_thread(come_and_go, &seed);
    break;
  default:
    fake_os_clock_add(random_between(random, 1, 400)); // packets go, idle memory leaves
    break;
  }
}

static inline void work_for(struct random_state *random, struct block *mine, size_t places) {
  for (uint64_t step = 1; step <= steps_per_thread; step++) {
    if (random_next(random) % 3 == 0) hand_over(random);
    else CHECK(random_step(mine, places, random), "no memory");
    if (step % EPOCH == 0) rare_thing(random);
  }
  blocks_give(mine, places);
}

static inline void *work(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  static __thread struct block mine[OWN];
  work_for(&random, mine, OWN);
  return NULL;
}

static inline void *work_in_crowd(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  struct block mine[OWN_IN_CROWD] = {0};
  give(take(1)); // all have a heap before the first ends
  atomic_fetch_add(&turn, 1);
  wait_turn(CROWD);
  work_for(&random, mine, OWN_IN_CROWD);
  return NULL;
}

// Reads what any tool may read while the others work.
static inline void *watch(void *unused) {
  (void)unused;
  while (!atomic_load(&over)) {
    const struct hz_gauges now = gauges();
    CHECK(now.live_bytes < 16 * HZ_GIB, "live_bytes is %llu", (unsigned long long)now.live_bytes);
    CHECK(now.cached_bytes <= now.live_bytes, "more cached than live");
    sched_yield();
  }
  return NULL;
}

// `beside` runs, in two threads, until all workers have ended.
static inline void work_together(void *(*run)(void *), unsigned threads, void *(*beside)(void *)) {
  static pthread_t workers[CROWD];
  const uint64_t seed = seed_told();
  pthread_t one = thread_start(beside, (void *)(uintptr_t)(seed + 1000));
  pthread_t other = thread_start(beside, NULL);
  for (unsigned i = 0; i < threads; i++)
    workers[i] = thread_start(run, (void *)(uintptr_t)(seed + i));
  for (unsigned i = 0; i < threads; i++) pthread_join(workers[i], NULL);
  atomic_store(&over, true);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  empty_exchange();
  check_nothing_lost();
}

#endif
