// Heaps of lines/hz4 that no thread attends: who gets what they hold, and when it goes back.
#include "tests/unit/hz4_machine.h"

#include "core/meta.h"

static struct hz4_heap *owner; // that the case's thread attends

// ---- Heaps that threads leave -------------------------------------------------------------------

static void *take_and_give_ten(void *unused) {
  (void)unused;
  take_blocks(10);
  give_blocks(0, 10);
  return NULL;
}
static void *take_the_same_ten(void *unused) {
  (void)unused;
  for (int i = 10; i-- > 0;) CHECK(take(BYTES) == blocks[i], "not what the last thread left");
  CHECK(count(HZ_COUNT_refills) == 1, "a refill");
  give_blocks(0, 10);
  return NULL;
}

static void thread_that_takes_over_an_idle_heap_gets_its_blocks(void **state) {
  (void)state;
  line_start();
  in_thread(take_and_give_ten, NULL);
  in_thread(take_the_same_ten, NULL);
  assert_int_equal(heap_count(), 1);
  assert_int_equal(count(HZ_COUNT_runs_carved), 1);
  check_nothing_lost();
}

static void what_waits_for_an_idle_heap_is_the_next_threads(void **state) {
  (void)state;
  line_start();
  give(take(1));
  unsigned few = 32;
  in_thread(take_many, &few);
  give_blocks(0, few);
  hz4_send_all(hz4_heap_get());
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  in_thread(take_many, &few);
  assert_int_equal(count(HZ_COUNT_collected), 1);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, few);
  check_nothing_lost();
}

// Blocks of all kinds, one of them for the main thread, and one of the main thread's freed.
static void *short_life(void *unused) {
  (void)unused;
  void *mine[50];
  for (unsigned i = 0; i < hz_count_of(mine); i++) mine[i] = take(i * i * i);
  for (unsigned i = 0; i < hz_count_of(mine); i++) give(mine[i]);
  give(blocks[0]);
  blocks[1] = take(BYTES);
  return NULL;
}

static void live_shortly(unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    blocks[0] = take(BYTES);
    in_thread(short_life, NULL);
    give(blocks[1]);
  }
}

static void ten_thousand_threads_in_turn_need_no_more_than_the_first_thousand(void **state) {
  (void)state;
  line_start();
  live_shortly(1000);
  const size_t meta = hz_meta_bytes();
  const struct hz_gauges before = gauges();
  live_shortly(9000);
  const struct hz_gauges after = gauges();
  assert_int_equal(heap_count(), 2); // this thread's, and that of all others
  assert_int_equal(hz_meta_bytes(), meta);
  assert_int_equal(after.committed_bytes, before.committed_bytes);
  assert_int_equal(after.reserved_bytes, before.reserved_bytes);
  assert_int_equal(count(HZ_COUNT_threads_ended), 10000);
  check_nothing_lost();
}

static void blocks_of_an_ended_thread_serve_others_before_a_new_page_is_cut(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  give(take(1));
  in_thread(take_many, &many);
  give_blocks(0, many);
  hz4_send_all(hz4_heap_get());
  const void *other = take(OTHER_BYTES); // a page stays in any case
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  blocks[0] = take(BYTES); // the queue goes to the pages, and pages come here
  assert_ptr_equal(hz4_owner_of(blocks[0]), hz4_heap_get());
  assert_true(count(HZ_COUNT_runs_carved) <= carved + 1);
  give(blocks[0]);
  give((void *)other);
  check_nothing_lost();
}

static void *take_half(void *n) {
  const unsigned all = *(unsigned *)n;
  take_blocks(all);
  for (unsigned i = 0; i < all; i += 2) give(blocks[i]);
  return NULL;
}

static void pages_of_an_ended_thread_are_taken_over(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  give(take(1));
  in_thread(take_half, &many);
  const struct hz4_heap *first = hz4_owner_of(blocks[1]);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  for (unsigned i = 0; i < many; i += 2) blocks[i] = take(BYTES);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_true(count(HZ_COUNT_taken_over) > 0);
  assert_ptr_not_equal(first, hz4_heap_get());
  for (unsigned i = 0; i < many; i += 2) assert_ptr_equal(hz4_owner_of(blocks[i]), hz4_heap_get());
  check_sound();
  const uint64_t remote = count(HZ_COUNT_remote_frees);
  for (unsigned i = 0; i < 16; i++) give(blocks[i]); // ours now, whoever took them
  assert_int_equal(count(HZ_COUNT_remote_frees), remote);
  give_blocks(16, many);
  check_nothing_lost();
}

static void *take_then_wait(void *n) {
  take_blocks(*(unsigned *)n);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static pthread_t start_owner(unsigned *many) {
  give(take(1));
  const pthread_t thread = thread_start(take_then_wait, many);
  wait_turn(1);
  owner = hz4_owner_of(blocks[0]);
  return thread;
}

static void end_owner(pthread_t thread) {
  atomic_store(&turn, 2);
  pthread_join(thread, NULL);
}

static void packets_that_their_owner_does_not_fetch_go_to_the_pages(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  const pthread_t thread = start_owner(&many);
  give_blocks(0, many);
  assert_true(queue_length(owner) > 0);
  const uint64_t live = gauges().live_bytes;
  for (int tick = 0; tick < 3; tick++) pass_ms(500);
  assert_int_equal(queue_length(owner), 0);
  assert_true(gauges().live_bytes < live);
  check_sound();
  end_owner(thread);
  check_nothing_lost();
}

static void *take_one_of_many(void *n) {
  take_blocks(*(unsigned *)n);
  atomic_store(&turn, 1);
  wait_turn(2);
  blocks[0] = take(BYTES); // takes the queue, and needs one packet of it
  atomic_store(&turn, 3);
  wait_turn(4);
  return NULL;
}

static void packets_that_their_owner_fetched_and_left_go_to_the_pages(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packet_blocks", 16);
  line_start_as_set();
  unsigned many = 512;
  give(take(1));
  const pthread_t thread = thread_start(take_one_of_many, &many);
  wait_turn(1);
  owner = hz4_owner_of(blocks[0]);
  give_blocks(0, many);
  hz4_send_all(hz4_heap_get());
  atomic_store(&turn, 2);
  wait_turn(3);
  assert_int_equal(queue_length(owner), 0);
  assert_true(hz4_waiting_kib(owner) >= 400);
  assert_true(gauges().cached_bytes >= 400 * HZ_KIB);
  for (int tick = 0; tick < 3; tick++) pass_ms(500);
  assert_false(hz4_waiting(owner));
  check_sound();
  give(blocks[0]);
  atomic_store(&turn, 4);
  pthread_join(thread, NULL);
  check_nothing_lost();
}

static void trim_gives_back_what_waits_for_a_sleeping_thread(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  const pthread_t thread = start_owner(&many);
  give_blocks(0, many);
  const uint64_t live = gauges().live_bytes;
  assert_true(hz4_trim(0));
  assert_int_equal(queue_length(owner), 0);
  assert_true(gauges().live_bytes <= live - 400 * HZ_KIB);
  end_owner(thread);
  check_nothing_lost();
}

static void trim_gives_back_what_an_idle_heap_holds(void **state) {
  (void)state;
  line_start();
  in_thread(take_and_give_ten, NULL);
  assert_true(gauges().live_bytes > 0);
  check_nothing_lost();
}

static void packets_and_pages_of_a_living_owner_are_left_to_it(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  const pthread_t thread = start_owner(&many);
  give_blocks(0, many);
  hz4_send_all(hz4_heap_get());
  const unsigned waiting = queue_length(owner);
  take_blocks(many);
  assert_int_equal(queue_length(owner), waiting);
  assert_int_equal(count(HZ_COUNT_taken_over), 0);
  give_blocks(0, many);
  end_owner(thread);
  check_nothing_lost();
}

// Without a heap in the later rounds, so there is nothing for a second thread to leave.
static void threads_that_allocate_late_share_one_heap(void **state) {
  (void)state;
  line_start();
  threads_work_late(20, SANITIZED ? 3 : 4);
  assert_int_equal(heap_count(), 1);
  check_nothing_lost();
}

// ---- Giving back --------------------------------------------------------------------------------

static void empty_pages_go_to_the_arena_and_to_the_kernel_after_the_idle_time(void **state) {
  (void)state;
  options_default();
  option_set("cache", "large_bytes", 0);
  line_start_as_set();
  check_empty_runs_go(flush);
}

static void free_memory_inside_pages_goes_after_the_idle_time(void **state) {
  (void)state;
  line_start();
  check_pages_inside_runs_go(flush);
}

// ---- When memory ends ---------------------------------------------------------------------------

static void *free_half_and_wait(void *n) {
  take_half(n);
  flush();
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static unsigned take_until_refused(void **out, unsigned most, size_t bytes) {
  unsigned n = 0;
  while (n < most && (out[n] = take(bytes)) != NULL) n++;
  return n;
}

static void pages_of_an_attended_heap_serve_when_the_kernel_refuses(void **state) {
  (void)state;
  line_start();
  unsigned many = 2000, got = 0;
  give(take(1));
  const pthread_t thread = thread_start(free_half_and_wait, &many);
  wait_turn(1);
  fake_os_fail_from(FAKE_COMMIT, 1);
  static void *rest[2 * HZ_SEGMENT_SLABS]; // of the segment
  unsigned full = take_until_refused(rest, HZ_SEGMENT_SLABS, HZ_SLAB_BYTES + 1);
  full += take_until_refused(rest + full, HZ_SEGMENT_SLABS, HZ_SLAB_BYTES);
  while (got < many && (blocks[got] = take(BYTES)) != NULL) got += 2;
  assert_true(got >= many); // the other half, wherever it lay
  assert_true(count(HZ_COUNT_taken_over) > 0);
  fake_os_fail_from(FAKE_COMMIT, 0);
  end_owner(thread);
  give_blocks(0, many);
  for (unsigned i = 0; i < full; i++) give(rest[i]);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(thread_that_takes_over_an_idle_heap_gets_its_blocks),
      cmocka_unit_test(what_waits_for_an_idle_heap_is_the_next_threads),
      cmocka_unit_test(ten_thousand_threads_in_turn_need_no_more_than_the_first_thousand),
      cmocka_unit_test(blocks_of_an_ended_thread_serve_others_before_a_new_page_is_cut),
      cmocka_unit_test(pages_of_an_ended_thread_are_taken_over),
      cmocka_unit_test(packets_that_their_owner_does_not_fetch_go_to_the_pages),
      cmocka_unit_test(packets_that_their_owner_fetched_and_left_go_to_the_pages),
      cmocka_unit_test(trim_gives_back_what_waits_for_a_sleeping_thread),
      cmocka_unit_test(trim_gives_back_what_an_idle_heap_holds),
      cmocka_unit_test(packets_and_pages_of_a_living_owner_are_left_to_it),
      cmocka_unit_test(threads_that_allocate_late_share_one_heap),
      cmocka_unit_test(empty_pages_go_to_the_arena_and_to_the_kernel_after_the_idle_time),
      cmocka_unit_test(free_memory_inside_pages_goes_after_the_idle_time),
      cmocka_unit_test(pages_of_an_attended_heap_serve_when_the_kernel_refuses),
  };
  return isolated_run(tests, hz_count_of(tests));
}
