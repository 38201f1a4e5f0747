// hz4 under threads that hand blocks around, come and go, move pages between heaps, and trim while
// others work: no block is given out twice, none is lost.
//
// TEST_SEED repeats a run as far as the scheduler allows; STRESS_STEPS sets the steps per thread.
#include "tests/unit/hz4_machine.h"

enum {
  THREADS = 6,
  CROWD = 2 * HZ4_LOCKS + 10, // more heaps than locks: some share one, and a lane of packets
  OWN = 150,                  // blocks that a thread keeps to itself
  OWN_IN_CROWD = 12,
  EXCHANGE = 512, // places through which blocks change hands
  EPOCH = 500,    // steps between two rare things
  DEFAULT_STEPS = SANITIZED  ? 3000
                  : HZ_DEBUG ? 8000
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

// The records of blocks on their way are blocks of hz4 themselves.
static void take_down(struct block *theirs) {
  if (theirs == NULL) return;
  block_give(theirs);
  give(theirs);
}

static void hand_over(struct random_state *random) {
  struct block *mine = take(sizeof *mine), new = {0};
  CHECK(mine != NULL && block_take(&new, random), "no memory");
  *mine = new;
  take_down(atomic_exchange(&exchange[random_between(random, 0, EXCHANGE - 1)], mine));
}

static void empty_exchange(void) {
  for (int i = 0; i < EXCHANGE; i++) take_down(atomic_exchange(&exchange[i], NULL));
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

static void work_for(struct random_state *random, struct block *mine, size_t places) {
  for (uint64_t step = 1; step <= steps_per_thread; step++) {
    if (random_next(random) % 3 == 0) hand_over(random);
    else CHECK(random_step(mine, places, random), "no memory");
    if (step % EPOCH == 0) rare_thing(random);
  }
  blocks_give(mine, places);
}

static void *work(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  static __thread struct block mine[OWN];
  work_for(&random, mine, OWN);
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

// `beside` runs until all workers have ended.
static void work_together(void *(*run)(void *), unsigned threads, void *(*beside)(void *)) {
  static pthread_t workers[CROWD];
  const uint64_t seed = seed_told();
  pthread_t one = thread_start(beside, (void *)(seed + 1000)), other = thread_start(beside, NULL);
  for (unsigned i = 0; i < threads; i++)
    workers[i] = thread_start(run, (void *)(uintptr_t)(seed + i));
  for (unsigned i = 0; i < threads; i++) pthread_join(workers[i], NULL);
  atomic_store(&over, true);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  empty_exchange();
  check_nothing_lost();
}

static void random_work_of_many_threads_loses_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = steps_wanted();
  line_start();
  work_together(work, THREADS, watch);
}

static void small_magazines_packets_and_queues_lose_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = steps_wanted();
  options_profile(&hz4_info.profiles[hz4_info.profile_count - 1]);
  option_set("hz4", "magazine_blocks", 4);
  option_set("hz4", "refill_blocks", 2);
  option_set("hz4", "packet_blocks", 5);
  option_set("hz4", "packets_bytes", 16 * HZ_KIB);
  option_set("hz4", "queue_bytes", 32 * HZ_KIB);
  option_set("purge", "idle_ms", 20);
  line_start_as_set();
  work_together(work, THREADS, watch);
}

static void verified_frees_of_many_threads_lose_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = steps_wanted() / 4;
  options_default();
  option_set("hz4", "verify", 1);
  line_start_as_set();
  work_together(work, THREADS, watch);
  assert_int_equal(count(HZ_COUNT_misuse_double) + count(HZ_COUNT_misuse_foreign), 0);
}

// ---- More heaps than locks ----------------------------------------------------------------------

static void *work_in_crowd(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  struct block mine[OWN_IN_CROWD] = {0};
  give(take(1)); // all have a heap before the first ends
  atomic_fetch_add(&turn, 1);
  wait_turn(CROWD);
  work_for(&random, mine, OWN_IN_CROWD);
  return NULL;
}

static struct hz4_heap *random_heap(struct random_state *random) {
  struct hz4_heap *heap = hz4_heaps_all();
  for (size_t i = random_between(random, 0, CROWD); i > 0 && heap != NULL; i--) heap = heap->next;
  return heap;
}

// What a thread does that finds no memory: attended or not, heaps lose pages to others. Both
// threads do it, in both directions, between any two heaps, those of one lock included.
static void *move_pages(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  while (!atomic_load(&over)) {
    struct hz4_heap *from = random_heap(&random), *to = random_heap(&random);
    const unsigned class_id = (unsigned)random_between(&random, 0, HZ_CLASS_COUNT - 1);
    if (from == NULL || to == NULL) continue;
    hz4_pages_move(from, to, class_id, true);
    hz4_pages_move(to, from, class_id, random_next(&random) % 2 == 0);
    sched_yield();
  }
  return NULL;
}

static void pages_that_change_hands_in_a_crowd_lose_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = hz_max(steps_wanted() / 16, 100);
  line_start();
  work_together(work_in_crowd, CROWD, move_pages);
  assert_true(heap_count() >= CROWD);
  assert_true(count(HZ_COUNT_taken_over) > 0);
}

// ---- A pipeline ---------------------------------------------------------------------------------

// One thread allocates, the others only free, and the other way round.
static atomic_uint produced, consumed;

static void *only_free(void *unused) {
  (void)unused;
  while (!atomic_load(&over) || atomic_load(&consumed) < atomic_load(&produced))
    for (int i = 0; i < EXCHANGE; i++) {
      struct block *block = atomic_exchange(&exchange[i], NULL);
      if (block == NULL) continue;
      take_down(block);
      atomic_fetch_add(&consumed, 1);
    }
  return NULL;
}

static struct block *make(struct random_state *random, unsigned tag) {
  struct block *mine = take(sizeof *mine), new = {.p = take(random_between(random, 1, 2000))};
  CHECK(mine != NULL && new.p != NULL, "no memory");
  block_fill(&new, line->table.usable_size(new.p), tag);
  *mine = new;
  return mine;
}

static void *only_allocate(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  const uint64_t blocks = steps_wanted() / 4;
  for (unsigned i = 0; i < blocks; i++) {
    struct block *mine = make(&random, i), *nobody = NULL;
    atomic_fetch_add(&produced, 1);
    for (size_t at = i; !atomic_compare_exchange_strong(&exchange[at % EXCHANGE], &nobody, mine);
         at++) {
      nobody = NULL;
      if (at % EXCHANGE == 0) sched_yield();
    }
  }
  return NULL;
}

static void threads_that_only_free_hold_little(void **state) {
  (void)state;
  line_start();
  pthread_t makers[3];
  const uint64_t seed = seed_told();
  const pthread_t consumer = thread_start(only_free, NULL);
  for (unsigned i = 0; i < 3; i++)
    makers[i] = thread_start(only_allocate, (void *)(uintptr_t)(seed + i));
  for (unsigned i = 0; i < 3; i++) pthread_join(makers[i], NULL);
  atomic_store(&over, true);
  pthread_join(consumer, NULL);
  assert_int_equal(atomic_load(&produced), atomic_load(&consumed));
  // At most 512 blocks of 2 KB lived at a time; the rest is what caches may hold.
  assert_true(count(HZ_COUNT_committed) < 128 * HZ_MIB);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_work_of_many_threads_loses_nothing),
      cmocka_unit_test(small_magazines_packets_and_queues_lose_nothing),
      cmocka_unit_test(verified_frees_of_many_threads_lose_nothing),
      cmocka_unit_test(pages_that_change_hands_in_a_crowd_lose_nothing),
      cmocka_unit_test(threads_that_only_free_hold_little),
  };
  return isolated_run(tests, hz_count_of(tests));
}
