// core/run_transfer: free run blocks between threads, and core/run_block's batches.
#include "core/run_transfer.h"

#include <pthread.h>

#include "core/counter.h"
#include "core/misuse.h"
#include "core/run_block.h"
#include "tests/support/fake_os.h"
#include "tests/support/random.h"
#include "tests/unit/arena_sound.h"

static void start(size_t transfer, unsigned batch) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  hz_run_cache_bytes = 4 * HZ_MIB;
  hz_run_transfer_blocks = transfer;
  hz_run_batch = batch;
  hz_run_transfer_start();
  assert_true(hz_arena_start(256 * HZ_MIB));
}

static void *take(struct hz_run_cache *cache, size_t bytes) {
  bool zero;
  return hz_run_block_take(cache, bytes, 16, &zero);
}
static void give(struct hz_run_cache *cache, void *p) {
  hz_run_block_give(cache, hz_run_of(p), p);
}

static unsigned length_of(const struct hz_run *list) {
  unsigned n = 0;
  for (; list != NULL; list = list->next) n++;
  return n;
}

static void without_the_option_everything_is_refused(void **state) {
  (void)state;
  start(0, 1);
  struct hz_run *list = hz_arena_take_list(2, 16, 5);
  assert_ptr_equal(hz_run_transfer_give(list), list);
  assert_null(hz_run_transfer_take(2, 1));
  hz_arena_give_list(list);
  assert_int_equal(totals().run_bytes, 0);
}

static void each_length_waits_for_itself_up_to_the_limit(void **state) {
  (void)state;
  start(3, 1);
  struct hz_run *list = hz_arena_take_list(2, 16, 5);
  struct hz_run *last = list;
  while (last->next != NULL) last = last->next;
  last->next = hz_arena_take_list(7, 16, 2);
  struct hz_run *refused = hz_run_transfer_give(list);
  assert_int_equal(length_of(refused), 2);
  hz_arena_give_list(refused);
  assert_null(hz_run_transfer_take(3, 9));
  struct hz_run *two = hz_run_transfer_take(2, 2), *seven = hz_run_transfer_take(7, 9);
  assert_int_equal(length_of(two), 2);
  assert_int_equal(length_of(seven), 2);
  assert_int_equal(seven->slabs, 7);
  hz_arena_give_list(two);
  hz_arena_give_list(seven);
  assert_int_equal(length_of(hz_run_transfer_take(2, 9)), 1);
}

static void what_nobody_needs_for_a_tick_leaves(void **state) {
  (void)state;
  start(100, 1);
  assert_null(hz_run_transfer_give(hz_arena_take_list(2, 16, 10)));
  hz_run_transfer_decay(); // came since the last tick
  assert_int_equal(totals().run_bytes, 20 * HZ_SLAB_BYTES);
  struct hz_run *used = hz_run_transfer_take(2, 4);
  assert_null(hz_run_transfer_give(used));
  hz_run_transfer_decay(); // six were not needed
  assert_int_equal(totals().run_bytes, 8 * HZ_SLAB_BYTES);
  hz_run_transfer_decay();
  assert_int_equal(totals().run_bytes, 0);
  assert_false(hz_run_transfer_flush());
}

static void flush_gives_all_back(void **state) {
  (void)state;
  start(100, 1);
  assert_null(hz_run_transfer_give(hz_arena_take_list(2, 16, 10)));
  assert_true(hz_run_transfer_flush());
  assert_int_equal(totals().run_bytes, 0);
  assert_false(hz_run_transfer_flush());
  assert_sound();
}

static void block_that_one_thread_sheds_serves_another(void **state) {
  (void)state;
  static struct hz_run_cache mine, others;
  start(100, 1);
  void *blocks[9];
  for (unsigned i = 0; i < 9; i++) blocks[i] = take(&mine, HZ_MIB / 2);
  for (unsigned i = 0; i < 9; i++) give(&mine, blocks[i]); // the ninth overfills the cache
  const uint64_t fetched = hz_counter_read(HZ_COUNT_run_blocks);
  char *p = take(&others, HZ_MIB / 2);
  assert_int_equal(hz_counter_read(HZ_COUNT_run_blocks), fetched);
  give(&others, p);
  give(&others, p);
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_double), 1);
  hz_run_cache_flush(&mine);
  hz_run_cache_flush(&others);
  hz_run_transfer_flush();
  assert_int_equal(totals().run_bytes, 0);
  assert_sound();
}

static void batch_is_fetched_at_once_within_half_the_budget(void **state) {
  (void)state;
  static struct hz_run_cache cache;
  start(0, 16);
  for (unsigned i = 0; i < 16; i++) take(&cache, 2 * HZ_SLAB_BYTES);
  assert_int_equal(hz_counter_read(HZ_COUNT_run_blocks), 1);
  assert_int_equal(cache.bytes, 0);
  take(&cache, HZ_MIB); // two more fit
  assert_int_equal(cache.bytes, 2 * HZ_MIB);
  void *p = take(NULL, HZ_MIB); // a thread without a cache takes one
  assert_non_null(p);
  assert_int_equal(cache.bytes, 2 * HZ_MIB);
  for (unsigned slabs = 3; slabs < 40; slabs++) take(&cache, slabs * HZ_SLAB_BYTES);
  assert_true(cache.bytes <= hz_run_cache_bytes);
  give(&cache, hz_run_base(cache.head[16])); // never handed out
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_double), 1);
}

// ---- Many threads -------------------------------------------------------------------------------

enum { THREADS = 4, PLACES = 64, STEPS = 3000 };
static _Atomic(char *) places[PLACES];

// Blocks change hands in the places; whoever has one marks it as its own.
static void *work(void *number) {
  static __thread struct hz_run_cache cache;
  struct random_state random = random_start((uintptr_t)number);
  for (unsigned step = 0; step < STEPS; step++) {
    char *p = take(&cache, random_between(&random, 1, 4) * HZ_SLAB_BYTES);
    if (p == NULL) abort();
    *p = (char)(uintptr_t)number;
    p = atomic_exchange(&places[random_between(&random, 0, PLACES - 1)], p);
    if (p != NULL) give(&cache, p);
    if (step % 500 == 0) hz_run_transfer_decay();
  }
  hz_run_cache_flush(&cache);
  return NULL;
}

static void blocks_that_pass_between_threads_are_not_lost(void **state) {
  (void)state;
  start(20, 4);
  hz_run_cache_bytes = HZ_MIB;
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < PLACES; i++)
    if (places[i] != NULL) give(NULL, places[i]);
  hz_run_transfer_flush();
  assert_int_equal(totals().run_bytes, 0);
  assert_sound();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_the_option_everything_is_refused),
      cmocka_unit_test(each_length_waits_for_itself_up_to_the_limit),
      cmocka_unit_test(what_nobody_needs_for_a_tick_leaves),
      cmocka_unit_test(flush_gives_all_back),
      cmocka_unit_test(block_that_one_thread_sheds_serves_another),
      cmocka_unit_test(batch_is_fetched_at_once_within_half_the_budget),
      cmocka_unit_test(blocks_that_pass_between_threads_are_not_lost),
  };
  return isolated_run(tests, hz_count_of(tests));
}
