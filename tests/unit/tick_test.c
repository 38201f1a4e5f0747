// core/tick: when slow paths give memory back, with the clock set by hand.
#include "core/tick.h"

#include <pthread.h>
#include <sched.h>

#include "core/arena.h"
#include "core/large.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

static void start(void) {
  fake_os_install();
  hz_purge_idle_ms = 500;
  hz_large_cache_bytes = 64 * HZ_MIB;
  assert_true(hz_arena_start(256 * HZ_MIB));
}

static uint64_t dirty_bytes(void) {
  struct hz_arena_totals totals;
  hz_arena_read_totals(&totals);
  return totals.dirty_bytes;
}

static uint64_t large_segments(void) {
  struct hz_arena_totals totals;
  hz_arena_read_totals(&totals);
  return totals.large_segments;
}

static void free_some(void) {
  bool zero;
  void *base;
  hz_arena_give(hz_arena_take(10, 16));
  void *p = hz_large_take(5 * HZ_MIB, 16, &zero);
  struct hz_large *large = hz_large_of(p, &base);
  hz_large_give(large, base, p);
}

static void ticks_come_four_times_per_idle_time(void **state) {
  (void)state;
  start();
  hz_purge_idle_ms = 400;
  unsigned ticks = 0;
  for (int ms = 0; ms < 4000; ms++) {
    ticks += hz_tick() == HZ_TICK_PERIOD;
    fake_os_clock_add(1);
  }
  assert_int_equal(ticks, 40);
}

static void ticks_are_at_most_250_ms_apart(void **state) {
  (void)state;
  start();
  hz_purge_idle_ms = 60000;
  assert_int_equal(hz_tick(), HZ_TICK_PERIOD);
  fake_os_clock_add(249);
  assert_int_equal(hz_tick(), HZ_TICK_NONE);
  fake_os_clock_add(1);
  assert_int_equal(hz_tick(), HZ_TICK_PERIOD);
}

static void no_idle_time_is_a_tick_every_millisecond(void **state) {
  (void)state;
  start();
  hz_purge_idle_ms = 0;
  assert_int_equal(hz_tick(), HZ_TICK_PERIOD);
  assert_int_equal(hz_tick(), HZ_TICK_NONE);
  fake_os_clock_add(1);
  assert_int_equal(hz_tick(), HZ_TICK_PERIOD);
}

static void clock_that_stands_still_ticks_once(void **state) {
  (void)state;
  start();
  assert_int_equal(hz_tick(), HZ_TICK_PERIOD);
  for (int i = 0; i < 1000; i++) assert_int_equal(hz_tick(), HZ_TICK_NONE);
}

static void idle_memory_leaves_by_ticks_alone(void **state) {
  (void)state;
  start();
  hz_tick();
  free_some();
  assert_int_equal(large_segments(), 2);
  fake_os_clock_add(499);
  hz_tick();
  assert_int_equal(dirty_bytes(), 10 * HZ_SLAB_BYTES);
  assert_int_equal(large_segments(), 2);
  fake_os_clock_add(125); // at most a quarter of the idle time late
  hz_tick();
  assert_int_equal(dirty_bytes(), 0);
  assert_int_equal(large_segments(), 0);
}

static void work_that_does_not_fit_goes_on_a_millisecond_later(void **state) {
  (void)state;
  start();
  hz_tick();
  // One range of pages for every second slab: more calls than one tick may make.
  enum { RUNS = 4 * HZ_SEGMENT_SLABS };
  static struct hz_run *runs[RUNS];
  for (int i = 0; i < RUNS; i++) runs[i] = hz_arena_take(1, 16);
  for (int i = 0; i < RUNS; i += 2) hz_arena_give(runs[i]);
  fake_os_clock_add(1000);
  assert_int_equal(hz_tick(), HZ_TICK_PERIOD);
  uint64_t works = 1;
  for (; dirty_bytes() != 0; works++) {
    assert_int_equal(hz_tick(), HZ_TICK_NONE); // not in the same millisecond
    fake_os_clock_add(1);
    assert_int_equal(hz_tick(), HZ_TICK_REST);
    assert_true(fake_os_calls(FAKE_PURGE) <= (works + 1) * HZ_TICK_CALLS);
  }
  assert_true(works >= 2);
  assert_int_equal(fake_os_calls(FAKE_PURGE), RUNS / 2);
}

static void rest_that_the_line_asks_for_comes_once(void **state) {
  (void)state;
  start();
  hz_tick();
  hz_tick_rest();
  assert_int_equal(hz_tick(), HZ_TICK_NONE);
  fake_os_clock_add(1);
  assert_int_equal(hz_tick(), HZ_TICK_REST);
  fake_os_clock_add(1);
  assert_int_equal(hz_tick(), HZ_TICK_NONE);
}

static uint64_t told_ms;

static void remember(uint64_t now_ms) {
  told_ms = now_ms;
}

static void hook_is_told_the_time_of_every_tick(void **state) {
  (void)state;
  start();
  hz_tick_hook = remember;
  fake_os_clock(5000);
  hz_tick();
  assert_int_equal(told_ms, 5000);
  fake_os_clock(5001);
  hz_tick();
  assert_int_equal(told_ms, 5000);
}

static void purge_of_all_waits_for_nothing(void **state) {
  (void)state;
  start();
  free_some();
  assert_int_equal(hz_purge_all(), 10 * HZ_SLAB_BYTES + 5 * HZ_MIB);
  assert_int_equal(dirty_bytes(), 0);
  assert_int_equal(large_segments(), 0);
  assert_int_equal(hz_purge_all(), 0);
}

// ---- Threads -----------------------------------------------------------------------------------

enum { THREADS = 4 };
static atomic_uint ticks_of_all, waiting, round_of_all;

static void *tick_once_a_round(void *rounds) {
  for (unsigned round = 1; round <= *(unsigned *)rounds; round++) {
    atomic_fetch_add(&waiting, 1);
    while (atomic_load(&round_of_all) < round) sched_yield();
    atomic_fetch_add(&ticks_of_all, hz_tick() == HZ_TICK_PERIOD);
  }
  atomic_fetch_add(&waiting, 1);
  return NULL;
}

static void one_thread_of_many_does_the_work(void **state) {
  (void)state;
  start();
  unsigned rounds = 200;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, tick_once_a_round, &rounds), 0);
  for (unsigned round = 1; round <= rounds + 1; round++) {
    while (atomic_load(&waiting) < round * THREADS) sched_yield();
    assert_int_equal(atomic_load(&ticks_of_all), round - 1);
    fake_os_clock_add(125);
    atomic_store(&round_of_all, round);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ticks_come_four_times_per_idle_time),
      cmocka_unit_test(ticks_are_at_most_250_ms_apart),
      cmocka_unit_test(no_idle_time_is_a_tick_every_millisecond),
      cmocka_unit_test(clock_that_stands_still_ticks_once),
      cmocka_unit_test(idle_memory_leaves_by_ticks_alone),
      cmocka_unit_test(work_that_does_not_fit_goes_on_a_millisecond_later),
      cmocka_unit_test(rest_that_the_line_asks_for_comes_once),
      cmocka_unit_test(hook_is_told_the_time_of_every_tick),
      cmocka_unit_test(purge_of_all_waits_for_nothing),
      cmocka_unit_test(one_thread_of_many_does_the_work),
  };
  return isolated_run(tests, hz_count_of(tests));
}
