// What only lines/hz4 has: heads, packets, queues. Heaps without a thread: hz4_idle_test.c; the
// checker: hz4_check_test.c; what holds for every line: lines_test.c.
#include "tests/unit/hz4_machine.h"

static struct hz4_heap *owner; // that a thread of the case sends to

// ---- The head -----------------------------------------------------------------------------------

static void check_head(const struct hz_run *run, const struct hz4_heap *owner, unsigned class_id) {
  for (unsigned i = 0; i < run->slabs; i++) {
    const struct hz4_page *page =
        hz4_page_at((char *)hz_run_base(run) + ((size_t)i << HZ_SLAB_SHIFT));
    assert_ptr_equal(hz4_owner(page), owner);
    if (owner == NULL) continue;
    assert_int_equal(hz4_class(page), class_id);
    assert_int_equal(atomic_load(&page->lane), owner->index % HZ4_LANES);
  }
}

static void head_names_owner_and_class_of_each_slab_while_a_block_is_out(void **state) {
  (void)state;
  line_start();
  void *holder = take(HZ_SLAB_BYTES + 1); // the segment stays
  assert_null(hz4_owner_of(holder));
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    char *p = take(hz_class_bytes(c));
    const struct hz_run *run = hz_run_of(p);
    flush(); // the others go back to the page
    check_head(run, hz4_heap_get(), c);
    assert_ptr_equal(hz4_owner_of(p + hz_class_bytes(c) - 1), hz4_heap_get());
    give(p);
    flush();
    check_head(run, NULL, c);
  }
  assert_int_equal(count(HZ_COUNT_runs_carved), count(HZ_COUNT_runs_returned));
  give(holder);
  check_nothing_lost();
}

static void slabs_of_returned_pages_serve_blocks_that_have_no_owner(void **state) {
  (void)state;
  line_start();
  void *small = take(BYTES), *holder = take(HZ_SLAB_BYTES + 1);
  const struct hz_run *page = hz_run_of(small);
  const void *base = hz_run_base(page);
  give(small);
  flush();
  char *run = take(30 * HZ_SLAB_BYTES);
  assert_true(run == base || run == (char *)holder + 2 * HZ_SLAB_BYTES);
  for (unsigned i = 0; i < 30; i++) assert_null(hz4_owner_of(run + (size_t)i * HZ_SLAB_BYTES));
  give(run);
  give(run); // told apart from a block of a class
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  give(holder);
  check_nothing_lost();
}

static void head_is_no_block(void **state) {
  (void)state;
  line_start();
  assert_false(hz_arena_run_fits(HZ_SEGMENT_BYTES, 1)); // a run leaves room for it
  assert_true(hz_arena_run_fits(HZ_SEGMENT_BYTES - HZ_SLAB_BYTES, 1));
  give(take(BYTES)); // there is a segment
  char *head = hz_arena_base();
  void *inside[] = {head, head + 64, head + HZ_SLAB_BYTES - 16};
  for (unsigned i = 0; i < hz_count_of(inside); i++) {
    give(inside[i]);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 1);
    assert_int_equal(line->table.usable_size(inside[i]), 0);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 2);
    assert_null(line->table.resize(inside[i], 100));
  }
  check_nothing_lost();
}

static void blocks_of_the_thread_itself_are_in_no_packet(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_blocks(0, 3);
  for (int i = 3; i-- > 0;) assert_ptr_equal(take(BYTES), blocks[i]); // last freed, first used
  give_blocks(0, 3);
  assert_int_equal(count(HZ_COUNT_remote_frees), 0);
  check_nothing_lost();
}

// ---- Packets ------------------------------------------------------------------------------------

static void foreign_blocks_travel_in_packets_to_their_owner(void **state) {
  (void)state;
  line_start();
  const unsigned three = 3 * (unsigned)hz4_options.packet_blocks;
  take_blocks(three);
  give_in_thread(0, three);
  assert_int_equal(count(HZ_COUNT_remote_frees), three);
  assert_int_equal(count(HZ_COUNT_remote_batches), 3);
  assert_int_equal(queue_length(hz4_heap_get()), 3);
  check_sound();
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  take_blocks(three);
  assert_int_equal(queue_length(hz4_heap_get()), 0);
  assert_int_equal(count(HZ_COUNT_collected), 3);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, three);
  check_nothing_lost();
}

static void packet_of_one_class_is_loaded_whole(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes(), refill = hz4_limits[class_id].refill;
  struct hz4_heap *heap = hz4_heap_get();
  take_blocks(refill); // and the magazine is empty
  assert_int_equal(loaded_blocks(heap, class_id), 0);
  give_in_thread(0, refill);
  const struct hz_magazine *packet = atomic_load(&heap->queue);
  assert_int_equal(packet->note, class_id);
  assert_int_equal(packet->count, refill);
  assert_ptr_equal(take(BYTES), blocks[refill - 1]);
  assert_ptr_equal(heap->loaded[class_id], packet);
  assert_int_equal(packet->capacity, hz4_limits[class_id].capacity);
  assert_int_equal(loaded_blocks(heap, class_id), refill - 1);
  assert_non_null(atomic_load(&heap->returned)); // an empty one for the next sender
  give(blocks[refill - 1]);
  check_nothing_lost();
}

// Takes blocks of two classes in turn, until both magazines are empty.
static unsigned take_mixed(void) {
  const unsigned n = 2 * hz4_limits[class_of_bytes()].refill;
  for (unsigned i = 0; i < n; i++) blocks[i] = take(i % 2 == 0 ? BYTES : OTHER_BYTES);
  return n;
}

static void mixed_packet_is_sorted_into_the_magazines_of_its_classes(void **state) {
  (void)state;
  line_start();
  struct hz4_heap *heap = hz4_heap_get();
  const unsigned n = take_mixed(), other = hz_class_of(OTHER_BYTES);
  give_in_thread(0, n);
  assert_int_equal(count(HZ_COUNT_remote_batches), 1);
  assert_int_equal(atomic_load(&heap->queue)->note, HZ4_MIXED);
  check_sound();
  assert_ptr_equal(take(BYTES), blocks[n - 2]);
  assert_int_equal(loaded_blocks(heap, class_of_bytes()), n / 2 - 1);
  assert_int_equal(loaded_blocks(heap, other), n / 2);
  for (unsigned i = 0; i < n; i++) assert_true(i == n - 2 || !free_in_page(blocks[i]));
  give(blocks[n - 2]);
  check_nothing_lost();
}

static void what_does_not_fit_the_magazines_goes_to_the_pages(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "magazine_blocks", 16);
  option_set("hz4", "refill_blocks", 16);
  line_start_as_set();
  struct hz4_heap *heap = hz4_heap_get();
  take_blocks(64); // the magazine is empty
  assert_int_equal(loaded_blocks(heap, class_of_bytes()), 0);
  void *other = take(OTHER_BYTES);
  blocks[64] = other;
  give_in_thread(0, 65);
  const uint64_t free_bytes = atomic_load(&heap->free_bytes);
  assert_ptr_equal(take(BYTES), blocks[15]);
  assert_int_equal(loaded_blocks(heap, class_of_bytes()), 15);
  assert_int_equal(loaded_blocks(heap, hz_class_of(OTHER_BYTES)), 16);
  const uint64_t to_pages = atomic_load(&heap->free_bytes) - free_bytes;
  assert_true(to_pages == 48 * 1024 || count(HZ_COUNT_runs_returned) > 0);
  check_sound();
  give(blocks[15]);
  check_nothing_lost();
}

static void packet_of_one_class_that_is_too_long_is_sorted(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "magazine_blocks", 16);
  option_set("hz4", "refill_blocks", 16);
  line_start_as_set();
  take_blocks(64);
  give_in_thread(0, 64);
  assert_int_equal(queue_length(hz4_heap_get()), 1);
  assert_non_null(take(BYTES));
  assert_int_equal(loaded_blocks(hz4_heap_get(), class_of_bytes()), 15);
  check_sound();
}

static void *fill_a_packet(void *unused) {
  (void)unused;
  const unsigned packet = (unsigned)hz4_options.packet_blocks;
  give_blocks(0, packet);
  CHECK(queue_length(owner) == 0, "sent before it was full");
  give_blocks(packet, packet + 1);
  CHECK(queue_length(owner) == 1, "not sent when it was full");
  CHECK(atomic_load(&owner->queue)->count == packet, "not sent whole");
  return NULL;
}

static void packet_is_sent_when_it_is_full(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packet_blocks", 8);
  line_start_as_set();
  owner = hz4_heap_get();
  take_blocks(9);
  in_thread(fill_a_packet, NULL);
  assert_int_equal(queue_length(owner), 2); // the ninth: at the thread's end
  check_sound();
  check_nothing_lost();
}

enum { WIDE = 8192 };

static void *collect_wide_blocks(void *unused) {
  (void)unused;
  unsigned given = 0;
  while (queue_length(owner) == 0) give(blocks[given++]);
  const size_t bytes = given * (size_t)WIDE, bound = hz4_options.packets_bytes;
  CHECK(bytes > bound, "%zu bytes are sent already", bytes);
  CHECK(bytes <= bound + 2 * (size_t)WIDE, "%zu bytes are sent only now", bytes);
  CHECK(queue_length(owner) == 1 && atomic_load(&owner->queue)->count == given, "not all are sent");
  for (; given < 20; given++) give(blocks[given]);
  return NULL;
}

static void packets_are_sent_when_enough_bytes_of_wide_blocks_are_collected(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packets_bytes", 8 * WIDE);
  line_start_as_set();
  owner = hz4_heap_get();
  assert_true(hz_class_of(WIDE) >= HZ4_WIDE_CLASS);
  assert_true(hz_class_bytes(HZ4_WIDE_CLASS - 1) <= 1024 && hz_class_bytes(HZ4_WIDE_CLASS) > 1024);
  for (unsigned i = 0; i < 20; i++) blocks[i] = take(WIDE);
  in_thread(collect_wide_blocks, NULL);
  check_nothing_lost();
}

static void *collect_one_wide_block(void *unused) {
  (void)unused;
  give(blocks[0]);
  CHECK(queue_length(owner) == 1, "the first block of a packet counts");
  give(blocks[1]);
  CHECK(queue_length(owner) == 2, "a packet that was sent counts no more");
  return NULL;
}

static void no_bytes_allowed_means_that_each_wide_block_is_sent(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packets_bytes", 0);
  line_start_as_set();
  owner = hz4_heap_get();
  for (unsigned i = 0; i < 2; i++) blocks[i] = take(WIDE);
  in_thread(collect_one_wide_block, NULL);
  check_nothing_lost();
}

static void *send_at_a_tick(void *unused) {
  (void)unused;
  give_blocks(0, 3);
  pass_ms(0);
  CHECK(queue_length(owner) == 0, "sent before the tick");
  pass_ms(500);
  CHECK(queue_length(owner) == 1, "not sent at the tick");
  return NULL;
}

static void packets_are_sent_at_a_tick(void **state) {
  (void)state;
  line_start();
  owner = hz4_heap_get();
  take_blocks(3);
  in_thread(send_at_a_tick, NULL);
  check_nothing_lost();
}

static void *send_after_another_threads_tick(void *unused) {
  (void)unused;
  give_blocks(0, 3);
  atomic_store(&turn, 1);
  wait_turn(2);
  CHECK(queue_length(owner) == 0, "sent without a slow path");
  pass_ms(0);
  CHECK(queue_length(owner) == 1, "not sent after the tick");
  return NULL;
}

static void packets_are_sent_after_a_tick_whoever_had_it(void **state) {
  (void)state;
  line_start();
  owner = hz4_heap_get();
  take_blocks(3);
  const pthread_t thread = thread_start(send_after_another_threads_tick, NULL);
  wait_turn(1);
  pass_ms(500);
  atomic_store(&turn, 2);
  pthread_join(thread, NULL);
  check_nothing_lost();
}

static void one_call_looks_into_some_packets_only(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packet_blocks", 4);
  line_start_as_set();
  take_blocks(400);
  give_in_thread(0, 400);
  assert_int_equal(queue_length(hz4_heap_get()), 100);
  void *other = take(OTHER_BYTES); // of a class that none of the packets has
  assert_true(count(HZ_COUNT_collected) >= 8 && count(HZ_COUNT_collected) <= 32);
  check_sound();
  give(other);
  check_nothing_lost();
}

// ---- Bad frees in packets -----------------------------------------------------------------------

// Frees two blocks into one packet of several classes and sends it when told to.
static void *give_two_late(void *two) {
  give(((void **)two)[0]);
  give(((void **)two)[1]);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

// Nothing may be read where the block was.
static void block_in_a_packet_whose_segment_has_gone_is_told(void **state) {
  (void)state;
  line_start();
  void *two[] = {take(OTHER_BYTES), NULL};
  void *rest = take(HZ_SEGMENT_BYTES - 2 * HZ_SLAB_BYTES); // the first segment is full
  two[1] = take(40000);
  assert_true(hz_run_base(hz_run_of(two[0])) < hz_run_base(hz_run_of(two[1])));
  const pthread_t thread = thread_start(give_two_late, two);
  wait_turn(1);
  give(two[1]); // the second free of it
  line->trim(0);
  assert_null(hz_run_of(two[1]));
  atomic_store(&turn, 2);
  pthread_join(thread, NULL);
  assert_int_equal(count(HZ_COUNT_misuse_foreign), 0);
  line->trim(0);
  assert_int_equal(count(HZ_COUNT_misuse_foreign), 1);
  give(rest);
  check_nothing_lost();
}

static void packets_are_sent_at_thread_exit(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_in_thread(0, 3);
  assert_int_equal(queue_length(hz4_heap_get()), 1);
  assert_int_equal(count(HZ_COUNT_remote_frees), 3);
  check_nothing_lost();
}

static void *overfill_a_queue(void *unused) {
  (void)unused;
  unsigned most = 0, settled = 0;
  for (unsigned i = 0; i < 600; i++) {
    const unsigned before = queue_length(owner);
    give(blocks[i]);
    const unsigned now = queue_length(owner);
    CHECK(queue_kib(owner) * HZ_KIB <= hz4_options.queue_bytes, "more waits than may");
    CHECK(now >= before || now == 0, "who sends more settles it all");
    most = now > most ? now : most;
    settled += now < before;
  }
  CHECK(most == 3 && settled > 5, "%u waited, settled %u times", most, settled);
  return NULL;
}

static void queue_beyond_its_budget_goes_to_the_pages(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packet_blocks", 16);
  option_set("hz4", "queue_bytes", 64 * HZ_KIB); // three packets of 16 blocks, each rounded up
  line_start_as_set();
  owner = hz4_heap_get();
  take_blocks(600);
  in_thread(overfill_a_queue, NULL);
  assert_true(atomic_load(&owner->free_bytes) > 0 || count(HZ_COUNT_runs_returned) > 0);
  check_sound();
  check_nothing_lost();
}

static void *have_a_heap(void *unused) {
  (void)unused;
  give(take(1));
  atomic_fetch_add(&turn, 1);
  wait_turn(1000);
  return NULL;
}

// The last of the crowd shares the first heap's lane.
static void *give_for_two_owners(void *two) {
  void **theirs = two;
  give(blocks[0]);
  give(theirs[0]);
  CHECK(free_in_page(theirs[0]), "a block that finds the lane taken goes to its page");
  CHECK(queue_length(owner) == 0, "a lane is given up for one block of another owner");
  give(theirs[1]);
  CHECK(queue_length(owner) == 1, "a lane is kept against more blocks than its packet holds");
  give(blocks[1]);
  CHECK(free_in_page(blocks[1]), "a block that finds the lane taken goes to its page");
  return NULL;
}

static void *own_then_wait(void *theirs) {
  ((void **)theirs)[0] = take(BYTES);
  ((void **)theirs)[1] = take(BYTES);
  return have_a_heap(NULL);
}

static void owners_that_share_a_lane_get_their_own_blocks(void **state) {
  (void)state;
  line_start();
  owner = hz4_heap_get();
  take_blocks(2);
  static pthread_t threads[HZ4_LANES];
  void *theirs[2];
  for (unsigned i = 0; i < HZ4_LANES; i++) {
    threads[i] = thread_start(i + 1 < HZ4_LANES ? have_a_heap : own_then_wait, theirs);
    wait_turn(i + 1);
  }
  struct hz4_heap *second = hz4_owner_of(theirs[0]);
  assert_int_equal(second->index % HZ4_LANES, owner->index % HZ4_LANES);
  assert_ptr_not_equal(second, owner);
  in_thread(give_for_two_owners, theirs);
  assert_int_equal(count(HZ_COUNT_remote_frees), 4); // by whichever way
  assert_int_equal(queue_length(owner), 1);
  assert_int_equal(queue_length(second), 1);
  assert_ptr_equal(atomic_load(&second->queue)->slots[1], theirs[1]);
  check_sound();
  atomic_store(&turn, 1000);
  for (unsigned i = 0; i < HZ4_LANES; i++) pthread_join(threads[i], NULL);
  check_nothing_lost();
}

// ---- Magazines ----------------------------------------------------------------------------------

static void overflow_gives_the_older_half(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes(), capacity = hz4_limits[class_id].capacity;
  take_blocks(2 * capacity);
  flush(); // nothing in the magazine
  give_blocks(0, capacity);
  assert_int_equal(count(HZ_COUNT_overflows), 1); // the first one, to load a magazine
  for (unsigned i = 0; i < capacity; i++) assert_false(free_in_page(blocks[i]));
  give(blocks[capacity]);
  assert_int_equal(count(HZ_COUNT_overflows), 2);
  assert_int_equal(loaded_blocks(hz4_heap_get(), class_id), capacity / 2 + 1);
  for (unsigned i = capacity / 2; i <= capacity; i++) assert_false(free_in_page(blocks[i]));
  for (unsigned i = 0; i < capacity / 2; i++) // its page may have gone as a whole
    assert_true(hz4_owner_of(blocks[i]) == NULL || free_in_page(blocks[i]));
  check_sound();
  give_blocks(capacity + 1, 2 * capacity);
  check_nothing_lost();
}

static void gauges_count_what_waits_in_queues(void **state) {
  (void)state;
  line_start();
  take_blocks(1000);
  give_in_thread(0, 1000);
  assert_true(gauges().cached_bytes >= 1000 * 1000);
  assert_true(gauges().cached_bytes <= gauges().live_bytes);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(head_names_owner_and_class_of_each_slab_while_a_block_is_out),
      cmocka_unit_test(slabs_of_returned_pages_serve_blocks_that_have_no_owner),
      cmocka_unit_test(head_is_no_block),
      cmocka_unit_test(blocks_of_the_thread_itself_are_in_no_packet),
      cmocka_unit_test(foreign_blocks_travel_in_packets_to_their_owner),
      cmocka_unit_test(packet_of_one_class_is_loaded_whole),
      cmocka_unit_test(mixed_packet_is_sorted_into_the_magazines_of_its_classes),
      cmocka_unit_test(what_does_not_fit_the_magazines_goes_to_the_pages),
      cmocka_unit_test(packet_of_one_class_that_is_too_long_is_sorted),
      cmocka_unit_test(packet_is_sent_when_it_is_full),
      cmocka_unit_test(packets_are_sent_when_enough_bytes_of_wide_blocks_are_collected),
      cmocka_unit_test(no_bytes_allowed_means_that_each_wide_block_is_sent),
      cmocka_unit_test(packets_are_sent_at_a_tick),
      cmocka_unit_test(packets_are_sent_after_a_tick_whoever_had_it),
      cmocka_unit_test(one_call_looks_into_some_packets_only),
      cmocka_unit_test(block_in_a_packet_whose_segment_has_gone_is_told),
      cmocka_unit_test(packets_are_sent_at_thread_exit),
      cmocka_unit_test(queue_beyond_its_budget_goes_to_the_pages),
      cmocka_unit_test(owners_that_share_a_lane_get_their_own_blocks),
      cmocka_unit_test(overflow_gives_the_older_half),
      cmocka_unit_test(gauges_count_what_waits_in_queues),
  };
  return isolated_run(tests, hz_count_of(tests));
}
