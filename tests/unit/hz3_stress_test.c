// hz3 under threads that hand blocks around, come and go, and trim while others work: no block is
// given out twice, none is lost.
//
// TEST_SEED repeats a run as far as the scheduler allows; STRESS_STEPS sets the steps per thread.
#include "tests/unit/hz3_machine.h"

enum {
  THREADS = 6,
  OWN = 150,      // blocks that a thread keeps to itself
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

static uint64_t steps_wanted(void) {
  const char *text = getenv("STRESS_STEPS");
  return text != NULL ? strtoull(text, NULL, 0) : DEFAULT_STEPS;
}

// The records of blocks on their way are blocks of hz3 themselves.
static void hand_over(struct random_state *random) {
  struct block *mine = take(sizeof *mine), new = {0};
  CHECK(mine != NULL && block_take(&new, random), "no memory");
  *mine = new;
  struct block *theirs = atomic_exchange(&exchange[random_between(random, 0, EXCHANGE - 1)], mine);
  if (theirs == NULL) return;
  block_give(theirs);
  give(theirs);
}

static void *come_and_go(void *seed) {
  struct random_state random = random_start(*(uint64_t *)seed);
  struct block mine[20] = {0};
  for (int i = 0; i < 100; i++) {
    CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
    hand_over(&random);
  }
  blocks_give(mine, hz_count_of(mine));
  return NULL;
}

static void rare_thing(struct random_state *random) {
  uint64_t seed = random_next(random);
  switch (random_between(random, 0, 3)) {
  case 0:
    hz3_line.trim(0);
    break;
  case 1:
    in_thread(come_and_go, &seed);
    break;
  default:
    fake_os_clock_add(random_between(random, 1, 400));
    break; // idle memory leaves
  }
}

static void *work(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  static __thread struct block mine[OWN];
  for (uint64_t step = 1; step <= steps_per_thread; step++) {
    if (random_next(&random) % 3 == 0) hand_over(&random);
    else CHECK(random_step(mine, OWN, &random), "no memory");
    if (step % EPOCH == 0) rare_thing(&random);
  }
  blocks_give(mine, OWN);
  return NULL;
}

// Reads what any tool may read while the others work.
static void *watch(void *unused) {
  (void)unused;
  while (!atomic_load(&over)) {
    const struct hz_gauges now = gauges();
    CHECK(now.live_bytes < 16 * HZ_GIB, "live_bytes is %llu", (unsigned long long)now.live_bytes);
    CHECK(now.cached_bytes <= now.live_bytes, "more cached than live");
    sched_yield();
  }
  return NULL;
}

static void empty_exchange(void) {
  for (int i = 0; i < EXCHANGE; i++) {
    struct block *block = atomic_exchange(&exchange[i], NULL);
    if (block == NULL) continue;
    block_give(block);
    give(block);
  }
}

static void work_together(void) {
  pthread_t threads[THREADS], watcher;
  const uint64_t seed = seed_told();
  steps_per_thread = steps_wanted();
  assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
  for (unsigned i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(seed + i)), 0);
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  atomic_store(&over, true);
  pthread_join(watcher, NULL);
  empty_exchange();
  check_nothing_lost();
}

static void random_work_of_many_threads_loses_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  line_start();
  work_together();
}

static void small_caches_and_shared_shards_lose_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  options_profile(&hz3_info.profiles[hz3_info.profile_count - 1]);
  option_set("hz3", "shards", 3);
  option_set("hz3", "stash_slots", 2);
  option_set("purge", "idle_ms", 20);
  line_start_as_set();
  work_together();
}

// One thread allocates, the others only free, and the other way round.
static atomic_uint produced, consumed;

static void *only_free(void *unused) {
  (void)unused;
  while (!atomic_load(&over) || atomic_load(&consumed) < atomic_load(&produced))
    for (int i = 0; i < EXCHANGE; i++) {
      struct block *block = atomic_exchange(&exchange[i], NULL);
      if (block == NULL) continue;
      block_give(block);
      give(block);
      atomic_fetch_add(&consumed, 1);
    }
  return NULL;
}

static void *only_allocate(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  const uint64_t blocks = steps_wanted() / 4;
  for (uint64_t i = 0; i < blocks;) {
    _Atomic(struct block *) *place = &exchange[random_between(&random, 0, EXCHANGE - 1)];
    if (atomic_load(place) != NULL) {
      sched_yield();
      continue;
    }
    struct block *mine = take(sizeof *mine), new = {0}, *nobody = NULL;
    new.p = take(random_between(&random, 1, 2000));
    CHECK(mine != NULL && new.p != NULL, "no memory");
    block_fill(&new, hz3_line.table.usable_size(new.p), (unsigned)i);
    *mine = new;
    atomic_fetch_add(&produced, 1);
    if (atomic_compare_exchange_strong(place, &nobody, mine)) {
      i++;
      continue;
    }
    atomic_fetch_add(&consumed, 1);
    block_give(mine);
    give(mine);
  }
  return NULL;
}

static void threads_that_only_free_hold_little(void **state) {
  (void)state;
  line_start();
  pthread_t makers[3], consumer;
  const uint64_t seed = seed_told();
  assert_int_equal(pthread_create(&consumer, NULL, only_free, NULL), 0);
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&makers[i], NULL, only_allocate, (void *)(seed + i)), 0);
  for (unsigned i = 0; i < 3; i++) pthread_join(makers[i], NULL);
  atomic_store(&over, true);
  pthread_join(consumer, NULL);
  assert_int_equal(atomic_load(&produced), atomic_load(&consumed));
  // At most 512 blocks of 2 KB lived at a time; the rest is what caches may hold.
  assert_true(hz_counter_read(HZ_COUNT_committed) < 128 * HZ_MIB);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_work_of_many_threads_loses_nothing),
      cmocka_unit_test(small_caches_and_shared_shards_lose_nothing),
      cmocka_unit_test(threads_that_only_free_hold_little),
  };
  return isolated_run(tests, hz_count_of(tests));
}
