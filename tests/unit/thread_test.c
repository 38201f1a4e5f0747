// core/thread: slots, exits, and what is left of threads that a fork did not copy.
#include "core/thread.h"

#include <pthread.h>
#include <sched.h>

#include "core/arena.h"
#include "core/counter.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

static __thread struct hz_thread mine;
static atomic_uint exits, go, ready;
static _Atomic(struct hz_thread *) last_exit;
static atomic_bool exit_in_own_thread;

static void on_exit_of(struct hz_thread *thread) {
  atomic_fetch_add(&exits, 1);
  atomic_store(&exit_in_own_thread, thread == &mine);
  atomic_store(&last_exit, thread);
  hz_thread_detach(thread);
}

static void start(void) {
  fake_os_install();
  assert_true(hz_arena_start(64 * HZ_MIB)); // the fork handlers look at it
  assert_true(hz_thread_start());
  hz_threads_on_exit(on_exit_of);
}

static void wait_for(atomic_uint *what, unsigned value) {
  while (atomic_load(what) != value) sched_yield();
}

static pthread_t begin(void *(*run)(void *), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
  return thread;
}

// ---- Slots -------------------------------------------------------------------------------------

static void slots_are_dense_and_the_lowest_free_one_is_next(void **state) {
  (void)state;
  enum { COUNT = 200 };
  static struct hz_thread threads[COUNT];
  start();
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_true(hz_thread_attach(&threads[i]));
    assert_int_equal(threads[i].slot, i);
    assert_int_equal(hz_thread_count(), i + 1);
  }
  hz_thread_detach(&threads[150]);
  hz_thread_detach(&threads[3]);
  hz_thread_detach(&threads[64]);
  const uint32_t freed[] = {3, 64, 150, COUNT};
  static struct hz_thread again[hz_count_of(freed)];
  for (unsigned i = 0; i < hz_count_of(freed); i++) {
    assert_true(hz_thread_attach(&again[i]));
    assert_int_equal(again[i].slot, freed[i]);
  }
  assert_int_equal(hz_thread_count(), COUNT + 1);
  assert_int_equal(hz_counter_read(HZ_COUNT_threads_started), COUNT + hz_count_of(freed));
}

static void every_slot_can_be_taken_and_one_more_is_refused(void **state) {
  (void)state;
  start();
  struct hz_thread *threads = calloc(HZ_THREAD_SLOTS + 1, sizeof *threads);
  for (uint32_t i = 0; i < HZ_THREAD_SLOTS; i++)
    if (!hz_thread_attach(&threads[i])) fail_msg("no slot for thread %u", i);
  assert_false(hz_thread_attach(&threads[HZ_THREAD_SLOTS]));
  assert_int_equal(hz_thread_count(), HZ_THREAD_SLOTS);
  hz_thread_detach(&threads[40000]);
  assert_true(hz_thread_attach(&threads[HZ_THREAD_SLOTS]));
  assert_int_equal(threads[HZ_THREAD_SLOTS].slot, 40000);
  free(threads);
}

static void no_memory_for_a_slot_is_refused_and_comes_later(void **state) {
  (void)state;
  start();
  fake_os_fail_from(FAKE_MAP, 1);
  assert_false(hz_thread_attach(&mine));
  assert_int_equal(hz_thread_count(), 0);
  fake_os_fail_from(FAKE_MAP, 0);
  assert_true(hz_thread_attach(&mine));
}

// ---- Exit --------------------------------------------------------------------------------------

static void *attach_and_end(void *unused) {
  (void)unused;
  CHECK(hz_thread_attach(&mine), "no slot");
  return NULL;
}

static void exit_is_told_once_in_the_ending_thread(void **state) {
  (void)state;
  start();
  for (unsigned i = 1; i <= 50; i++) {
    pthread_join(begin(attach_and_end, NULL), NULL);
    assert_int_equal(atomic_load(&exits), i);
    assert_true(atomic_load(&exit_in_own_thread));
    assert_int_equal(hz_thread_count(), 0);
  }
}

static void *only_end(void *unused) {
  return unused;
}

static void thread_without_a_slot_ends_untold(void **state) {
  (void)state;
  start();
  pthread_join(begin(only_end, NULL), NULL);
  assert_int_equal(atomic_load(&exits), 0);
}

// A thread whose first allocation happens while another key's destructor runs.
static pthread_key_t other_key;

static void attach_in_a_destructor(void *unused) {
  (void)unused;
  CHECK(hz_thread_attach(&mine), "no slot");
}

static void *set_other_key(void *unused) {
  (void)unused;
  pthread_setspecific(other_key, &other_key);
  return NULL;
}

static void thread_that_begins_in_a_destructor_is_told_of_too(void **state) {
  (void)state;
  assert_int_equal(pthread_key_create(&other_key, attach_in_a_destructor), 0);
  start();
  pthread_join(begin(set_other_key, NULL), NULL);
  assert_int_equal(atomic_load(&exits), 1);
  assert_int_equal(hz_thread_count(), 0);
}

static void *attach_many_times(void *unused) {
  (void)unused;
  static __thread struct hz_thread first;
  for (int i = 0; i < 200; i++) {
    CHECK(hz_thread_attach(&first), "no slot");
    hz_thread_detach(&first);
  }
  CHECK(hz_thread_attach(&mine), "no slot");
  return NULL;
}

static void threads_that_come_and_go_at_once_leave_nothing(void **state) {
  (void)state;
  enum { THREADS = 8 };
  start();
  for (int round = 0; round < 10; round++) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) threads[i] = begin(attach_many_times, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  }
  assert_int_equal(hz_thread_count(), 0);
  assert_int_equal(atomic_load(&exits), 80);
}

// ---- fork --------------------------------------------------------------------------------------

enum { LIVING = 5 };
static struct hz_thread *living[LIVING];

static void *attach_and_stay(void *place) {
  CHECK(hz_thread_attach(&mine), "no slot");
  *(struct hz_thread **)place = &mine;
  atomic_fetch_add(&ready, 1);
  wait_for(&go, 1);
  return NULL;
}

static pid_t forked(void) {
  hz_fork_prepare();
  const pid_t child = fork();
  if (child == 0) hz_fork_child();
  else hz_fork_parent();
  return child;
}

// In the child: every thread but this one is left exactly once.
static void take_orphans(uint32_t expected) {
  bool seen[LIVING] = {false};
  uint32_t count = 0;
  for (struct hz_thread *t; (t = hz_thread_take_orphan()) != NULL; count++) {
    CHECK(t != &mine, "the forking thread is no orphan");
    for (int i = 0; i < LIVING; i++)
      if (living[i] == t) {
        CHECK(!seen[i], "an orphan came twice");
        seen[i] = true;
      }
    hz_thread_detach(t);
  }
  CHECK(count == expected, "%u orphans, expected %u", count, expected);
}

static void assert_child_well(pid_t child) {
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void start_living(pthread_t *threads) {
  for (int i = 0; i < LIVING; i++) threads[i] = begin(attach_and_stay, &living[i]);
  wait_for(&ready, LIVING);
}

static void end_living(pthread_t *threads) {
  atomic_store(&go, 1);
  for (int i = 0; i < LIVING; i++) pthread_join(threads[i], NULL);
}

static void child_finds_every_other_thread_as_an_orphan(void **state) {
  (void)state;
  pthread_t threads[LIVING];
  start();
  assert_true(hz_thread_attach(&mine));
  start_living(threads);
  assert_null(hz_thread_take_orphan());
  const pid_t child = forked();
  if (child == 0) {
    CHECK(hz_thread_count() == LIVING + 1, "slots stay taken until orphans are adopted");
    take_orphans(LIVING);
    CHECK(hz_thread_count() == 1, "%u threads are left", hz_thread_count());
    _exit(0);
  }
  assert_child_well(child);
  assert_null(hz_thread_take_orphan()); // nobody is one here
  end_living(threads);
  assert_int_equal(hz_thread_count(), 1);
}

static void forking_thread_without_a_slot_leaves_all_behind(void **state) {
  (void)state;
  pthread_t threads[LIVING];
  start();
  start_living(threads);
  const pid_t child = forked();
  if (child == 0) {
    take_orphans(LIVING);
    CHECK(hz_thread_count() == 0, "%u threads are left", hz_thread_count());
    CHECK(hz_thread_attach(&mine) && mine.slot == 0, "the first slot is free again");
    _exit(0);
  }
  assert_child_well(child);
  end_living(threads);
}

static void grandchild_inherits_orphans_that_nobody_took(void **state) {
  (void)state;
  pthread_t threads[LIVING];
  start();
  assert_true(hz_thread_attach(&mine));
  start_living(threads);
  const pid_t child = forked();
  if (child == 0) {
    struct hz_thread *one = hz_thread_take_orphan();
    CHECK(one != NULL, "no orphan");
    hz_thread_detach(one);
    const pid_t grandchild = forked();
    if (grandchild == 0) {
      take_orphans(LIVING - 1);
      _exit(0);
    }
    int status = -1;
    CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0, "the grandchild failed");
    take_orphans(LIVING - 1);
    _exit(0);
  }
  assert_child_well(child);
  end_living(threads);
}

static void fork_without_other_threads_leaves_no_orphan(void **state) {
  (void)state;
  start();
  assert_true(hz_thread_attach(&mine));
  const pid_t child = forked();
  if (child == 0) {
    take_orphans(0);
    CHECK(hz_thread_count() == 1, "the thread keeps its slot");
    _exit(0);
  }
  assert_child_well(child);
}

static void *attach_until_told(void *unused) {
  (void)unused;
  static __thread struct hz_thread thread;
  CHECK(hz_thread_attach(&mine), "no slot");
  atomic_fetch_add(&ready, 1);
  while (atomic_load(&go) == 0) {
    CHECK(hz_thread_attach(&thread), "no slot");
    hz_thread_detach(&thread);
  }
  pthread_exit(NULL);
}

static void child_forked_amid_arrivals_can_attach(void **state) {
  (void)state;
  start();
  pthread_t thread = begin(attach_until_told, NULL);
  wait_for(&ready, 1);
  for (int i = 0; i < 30; i++) {
    const pid_t child = forked();
    if (child == 0) {
      for (struct hz_thread *t; (t = hz_thread_take_orphan()) != NULL;) hz_thread_detach(t);
      CHECK(hz_thread_count() == 0, "%u threads are left", hz_thread_count());
      CHECK(hz_thread_attach(&mine), "no slot");
      _exit(0);
    }
    assert_child_well(child);
  }
  atomic_store(&go, 1);
  pthread_join(thread, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slots_are_dense_and_the_lowest_free_one_is_next),
      cmocka_unit_test(every_slot_can_be_taken_and_one_more_is_refused),
      cmocka_unit_test(no_memory_for_a_slot_is_refused_and_comes_later),
      cmocka_unit_test(exit_is_told_once_in_the_ending_thread),
      cmocka_unit_test(thread_without_a_slot_ends_untold),
      cmocka_unit_test(thread_that_begins_in_a_destructor_is_told_of_too),
      cmocka_unit_test(threads_that_come_and_go_at_once_leave_nothing),
      cmocka_unit_test(child_finds_every_other_thread_as_an_orphan),
      cmocka_unit_test(forking_thread_without_a_slot_leaves_all_behind),
      cmocka_unit_test(grandchild_inherits_orphans_that_nobody_took),
      cmocka_unit_test(fork_without_other_threads_leaves_no_orphan),
      cmocka_unit_test(child_forked_amid_arrivals_can_attach),
  };
  return isolated_run(tests, hz_count_of(tests));
}
