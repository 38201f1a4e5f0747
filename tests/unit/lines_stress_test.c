// Every line under threads that hand blocks around, come and go, and trim while others work: no
// block is given out twice, none is lost.
//
// TEST_SEED repeats a run as far as the scheduler allows; STRESS_STEPS sets the steps per thread.
#include "tests/unit/lines_machine.h"
#include "tests/unit/stress.h"

static void random_work_of_many_threads_loses_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = steps_wanted();
  line_start();
  work_together(work, THREADS, watch);
}

// Caches so small that most steps are slow paths. A line takes the rows that are its own.
static const struct hz_setting small_caches[] = {
    {"hz3", "shards", 3},
    {"hz3", "stash_slots", 2},
    {"hz4", "magazine_blocks", 4},
    {"hz4", "refill_blocks", 2},
    {"hz4", "packet_blocks", 5},
    {"hz4", "packets_bytes", 16 * HZ_KIB},
    {"hz4", "queue_bytes", 32 * HZ_KIB},
    {"purge", "idle_ms", 20},
};

static void small_caches_lose_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = steps_wanted();
  options_profile(&line->info->profiles[line->info->profile_count - 1]);
  for (size_t i = 0; i < hz_count_of(small_caches); i++)
    option_set(small_caches[i].section, small_caches[i].key, small_caches[i].value);
  line_start_as_set();
  work_together(work, THREADS, watch);
}

static void verified_frees_of_many_threads_lose_nothing(void **state) {
  (void)state;
  if (own_option("verify") == NULL) skip();
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = steps_wanted() / 4;
  options_default();
  own_option_set("verify", 1);
  line_start_as_set();
  work_together(work, THREADS, watch);
  assert_int_equal(count(HZ_COUNT_misuse_double) + count(HZ_COUNT_misuse_interior) +
                       count(HZ_COUNT_misuse_foreign),
                   0);
}

static void crowd_of_threads_loses_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = hz_max(steps_wanted() / 32, 100);
  line_start();
  work_together(work_in_crowd, CROWD, watch);
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
  block_fill(&new, hz_line_table(line)->usable_size(new.p), tag);
  *mine = new;
  return mine;
}

static void *only_allocate(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  const uint64_t wanted = steps_wanted() / 4;
  for (unsigned i = 0; i < wanted; i++) {
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
      cmocka_unit_test(small_caches_lose_nothing),
      cmocka_unit_test(verified_frees_of_many_threads_lose_nothing),
      cmocka_unit_test(crowd_of_threads_loses_nothing),
      cmocka_unit_test(threads_that_only_free_hold_little),
  };
  return lines_run(tests, hz_count_of(tests));
}
