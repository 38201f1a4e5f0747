// What only lines/hz3 has: magazines, depots, shards, packets and stashes. What holds for every
// line is in tests/unit/lines_test.c.
#include "tests/unit/hz3_machine.h"

static unsigned stash_length(unsigned shard, unsigned class_id) {
  unsigned n = 0;
  const struct hz_magazine *m = atomic_load(&hz3_shards[shard].stash[class_id]);
  for (; m != NULL; m = m->next) n++;
  return n;
}

static unsigned class_of_bytes(void) {
  return hz_class_of(BYTES);
}

// ---- Magazines, depot, shards -------------------------------------------------------------------

static void last_freed_block_is_first_used(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_blocks(0, 3);
  for (int i = 3; i-- > 0;) assert_ptr_equal(take(BYTES), blocks[i]);
}

static void full_magazines_go_to_the_depot_and_come_back_whole(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  const unsigned capacity = hz3_limits[class_id].capacity;
  const struct hz_depot *depot = &hz3_shards[0].depots[class_id];
  take_blocks(4 * capacity);
  const uint64_t refills = count(HZ_COUNT_refills), carved = count(HZ_COUNT_runs_carved);
  give_blocks(0, 4 * capacity);
  assert_true(depot->count >= 3);
  check_sound();
  take_blocks(4 * capacity);
  assert_int_equal(depot->count, 0);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_true(count(HZ_COUNT_refills) - refills <= 4);
  give_blocks(0, 4 * capacity);
  check_nothing_lost();
}

static void depot_keeps_no_more_than_its_budget(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "depot_bytes", 128 * 1024);
  line_start_as_set();
  const unsigned class_id = class_of_bytes();
  take_blocks(2000);
  give_blocks(0, 2000);
  const struct hz_depot *depot = &hz3_shards[0].depots[class_id];
  assert_int_equal(hz3_limits[class_id].depot_magazines, 2);
  assert_int_equal(depot->count, 2);
  check_nothing_lost();
}

static void *take_a_magazine(void *unused) {
  (void)unused;
  const unsigned capacity = hz3_limits[class_of_bytes()].capacity;
  for (unsigned i = 0; i < capacity; i++) CHECK((blocks[i] = take(BYTES)) != NULL, "no memory");
  give_blocks(0, capacity);
  return NULL;
}

static void threads_that_share_a_shard_share_its_depot(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "shards", 1);
  line_start_as_set();
  const unsigned class_id = class_of_bytes();
  take_blocks(4 * hz3_limits[class_id].capacity);
  give_blocks(0, 4 * hz3_limits[class_id].capacity);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  in_thread(take_a_magazine, NULL);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_int_equal(count(HZ_COUNT_remote_frees), 0);
  check_nothing_lost();
}

static void *have_a_heap(void *unused) {
  (void)unused;
  void *mine = take(1);
  atomic_fetch_add(&turn, 1);
  wait_turn(200);
  give(mine);
  return NULL;
}

static void more_threads_than_shards_share_them(void **state) {
  (void)state;
  line_start();
  pthread_t threads[HZ3_MAX_SHARDS + 10];
  for (unsigned i = 0; i < hz_count_of(threads); i++) threads[i] = thread_start(have_a_heap, NULL);
  wait_turn(hz_count_of(threads));
  uint32_t living = 0;
  for (unsigned s = 0; s < HZ3_MAX_SHARDS; s++) {
    assert_true(atomic_load(&hz3_shards[s].live) > 0);
    living += atomic_load(&hz3_shards[s].live);
  }
  assert_int_equal(living, hz_count_of(threads));
  atomic_store(&turn, 200);
  for (unsigned i = 0; i < hz_count_of(threads); i++) pthread_join(threads[i], NULL);
  check_nothing_lost();
}

static void gauges_count_what_lies_in_depots(void **state) {
  (void)state;
  line_start();
  take_blocks(1000);
  give_blocks(0, 1000);
  assert_true(gauges().cached_bytes > 500 * 1000);
  check_nothing_lost();
}

// ---- Packets ------------------------------------------------------------------------------------

static void foreign_blocks_travel_in_packets_to_their_owner(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned packet = hz3_limits[class_id].packet, three = 3 * packet;
  take_blocks(three);
  give_in_thread(0, three);
  assert_int_equal(count(HZ_COUNT_remote_frees), three);
  assert_int_equal(count(HZ_COUNT_remote_batches), 3);
  assert_int_equal(stash_length(0, class_id), 3);
  check_sound();
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  take_blocks(three + hz3_limits[class_id].refill);
  assert_int_equal(stash_length(0, class_id), 0);
  assert_int_equal(count(HZ_COUNT_collected), 3);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, three + hz3_limits[class_id].refill);
  check_nothing_lost();
}

static void packet_that_never_filled_is_handed_over_at_thread_exit(void **state) {
  (void)state;
  line_start();
  unsigned few = 3;
  take_blocks(few);
  give_in_thread(0, few);
  assert_int_equal(count(HZ_COUNT_remote_frees), few);
  assert_int_equal(count(HZ_COUNT_remote_batches), 1);
  check_nothing_lost();
}

static void stash_beyond_its_budget_serves_all(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "stash_bytes", 64 * 1024);
  line_start_as_set();
  const unsigned class_id = class_of_bytes();
  unsigned many = 2000;
  take_blocks(many);
  give_in_thread(0, many);
  assert_int_equal(hz3_limits[class_id].stash_packets, 2);
  assert_int_equal(stash_length(0, class_id), 2);
  assert_true(hz_central_free_bytes(class_id) > 0 || count(HZ_COUNT_runs_returned) > 0);
  check_nothing_lost();
}

static void blocks_of_an_ended_thread_go_to_the_runs(void **state) {
  (void)state;
  line_start();
  unsigned many = 500;
  take(1); // this thread is the first shard
  in_thread(take_many, &many);
  assert_int_equal(atomic_load(&hz3_shards[1].live), 0);
  give_blocks(0, many);
  give(NULL);
  hz3_heap_flush(hz3_heap_get());
  assert_int_equal(stash_length(1, class_of_bytes()), 0);
  assert_true(count(HZ_COUNT_runs_returned) > 0);
  check_sound();
}

static void *take_then_wait(void *n) {
  take_blocks(*(unsigned *)n);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static void start_owner(pthread_t *owner, unsigned *many) {
  take(1);
  assert_int_equal(pthread_create(owner, NULL, take_then_wait, many), 0);
  wait_turn(1);
}

static void end_owner(pthread_t owner) {
  atomic_store(&turn, 2);
  pthread_join(owner, NULL);
}

static void packets_that_their_owner_does_not_fetch_go_to_the_runs(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned many = 512;
  pthread_t owner;
  start_owner(&owner, &many);
  give_blocks(0, many);
  assert_true(stash_length(1, class_id) > 0);
  const uint64_t live = gauges().live_bytes;
  for (int tick = 0; tick < 3; tick++) pass_ms(500); // slow paths of this thread, for other blocks
  assert_int_equal(stash_length(1, class_id), 0);
  assert_true(gauges().live_bytes < live);
  check_sound();
  end_owner(owner);
}

static void what_ended_threads_left_serves_before_new_runs(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned many = 512;
  pthread_t owner;
  start_owner(&owner, &many);
  give_blocks(0, many);
  hz3_heap_flush(hz3_heap_get());
  assert_true(stash_length(1, class_id) > 0);
  end_owner(owner);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  take_blocks(many);
  assert_true(count(HZ_COUNT_stolen) > 0);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, many);
}

static void packets_of_a_living_owner_are_left_to_it(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned many = 512;
  pthread_t owner;
  start_owner(&owner, &many);
  give_blocks(0, many);
  hz3_heap_flush(hz3_heap_get());
  const unsigned waiting = stash_length(1, class_id);
  take_blocks(many);
  assert_int_equal(stash_length(1, class_id), waiting);
  assert_int_equal(count(HZ_COUNT_stolen), 0);
  give_blocks(0, many);
  end_owner(owner);
}

// ---- When memory ends ---------------------------------------------------------------------------

static void magazine_that_waits_for_blocks_survives_the_emptying_of_all_others(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  take_blocks(1); // the tables have their pages, the first segment too
  fake_os_fail_from(FAKE_COMMIT, 1);
  while (take(BYTES) != NULL) continue; // the last call emptied every cache and found nothing
  const struct hz_magazine *loaded = hz3_heap_get()->loaded[class_id];
  for (int i = 0; i < 100; i++)
    assert_ptr_not_equal(hz_magazine_new(hz3_limits[class_id].capacity), loaded);
}

static void line_without_its_table_does_not_start(void **state) {
  (void)state;
  options_default();
  fake_os_install();
  assert_true(hz_core_start(&core_options));
  fake_os_fail_nth(FAKE_RESERVE_TABLE, 1);
  assert_false(line->start());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(last_freed_block_is_first_used),
      cmocka_unit_test(full_magazines_go_to_the_depot_and_come_back_whole),
      cmocka_unit_test(depot_keeps_no_more_than_its_budget),
      cmocka_unit_test(threads_that_share_a_shard_share_its_depot),
      cmocka_unit_test(more_threads_than_shards_share_them),
      cmocka_unit_test(gauges_count_what_lies_in_depots),
      cmocka_unit_test(foreign_blocks_travel_in_packets_to_their_owner),
      cmocka_unit_test(packet_that_never_filled_is_handed_over_at_thread_exit),
      cmocka_unit_test(stash_beyond_its_budget_serves_all),
      cmocka_unit_test(blocks_of_an_ended_thread_go_to_the_runs),
      cmocka_unit_test(packets_that_their_owner_does_not_fetch_go_to_the_runs),
      cmocka_unit_test(what_ended_threads_left_serves_before_new_runs),
      cmocka_unit_test(packets_of_a_living_owner_are_left_to_it),
      cmocka_unit_test(magazine_that_waits_for_blocks_survives_the_emptying_of_all_others),
      cmocka_unit_test(line_without_its_table_does_not_start),
  };
  return isolated_run(tests, hz_count_of(tests));
}
