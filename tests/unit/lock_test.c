// core/lock: exclusion, waking, and what fork() does with all locks.
#include "core/lock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "tests/unit/isolated.h"

static struct hz_lock lock;

static bool held(struct hz_lock *which) {
  return atomic_load(&which->word) != 0;
}

static void wait_until(bool (*condition)(void)) {
  while (!condition()) sched_yield();
}

// ---- Exclusion ---------------------------------------------------------------------------------

enum { THREADS = 4, STEPS = 30000 };
static uint64_t counter;

static void *count_up(void *unused) {
  (void)unused;
  for (int i = 0; i < STEPS; i++) {
    hz_lock(&lock);
    counter++;
    if (i % 64 == 0) sched_yield(); // others spin, give up and sleep
    hz_unlock(&lock);
  }
  return NULL;
}

static void two_holders_never_meet(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(counter, (uint64_t)THREADS * STEPS);
  assert_false(held(&lock));
}

static atomic_int through;

static void *pass_once(void *unused) {
  (void)unused;
  hz_lock(&lock);
  hz_unlock(&lock);
  atomic_fetch_add(&through, 1);
  return NULL;
}

static bool somebody_sleeps(void) {
  return (atomic_load(&lock.word) & HZ_LOCK_AWAITED) != 0;
}

static void unlock_wakes_every_sleeper_in_turn(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  hz_lock(&lock);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, pass_once, NULL), 0);
  wait_until(somebody_sleeps);
  assert_int_equal(atomic_load(&through), 0);
  hz_unlock(&lock);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&through), THREADS);
}

static void waiting_keeps_errno(void **state) {
  (void)state;
  pthread_t thread;
  hz_lock(&lock);
  assert_int_equal(pthread_create(&thread, NULL, pass_once, NULL), 0);
  wait_until(somebody_sleeps);
  errno = 77;
  hz_unlock(&lock);
  assert_int_equal(errno, 77);
  pthread_join(thread, NULL);
}

// ---- fork --------------------------------------------------------------------------------------

static struct hz_lock early, middle[3], late;

static void register_all(void) {
  // Not in order: the ranks decide.
  hz_locks_register(HZ_RANK_ARENA, &late, 1, sizeof late);
  hz_locks_register(HZ_RANK_GROUP, &early, 1, sizeof early);
  hz_locks_register(HZ_RANK_CLASS, middle, 3, sizeof middle[0]);
}

static void *prepare_and_return(void *unused) {
  (void)unused;
  hz_locks_before_fork();
  hz_locks_after_fork();
  return NULL;
}

static bool middle_is_awaited(void) {
  return (atomic_load(&middle[1].word) & HZ_LOCK_AWAITED) != 0;
}

static void fork_takes_locks_in_order_of_rank(void **state) {
  (void)state;
  pthread_t thread;
  register_all();
  hz_lock(&middle[1]);
  assert_int_equal(pthread_create(&thread, NULL, prepare_and_return, NULL), 0);
  wait_until(middle_is_awaited);
  assert_true(held(&early));
  assert_true(held(&middle[0]));
  assert_false(held(&middle[2]));
  assert_false(held(&late));
  hz_unlock(&middle[1]);
  pthread_join(thread, NULL);
  assert_false(held(&early) || held(&middle[0]) || held(&middle[1]) || held(&late));
}

static void forking_thread_passes_through_all_locks(void **state) {
  (void)state;
  register_all();
  hz_locks_before_fork();
  hz_lock(&middle[0]); // another library's fork handler allocates
  hz_lock(&late);
  hz_unlock(&late);
  hz_unlock(&middle[0]);
  assert_true(held(&early) && held(&middle[0]) && held(&late));
  hz_locks_after_fork();
  assert_false(held(&early) || held(&middle[0]) || held(&late));
}

static void other_threads_wait_until_the_fork_is_over(void **state) {
  (void)state;
  pthread_t thread;
  hz_locks_register(HZ_RANK_ARENA, &lock, 1, sizeof lock);
  hz_locks_before_fork();
  assert_int_equal(pthread_create(&thread, NULL, pass_once, NULL), 0);
  wait_until(somebody_sleeps);
  assert_int_equal(atomic_load(&through), 0);
  hz_locks_after_fork();
  pthread_join(thread, NULL);
  assert_int_equal(atomic_load(&through), 1);
}

// A signal handler that forks in the middle of a critical section.
static void locks_that_the_forking_thread_held_stay_held(void **state) {
  (void)state;
  register_all();
  hz_lock(&middle[2]);
  hz_locks_before_fork();
  hz_locks_after_fork();
  assert_true(held(&middle[2]));
  assert_false(held(&early) || held(&late));
  hz_unlock(&middle[2]);
  assert_false(held(&middle[2]));
}

static atomic_bool stop;

static void *lock_all_the_time(void *unused) {
  (void)unused;
  while (!atomic_load(&stop)) {
    hz_lock(&early);
    hz_lock(&middle[1]);
    hz_lock(&late);
    hz_unlock(&late);
    hz_unlock(&middle[1]);
    hz_unlock(&early);
  }
  return NULL;
}

static void child_can_take_every_lock_whatever_others_were_doing(void **state) {
  (void)state;
  pthread_t thread;
  register_all();
  assert_int_equal(pthread_create(&thread, NULL, lock_all_the_time, NULL), 0);
  for (int i = 0; i < 50; i++) {
    hz_locks_before_fork();
    const pid_t child = fork();
    hz_locks_after_fork();
    if (child == 0) {
      hz_lock(&early);
      for (int k = 0; k < 3; k++) hz_lock(&middle[k]);
      hz_lock(&late);
      _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_holders_never_meet),
      cmocka_unit_test(unlock_wakes_every_sleeper_in_turn),
      cmocka_unit_test(waiting_keeps_errno),
      cmocka_unit_test(fork_takes_locks_in_order_of_rank),
      cmocka_unit_test(forking_thread_passes_through_all_locks),
      cmocka_unit_test(other_threads_wait_until_the_fork_is_over),
      cmocka_unit_test(locks_that_the_forking_thread_held_stay_held),
      cmocka_unit_test(child_can_take_every_lock_whatever_others_were_doing),
  };
  return isolated_run(tests, hz_count_of(tests));
}
