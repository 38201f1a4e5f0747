// lines/hz5: who owns a run, and how blocks that others free come back.
#include "tests/unit/hz5_machine.h"

// ---- Who owns a run -----------------------------------------------------------------------------

static void thread_owns_the_runs_that_it_allocates_from(void **state) {
  (void)state;
  line_start();
  take_blocks(10);
  for (unsigned i = 0; i < 10; i++) assert_int_equal(owner_of(blocks[i]), my_token());
  give_blocks(0, 10);
  assert_int_equal(count(HZ_COUNT_remote_frees), 0);
  check_nothing_lost();
}

static void full_run_is_nobodys_and_then_whose_free_it_is(void **state) {
  (void)state;
  line_start();
  take_blocks(FULL_RUN + 1);
  assert_int_equal(owner_of(blocks[0]), HZ5_FULL);
  assert_int_equal(owner_of(blocks[FULL_RUN]), my_token());
  give(blocks[0]);
  assert_int_equal(owner_of(blocks[1]), my_token());
  assert_true(is_idle(blocks[0]));
  give_blocks(1, FULL_RUN + 1);
  check_nothing_lost();
}

static _Atomic uint32_t token_of_other;

static void *give_first_and_tell(void *unused) {
  (void)unused;
  give(blocks[0]);
  atomic_store(&token_of_other, my_token());
  CHECK(owner_of(blocks[1]) == my_token(), "a full run did not become the freeing thread's");
  CHECK(take(BYTES) == blocks[0], "the freeing thread does not allocate from it");
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static void block_of_another_thread_is_marked_and_its_run_queued(void **state) {
  (void)state;
  line_start();
  take_blocks(FULL_RUN + 1);
  const pthread_t other = thread_start(give_first_and_tell, NULL);
  wait_turn(1);
  assert_int_equal(owner_of(blocks[1]), atomic_load(&token_of_other));
  give_blocks(1, 4);
  assert_false(is_idle(blocks[1])); // its owner does not know yet
  assert_int_equal(hz5_run_freed(run_of(blocks[1])), 3);
  hz5_send(hz5_heap_get());
  assert_int_equal(count(HZ_COUNT_remote_batches), 1);
  give(blocks[2]); // a second time
  assert_int_equal(refused(), 1);
  assert_int_equal(hz5_run_freed(run_of(blocks[1])), 3);
  atomic_store(&turn, 2);
  pthread_join(other, NULL); // and leaves its runs to nobody
  assert_int_equal(count(HZ_COUNT_remote_frees), 3);
  assert_int_equal(owner_of(blocks[4]), HZ5_ORPHAN);
  assert_true(is_idle(blocks[1]));
  give(blocks[0]);
  assert_int_equal(owner_of(blocks[4]), my_token());
  give_blocks(4, FULL_RUN + 1);
  check_nothing_lost();
}

static void *take_some(void *unused) {
  (void)unused;
  take_blocks(10);
  atomic_store(&token_of_other, my_token());
  return NULL;
}

static void heap_of_an_ended_thread_comes_back_with_another_token(void **state) {
  (void)state;
  line_start();
  in_thread(take_some, NULL);
  const uint32_t first = atomic_load(&token_of_other);
  assert_int_equal(owner_of(blocks[0]), HZ5_ORPHAN);
  void *mine = blocks[9];
  in_thread(take_some, NULL); // from the run that the first one left
  assert_int_not_equal(atomic_load(&token_of_other), first);
  assert_int_equal(hz5_heap_of(atomic_load(&token_of_other))->slot, hz5_heap_of(first)->slot);
  assert_ptr_equal(run_of(blocks[0]), run_of(mine));
  assert_int_equal(count(HZ_COUNT_taken_over), 1);
  assert_int_equal(hz5_run_live(run_of(mine)), 20);
}

// As another thread does first when it frees a block.
static void mark(const void *p) {
  uint32_t index;
  CHECK(hz5_begins(hz5_slab_of(p), p, &index), "no block begins at %p", p);
  atomic_fetch_and(&run_of(p)->bits[index / 64].kept, ~(UINT64_C(1) << index % 64));
}

// ---- Queues -------------------------------------------------------------------------------------

static void *hold_runs(void *unused) {
  (void)unused;
  take_blocks(40 * FULL_RUN);
  // Each run has room again, so that it is ours.
  for (unsigned i = 0; i < 40; i++) give(blocks[i * FULL_RUN]);
  atomic_store(&turn, 1);
  wait_turn(2);
  hz5_collect(hz5_heap_get());
  atomic_store(&turn, 3);
  wait_turn(4);
  return NULL;
}

static void runs_go_to_their_owner_sixteen_slabs_at_a_time(void **state) {
  (void)state;
  line_start();
  const pthread_t owner = thread_start(hold_runs, NULL);
  wait_turn(1);
  for (unsigned i = 0; i < HZ5_CHAIN_SLABS - 1; i++) give(blocks[i * FULL_RUN + 1]);
  assert_int_equal(count(HZ_COUNT_remote_batches), 0);
  give(blocks[2]); // of a run that waits in the chain already
  assert_int_equal(count(HZ_COUNT_remote_batches), 0);
  give(blocks[(HZ5_CHAIN_SLABS - 1) * FULL_RUN + 1]);
  assert_int_equal(count(HZ_COUNT_remote_batches), HZ5_CHAIN_SLABS);
  atomic_store(&turn, 2);
  wait_turn(3);
  assert_int_equal(count(HZ_COUNT_collected), HZ5_CHAIN_SLABS);
  assert_int_equal(count(HZ_COUNT_remote_frees), HZ5_CHAIN_SLABS + 1);
  give(blocks[3]); // taken in, so it is queued anew
  hz5_send(hz5_heap_get());
  assert_int_equal(count(HZ_COUNT_remote_batches), HZ5_CHAIN_SLABS + 1);
  atomic_store(&turn, 4);
  pthread_join(owner, NULL);
}

// Who was late with a run finds none there, or another one.
static void late_entry_of_a_queue_does_no_harm(void **state) {
  (void)state;
  line_start();
  take_blocks(2);
  struct hz5_slab *run = run_of(blocks[0]);
  hz5_queue(hz5_heap_get(), run);
  hz5_send(hz5_heap_get());
  give_blocks(0, 2);
  line->trim(0); // closes the run
  assert_int_equal(hz5_owner(run), HZ5_NOBODY);
  char *large = take(100000); // which uses its slab now
  assert_ptr_equal(hz5_slab_of(large), run);
  hz5_queue(hz5_heap_get(), run);
  take_blocks(2);
  hz5_collect(hz5_heap_get());
  check_sound();
  give(large);
  give_blocks(0, 2);
  assert_int_equal(refused(), 0);
  check_nothing_lost();
}

// Two threads free a block at once: the second one's mark comes when the first one's is taken in.
static void block_freed_by_two_threads_at_once_is_told_and_not_lost(void **state) {
  (void)state;
  line_start();
  take_blocks(2);
  struct hz5_slab *run = run_of(blocks[0]);
  give(blocks[0]);
  mark(blocks[0]);
  hz5_queue(NULL, run);
  assert_ptr_not_equal(take(BYTES), blocks[0]); // not until it is sorted out
  hz5_collect(hz5_heap_get());
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  assert_ptr_equal(take(BYTES), blocks[0]);
}

// A run of the main thread's with a block that it has freed: what others free of it waits in a
// queue.
static struct hz5_slab *run_with_room(unsigned from) {
  for (unsigned i = from; i < from + FULL_RUN + 1; i++) blocks[i] = take(BYTES);
  give(blocks[from]);
  return run_of(blocks[from]);
}

// A sender whose push fails has linked its chain to what waited there before.
static void what_waited_before_a_failed_push_is_left_alone(void **state) {
  (void)state;
  line_start();
  struct hz5_slab *run = run_with_room(0), *waiting = run_with_room(100);
  struct hz5_heap *heap = hz5_heap_get();
  atomic_store(&waiting->queued, hz5_forks); // somebody else brings it
  atomic_store(&heap->queue, HZ5_CLOSED);
  heap->chains[0] = (struct hz5_chain){
      .token = heap->token, .first = hz5_name(run), .last = hz5_name(run), .runs = 1, .slabs = 1};
  atomic_store(&run->next_queued, hz5_name(waiting));
  atomic_store(&run->queued, hz5_forks);
  hz5_send(heap);
  assert_int_equal(atomic_load(&run->queued), 0);
  assert_int_equal(atomic_load(&waiting->queued), hz5_forks);
}

// ---- Threads that only free ---------------------------------------------------------------------

enum { ROUNDS = 2000, EACH_ROUND = FULL_RUN * 3 / 4 };

static void **round_of(unsigned round) {
  return &blocks[round % 2 * EACH_ROUND];
}

// Frees what the round before allocated, all but the first `keep` of it.
static void *consume(void *keep) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    wait_turn(2 * round + 1);
    for (unsigned i = (unsigned)(uintptr_t)keep; round != 0 && i < EACH_ROUND; i++)
      give(round_of(round - 1)[i]);
    atomic_store(&turn, 2 * round + 2);
  }
  return NULL;
}

static void produce(uintptr_t keep) {
  const pthread_t consumer = thread_start(consume, (void *)keep);
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned i = 0; i < EACH_ROUND; i++) round_of(round)[i] = take(BYTES);
    atomic_store(&turn, 2 * round + 1);
    wait_turn(2 * round + 2);
  }
  pthread_join(consumer, NULL);
  for (unsigned i = 0; i < EACH_ROUND; i++) give(round_of(ROUNDS - 1)[i]);
}

// The consumer frees one part of a run while it is the producer's, and another when it is full.
static void runs_go_round_between_a_producer_and_a_consumer(void **state) {
  (void)state;
  line_start();
  produce(0);
  assert_true(count(HZ_COUNT_runs_carved) < 40);
  check_nothing_lost();
}

// What stays of each run is little, and its free blocks serve the producer.
static void runs_with_a_block_that_stays_go_back_to_the_producer(void **state) {
  (void)state;
  line_start();
  produce(1);
  say("%llu runs\n", (unsigned long long)count(HZ_COUNT_runs_carved));
  assert_true(count(HZ_COUNT_runs_carved) < ROUNDS / FULL_RUN * 3);
}

static void *live_until_told(void *unused) {
  (void)unused;
  give(take(BYTES));
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static void run_that_has_been_quiet_is_for_others(void **state) {
  (void)state;
  line_start();
  take_blocks(2 * FULL_RUN);
  give_blocks(1, FULL_RUN);
  for (unsigned ms = 0; ms < 1000; ms += 125) pass_ms(125);
  assert_int_equal(owner_of(blocks[0]), my_token()); // there are none
  const pthread_t other = thread_start(live_until_told, NULL);
  wait_turn(1);
  give(blocks[FULL_RUN]);
  for (unsigned ms = 0; ms < 1000; ms += 125) pass_ms(125);
  assert_int_equal(owner_of(blocks[0]), HZ5_ORPHAN);
  assert_int_equal(owner_of(blocks[FULL_RUN + 1]), HZ5_ORPHAN);
  atomic_store(&turn, 2);
  pthread_join(other, NULL);
  assert_ptr_equal(run_of(take(BYTES)), run_of(blocks[FULL_RUN + 1])); // the latest to come
}

// ---- Forks --------------------------------------------------------------------------------------

static void *own_a_run_until_told(void *unused) {
  (void)unused;
  run_with_room(0);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

// Blocks of a thread that is not in the child are freed there, before and after its runs are
// adopted.
static void work_in_child(void) {
  struct hz5_slab *run = run_of(blocks[1]);
  give(blocks[1]);
  line->trim(0); // sends, and adopts
  give(blocks[2]);
  CHECK(hz5_owner(run) == my_token(), "not adopted");
  mark(blocks[3]); // a thread would do so; one that begins in a child is beyond the sanitizer
  hz5_queue(NULL, run);
  hz5_collect(hz5_heap_get());
  CHECK(hz5_run_freed(run) == 0, "a block freed by another thread was not taken in");
  give_blocks(4, FULL_RUN + 1);
  check_nothing_lost();
}

static void child_takes_in_what_it_frees_of_vanished_threads(void **state) {
  (void)state;
  line_start();
  const pthread_t other = thread_start(own_a_run_until_told, NULL);
  wait_turn(1);
  const pid_t child = fork_with_handlers();
  if (child == 0) {
    work_in_child();
    _exit(0);
  }
  atomic_store(&turn, 2);
  pthread_join(other, NULL);
  check_child(child);
}

static void *free_all_and_keep_them(void *unused) {
  (void)unused;
  give_blocks(0, FULL_RUN);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

// The run became full before its owner heard that all its blocks are free again.
static void full_run_in_a_chain_survives_a_fork(void **state) {
  (void)state;
  line_start();
  take_blocks(FULL_RUN);
  const pthread_t other = thread_start(free_all_and_keep_them, NULL);
  wait_turn(1);
  void *more = take(BYTES);
  assert_int_equal(owner_of(blocks[0]), HZ5_FULL);
  assert_int_equal(hz5_run_freed(run_of(blocks[0])), FULL_RUN);
  const pid_t child = fork_with_handlers();
  if (child == 0) {
    give(more);
    check_nothing_lost();
    _exit(0);
  }
  atomic_store(&turn, 2);
  pthread_join(other, NULL);
  check_child(child);
  give(more);
  check_nothing_lost();
}

// ---- Vacant runs --------------------------------------------------------------------------------

static void vacant_run_comes_back_as_it_went(void **state) {
  (void)state;
  line_start();
  take_blocks(3 * FULL_RUN);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  for (unsigned round = 0; round < 5; round++) {
    give_blocks(0, 3 * FULL_RUN);
    check_sound();
    take_blocks(3 * FULL_RUN);
  }
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, 3 * FULL_RUN);
  assert_true(hz5_pools_vacant_slabs() >= 2);
  give(blocks[0]); // a block of a vacant run
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  check_nothing_lost();
}

static void vacant_runs_that_nobody_needs_go_to_the_arena(void **state) {
  (void)state;
  line_start();
  take_blocks(50 * FULL_RUN);
  give_blocks(0, 50 * FULL_RUN);
  const uint64_t vacant = hz5_pools_vacant_slabs();
  assert_true(vacant >= 49);
  pass_ms(125);
  for (unsigned tick = 0; tick < 2; tick++) pass_ms(125);
  assert_int_equal(hz5_pools_vacant_slabs(), 0);
  assert_true(count(HZ_COUNT_runs_returned) >= vacant);
}

static void vacant_runs_make_room_for_other_classes(void **state) {
  (void)state;
  line_start();
  enum { RUNS = 70 };
  take_blocks(RUNS * FULL_RUN);
  give_blocks(0, RUNS * FULL_RUN);
  const uint64_t committed = gauges().committed_bytes;
  static void *others[RUNS * 32];
  for (unsigned i = 0; i < hz_count_of(others); i++) others[i] = take(2 * BYTES);
  assert_int_equal(gauges().committed_bytes, committed);
  for (unsigned i = 0; i < hz_count_of(others); i++) give(others[i]);
  check_nothing_lost();
}

// Two threads free the last block at once: when the second one's mark comes, the run is nobody's.
static void stray_mark_on_a_vacant_run_is_told_when_it_is_used_again(void **state) {
  (void)state;
  line_start();
  take_blocks(2 * FULL_RUN);
  give_blocks(0, FULL_RUN);
  struct hz5_slab *run = run_of(blocks[0]);
  assert_int_equal(hz5_owner(run), HZ5_VACANT);
  mark(blocks[5]);
  hz5_queue(NULL, run);
  take_blocks(FULL_RUN + 1); // the current run is full, too
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  assert_int_equal(hz5_owner(run), HZ5_FULL);
  assert_int_equal(hz5_run_live(run), FULL_RUN);
}

static void stray_mark_on_a_listed_run_costs_no_new_run(void **state) {
  (void)state;
  line_start();
  take_blocks(2 * FULL_RUN);
  give(blocks[5]);
  mark(blocks[5]); // not queued yet
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  assert_ptr_equal(take(BYTES), blocks[5]);
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
}

// ---- Memory -------------------------------------------------------------------------------------

static void pages_go_each_time_that_a_run_has_been_quiet(void **state) {
  (void)state;
  line_start();
  enum { PAGES = 512 };
  for (unsigned i = 0; i < PAGES; i++) memset(blocks[i] = take(4096), 1, 4096);
  for (unsigned i = 0; i < PAGES; i += 8) give(blocks[i]);
  for (unsigned ms = 0; ms < 4000; ms += 125) pass_ms(125);
  const uint64_t before = count(HZ_COUNT_purged);
  assert_true(before >= PAGES / 8 * 4096);
  for (unsigned i = 0; i < PAGES; i++)
    if (i % 8 != 0 && i % 8 != 7) give(blocks[i]);
  for (unsigned ms = 0; ms < 4000; ms += 125) pass_ms(125);
  assert_true(count(HZ_COUNT_purged) - before >= PAGES * 3 / 4 * 4096);
}

// Neither more memory from the kernel, nor any that it takes back.
static void vacant_runs_serve_all_when_the_kernel_has_no_more(void **state) {
  (void)state;
  line_start();
  take_blocks(FULL_RUN * 40);
  give_blocks(0, FULL_RUN * 20);
  fake_os_fail_from(FAKE_COMMIT, 1);
  fake_os_fail_from(FAKE_PURGE, 1);
  while (hz_arena_take(1, HZ_SLAB_BYTES) != NULL) {
  }
  assert_true(hz5_pools_vacant_slabs() >= 20);
  assert_non_null(take(2 * BYTES));
}

// ---- Options ------------------------------------------------------------------------------------

static void blocks_above_block_bytes_have_slabs_of_their_own(void **state) {
  (void)state;
  options_default();
  option_set("hz5", "block_bytes", 32 * HZ_KIB);
  line_start_as_set();
  char *small = take(32 * HZ_KIB), *large = take(32 * HZ_KIB + 1);
  char *aligned = line->table.alloc_aligned(8192, 65536);
  assert_int_equal(hz_run_of(small)->state, HZ_RUN_CLASS);
  assert_int_equal(hz_run_of(large)->state, HZ_RUN_LIVE);
  assert_int_equal(hz_run_of(aligned)->state, HZ_RUN_LIVE);
  assert_int_equal((uintptr_t)aligned % 8192, 0);
  assert_int_equal(hz_run_of(aligned)->slabs, 1);
  give(large);
  assert_ptr_equal(take(65536), large);
  give(small);
  give(large);
  give(aligned);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(thread_owns_the_runs_that_it_allocates_from),
      cmocka_unit_test(full_run_is_nobodys_and_then_whose_free_it_is),
      cmocka_unit_test(block_of_another_thread_is_marked_and_its_run_queued),
      cmocka_unit_test(heap_of_an_ended_thread_comes_back_with_another_token),
      cmocka_unit_test(runs_go_to_their_owner_sixteen_slabs_at_a_time),
      cmocka_unit_test(late_entry_of_a_queue_does_no_harm),
      cmocka_unit_test(block_freed_by_two_threads_at_once_is_told_and_not_lost),
      cmocka_unit_test(what_waited_before_a_failed_push_is_left_alone),
      cmocka_unit_test(runs_go_round_between_a_producer_and_a_consumer),
      cmocka_unit_test(runs_with_a_block_that_stays_go_back_to_the_producer),
      cmocka_unit_test(run_that_has_been_quiet_is_for_others),
      cmocka_unit_test(child_takes_in_what_it_frees_of_vanished_threads),
      cmocka_unit_test(full_run_in_a_chain_survives_a_fork),
      cmocka_unit_test(vacant_run_comes_back_as_it_went),
      cmocka_unit_test(vacant_runs_that_nobody_needs_go_to_the_arena),
      cmocka_unit_test(vacant_runs_make_room_for_other_classes),
      cmocka_unit_test(stray_mark_on_a_vacant_run_is_told_when_it_is_used_again),
      cmocka_unit_test(stray_mark_on_a_listed_run_costs_no_new_run),
      cmocka_unit_test(pages_go_each_time_that_a_run_has_been_quiet),
      cmocka_unit_test(vacant_runs_serve_all_when_the_kernel_has_no_more),
      cmocka_unit_test(blocks_above_block_bytes_have_slabs_of_their_own),
  };
  return isolated_run(tests, hz_count_of(tests));
}
