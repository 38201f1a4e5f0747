// lines/hz6 under many threads with the entries that are not its default ones: processors' caches,
// and owners. What every line does is in lines_stress_test.c.
//
// TEST_SEED repeats a run as far as the scheduler allows; STRESS_STEPS sets the steps per thread.
#include "tests/unit/hz6_machine.h"
#include "tests/unit/stress.h"

static void start_small(const char *key) {
  core_options.reserve_bytes = 16 * HZ_GIB;
  core_options.run_transfer = 100;
  steps_per_thread = steps_wanted() / 2;
  options_default();
  option_set("hz6", key, 1);
  // So that most steps are slow paths.
  option_set("hz6", "front_blocks", 4);
  option_set("hz6", "refill_blocks", 3);
  option_set("hz6", "transfer_bytes", 64 * HZ_KIB);
  option_set("purge", "idle_ms", 20);
  line_start_as_set();
}

static void processors_caches_lose_nothing(void **state) {
  (void)state;
  start_small("per_cpu");
  if (!hz6_policy.per_cpu) skip();
  work_together(work, THREADS, watch);
  assert_int_equal(refused(), 0);
}

// Threads are interrupted in the middle of their sequences all the time.
static void crowd_on_few_processors_loses_nothing(void **state) {
  (void)state;
  start_small("per_cpu");
  if (!hz6_policy.per_cpu) skip();
  steps_per_thread = hz_max(steps_wanted() / 16, 100);
  work_together(work_in_crowd, CROWD, watch);
  assert_int_equal(refused(), 0);
}

static void owners_lose_nothing(void **state) {
  (void)state;
  start_small("owners");
  work_together(work, THREADS, watch);
  assert_int_equal(refused(), 0);
  assert_true(count(HZ_COUNT_remote_frees) > 0);
}

static void thread_caches_with_slow_steps_lose_nothing(void **state) {
  (void)state;
  start_small("growth_room");
  work_together(work, THREADS, watch);
  assert_int_equal(refused(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(processors_caches_lose_nothing),
      cmocka_unit_test(crowd_on_few_processors_loses_nothing),
      cmocka_unit_test(owners_lose_nothing),
      cmocka_unit_test(thread_caches_with_slow_steps_lose_nothing),
  };
  return isolated_run(tests, hz_count_of(tests));
}
