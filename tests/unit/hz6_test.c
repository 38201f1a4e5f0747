// What only lines/hz6 does, as a whole: blocks that belong to nobody, checks in every free, and what
// each profile changes. Its layers alone are in the other hz6_..._test.c; what holds for every line
// is in tests/unit/lines_test.c.
#include <sched.h>

#include "tests/unit/hz6_machine.h"

static unsigned class_of_bytes(void) {
  return hz_class_of(BYTES);
}
static unsigned capacity(void) {
  return hz6_policy.of[class_of_bytes()].capacity;
}

// ---- Blocks belong to nobody --------------------------------------------------------------------

static void last_freed_block_is_first_used(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_blocks(0, 3);
  for (int i = 3; i-- > 0;) assert_ptr_equal(take(BYTES), blocks[i]);
}

static void *free_and_take_one(void *p) {
  give(*(void **)p);
  *(void **)p = take(BYTES);
  return NULL;
}

static void block_stays_with_the_thread_that_freed_it(void **state) {
  (void)state;
  line_start();
  void *p = take(BYTES), *again = p;
  in_thread(free_and_take_one, &again);
  assert_ptr_equal(again, p);
  give(p);
  check_nothing_lost();
}

static void magazines_pass_between_threads_before_any_run_is_cut(void **state) {
  (void)state;
  line_start();
  unsigned many = 8 * capacity();
  take_blocks(many);
  give_in_thread(0, many);
  const uint64_t carved = count(HZ_COUNT_runs_carved), refills = count(HZ_COUNT_refills);
  in_thread(take_many, &many);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_true(count(HZ_COUNT_refills) - refills <= 9); // whole magazines
  give_blocks(0, many);
  check_nothing_lost();
}

static void what_waits_for_nobody_serves_other_classes(void **state) {
  (void)state;
  line_start();
  take_blocks(4000);
  give_blocks(0, 4000);
  assert_true(gauges().cached_bytes > 3000 * BYTES);
  for (unsigned ms = 0; ms < 1000; ms += 125) pass_ms(125);
  assert_int_equal(gauges().cached_bytes, 0);
  assert_true(count(HZ_COUNT_runs_returned) >= 60); // of 63; the thread keeps a magazine
  check_nothing_lost();
}

static void pages_inside_quiet_runs_go_to_the_kernel(void **state) {
  (void)state;
  core_options.large_cache_bytes = 0;
  line_start_with("transfer_bytes", 0);
  check_pages_inside_runs_go(hz6_front_flush);
}

static void empty_runs_go_to_the_kernel(void **state) {
  (void)state;
  core_options.large_cache_bytes = 0;
  line_start_with("transfer_bytes", 0);
  check_empty_runs_go(hz6_front_flush);
}

static void records_of_large_blocks_keep_their_distance(void **state) {
  (void)state;
  line_start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c), spread = hz6_policy.of[c].spread;
    assert_true(spread == 1 || (spread <= bytes / 64 && spread > bytes / 128) || spread == 64);
    assert_int_equal(bytes % spread, 0);
  }
}

// ---- Every free is checked ----------------------------------------------------------------------

static void each_way_to_free_wrongly_is_refused_at_once(void) {
  const size_t sizes[] = {1, 16, 100, 1024, 2000, 2049, 5000, 40000, 65536, 100000, 9 * HZ_MIB};
  uint64_t wrong = 0;
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    char *p = take(sizes[i]);
    give(p + 1), wrong++;
    if (sizes[i] > 16) give(p + 16), wrong++;
    if (sizes[i] > 256) give(p + 256), wrong++;
    assert_int_equal(refused(), wrong);
    give(p);
    give(p), wrong++;
    assert_int_equal(refused(), wrong);
  }
  give(&wrong), wrong++;
  assert_int_equal(refused(), wrong);
  check_nothing_lost();
}

static void thread_caches_refuse_bad_frees_at_once(void **state) {
  (void)state;
  line_start();
  each_way_to_free_wrongly_is_refused_at_once();
}
static void owners_refuse_bad_frees_at_once(void **state) {
  (void)state;
  line_start_with("owners", 1);
  each_way_to_free_wrongly_is_refused_at_once();
}

static void pin_to_this_processor(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "cannot stay on a processor");
}

static void start_per_cpu(void) {
  line_start_with("per_cpu", 1);
  if (!hz6_policy.per_cpu) skip(); // valgrind, old kernels, other processors
  pin_to_this_processor();
}

static void processor_caches_refuse_bad_frees_at_once(void **state) {
  (void)state;
  start_per_cpu();
  each_way_to_free_wrongly_is_refused_at_once();
}

static void *free_all(void *unused) {
  (void)unused;
  give_blocks(0, 500);
  return NULL;
}

// At the same time, as far as two processors can.
static void two_threads_that_free_the_same_blocks_do_no_harm(void **state) {
  (void)state;
  line_start();
  for (unsigned round = 0; round < 50; round++) {
    const uint64_t before = refused();
    take_blocks(500);
    const pthread_t one = thread_start(free_all, NULL), two = thread_start(free_all, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    line->trim(0); // those that both saw as live are found in the runs
    assert_int_equal(refused() - before, 500);
  }
  check_nothing_lost();
}

// ---- hz6-strict ---------------------------------------------------------------------------------

static void *free_every_other(void *n) {
  for (unsigned i = 0; i < *(unsigned *)n; i += 2) give(blocks[i]);
  return NULL;
}

static void owners_get_their_blocks_back(void **state) {
  (void)state;
  line_start_with("owners", 1);
  unsigned many = 6 * capacity();
  take_blocks(many);
  const unsigned home = hz6_front_get()->home;
  in_thread(free_every_other, &many);
  assert_int_equal(count(HZ_COUNT_remote_frees), many / 2);
  assert_int_equal(count(HZ_COUNT_remote_batches), 3);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  for (unsigned i = 0; i < many; i += 2) {
    blocks[i] = take(BYTES);
    assert_int_equal(hz_run_of(blocks[i])->home, home);
  }
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, many);
  check_nothing_lost();
}

static void owners_keep_nothing_between_threads(void **state) {
  (void)state;
  options_default();
  option_set("hz6", "owners", 1);
  option_set("hz6", "transfer_bytes", HZ_GIB);
  line_start_as_set();
  take_blocks(1000);
  give_blocks(0, 1000);
  assert_int_equal(gauges().cached_bytes, 0);
  check_nothing_lost();
}

static void *take_and_leave_every_other(void *n) {
  take_blocks(*(unsigned *)n);
  for (unsigned i = 0; i < *(unsigned *)n; i += 2) give(blocks[i]);
  return NULL;
}

static void *take_over(void *unused) {
  (void)unused;
  static void *mine[1000];
  for (unsigned i = 0; i < 1000; i++) mine[i] = take(BYTES);
  for (unsigned i = 0; i < 1000; i++) give(mine[i]);
  return NULL;
}

// Under the thread sanitizer: a run's home is read by who frees, and changed by who takes it over.
static void runs_change_homes_while_others_free_their_blocks(void **state) {
  (void)state;
  line_start_with("owners", 1);
  give(take(1)); // so that the others have other homes
  unsigned many = 2000;
  in_thread(take_and_leave_every_other, &many);
  const pthread_t thread = thread_start(take_over, NULL);
  for (unsigned i = 1; i < many; i += 2) give(blocks[i]);
  pthread_join(thread, NULL);
  assert_int_equal(refused(), 0);
  check_nothing_lost();
}

// ---- hz6-percpu ---------------------------------------------------------------------------------

static void *take_and_free_one_of_each_class(void *unused) {
  (void)unused;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) give(take(hz_class_bytes(c)));
  return NULL;
}

static void thousand_threads_share_a_processors_cache(void **state) {
  (void)state;
  start_per_cpu();
  in_thread(take_and_free_one_of_each_class, NULL);
  const uint64_t refills = count(HZ_COUNT_refills), records = hz_meta_bytes();
  for (unsigned i = 0; i < 1000; i++) in_thread(take_and_free_one_of_each_class, NULL);
  assert_int_equal(count(HZ_COUNT_refills), refills);
  assert_int_equal(hz_meta_bytes(), records);
  assert_int_equal(gauges().threads, 1);
  check_nothing_lost();
}

static void processors_exchange_whole_magazines(void **state) {
  (void)state;
  start_per_cpu();
  const unsigned many = 8 * capacity();
  take_blocks(many);
  const uint64_t carved = count(HZ_COUNT_runs_carved), overflows = count(HZ_COUNT_overflows);
  give_blocks(0, many);
  assert_true(count(HZ_COUNT_overflows) - overflows <= 8);
  take_blocks(many);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  check_sound();
  give_blocks(0, many);
  check_nothing_lost();
}

static void child_has_the_processors_caches(void **state) {
  (void)state;
  start_per_cpu();
  take_blocks(100);
  give_blocks(0, 50);
  const pid_t child = fork_with_handlers();
  if (child == 0) {
    give_blocks(50, 100);
    take_blocks(100);
    give_blocks(0, 100);
    check_nothing_lost();
    _exit(0);
  }
  check_child(child);
  give_blocks(50, 100);
  check_nothing_lost();
}

// ---- hz6-realloc-boundary -----------------------------------------------------------------------

static size_t usable(void *p) {
  return hz_line_table(line)->usable_size(p);
}
static char *grow(char *p, size_t bytes) {
  return hz_line_table(line)->resize(p, bytes);
}

static void what_grows_gets_room_for_its_next_growth(void **state) {
  (void)state;
  line_start_with("growth_room", 1);
  const size_t sizes[] = {100, 1000, 3000, 20000, 60000, 200000, 1000000};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    char *p = take(sizes[i]);
    const size_t had = usable(p);
    pattern_fill(p, had, 5);
    p = grow(p, had + 1);
    assert_non_null(p);
    assert_int_equal(pattern_intact(p, had, had, 5), had);
    // Above 64 KiB it may grow where it is, without room.
    if (had <= HZ_CLASS_MAX_BYTES) assert_true(usable(p) >= had + had / 2);
    const size_t roomy = usable(p);
    assert_ptr_equal(grow(p, had + 2), p);
    assert_int_equal(usable(p), roomy); // room is not given back before it is used
    assert_ptr_equal(grow(p, roomy), p);
    assert_ptr_equal(grow(p, had + 1), p);
    give(p);
  }
  check_nothing_lost();
}

static void without_growth_room_nothing_gets_more(void **state) {
  (void)state;
  line_start();
  char *p = take(1000);
  assert_null(grow(p, 1025));
  give(p);
}

static void blocks_of_4_and_8_kib_are_roomier_while_such_blocks_grow(void **state) {
  (void)state;
  line_start_with("growth_room", 1);
  const size_t sizes[] = {4096, 8192};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    void *p = take(sizes[i]);
    assert_int_equal(usable(p), sizes[i]);
    for (unsigned n = 0; n < 4; n++) {
      char *growing = take(sizes[i]);
      give(grow(growing, sizes[i] + 100));
    }
    void *roomy = take(sizes[i]);
    assert_int_equal(usable(roomy), sizes[i] + sizes[i] / 4);
    assert_ptr_equal(grow(roomy, sizes[i] + 100), roomy);
    give(roomy);
    give(p);
  }
  for (unsigned ms = 0; ms < 1000; ms += 125) { // as long as they go on growing, now in place
    for (unsigned n = 0; n < 4; n++) {
      char *growing = take(4096);
      assert_ptr_equal(grow(growing, 4200), growing);
      give(growing);
    }
    pass_ms(125);
  }
  for (unsigned ms = 0; ms < 500; ms += 125) pass_ms(125); // none has grown since
  void *p = take(4096);
  assert_int_equal(usable(p), 4096);
  give(p);
  check_nothing_lost();
}

static void shrinking_blocks_get_no_room(void **state) {
  (void)state;
  line_start_with("growth_room", 1);
  char *p = take(60000);
  assert_null(grow(p, 100));
  give(p);
}

// ---- No table fills up --------------------------------------------------------------------------

static void hundred_thousand_runs_live_at_once(void **state) {
  (void)state;
  enum { RUNS = 100000 };
  core_options.reserve_bytes = 64 * HZ_GIB;
  line_start();
  void **runs = calloc(RUNS, sizeof *runs);
  for (unsigned i = 0; i < RUNS; i++) {
    runs[i] = take(i % 2 ? 65536 + 1 : 49152); // a run block of two slabs, or of a run of four
    assert_non_null(runs[i]);
  }
  assert_int_equal(refused(), 0);
  for (unsigned i = 0; i < RUNS; i++) give(runs[i]);
  free(runs);
  check_nothing_lost();
}

static void sixteen_gib_of_blocks_are_served(void **state) {
  (void)state;
  core_options.reserve_bytes = 256 * HZ_GIB;
  line_start();
  static void *p[3][400];
  const size_t bytes[] = {65536, HZ_MIB, 40 * HZ_MIB}; // the last alone is 15.6 GiB
  for (unsigned i = 0; i < 3; i++)
    for (unsigned k = 0; k < 400; k++) assert_non_null(p[i][k] = take(bytes[i]));
  assert_true(gauges().live_bytes > 16 * HZ_GIB);
  for (unsigned i = 0; i < 3; i++)
    for (unsigned k = 0; k < 400; k++) give(p[i][k]);
  check_nothing_lost();
}

// ---- The checker --------------------------------------------------------------------------------

static void check_finds_what_is_wrong_in_each_layer(void **state) {
  (void)state;
  line_start();
  take_blocks(200);
  give_blocks(0, 1);
  check_sound();
  void *waiting = blocks[0]; // in this thread's magazine
  hz6_front_flush();         // now in the transfer cache
  _Atomic uint8_t *mark = hz6_route_mark(waiting);
  hz6_mark_set(mark, class_of_bytes() + 1);
  assert_string_equal(line->check(), "hz6: a waiting block is marked as live, or is none");
  hz6_mark_set(mark, 0);
  _Atomic uint8_t *live = hz6_route_mark(blocks[199]); // of a listed run
  hz6_mark_set(live, 1);
  assert_string_equal(line->check(), "hz6: a block is marked as of another class");
  hz6_mark_set(live, class_of_bytes() + 1);
  struct hz_run *run = hz_run_of(blocks[5]);
  const uint8_t slabs = run->slabs;
  run->slabs = 0;
  assert_string_equal(line->check(), "arena: a taken slab does not begin a run");
  run->slabs = slabs;
  give_blocks(1, 200);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(last_freed_block_is_first_used),
      cmocka_unit_test(block_stays_with_the_thread_that_freed_it),
      cmocka_unit_test(magazines_pass_between_threads_before_any_run_is_cut),
      cmocka_unit_test(what_waits_for_nobody_serves_other_classes),
      cmocka_unit_test(pages_inside_quiet_runs_go_to_the_kernel),
      cmocka_unit_test(empty_runs_go_to_the_kernel),
      cmocka_unit_test(records_of_large_blocks_keep_their_distance),
      cmocka_unit_test(thread_caches_refuse_bad_frees_at_once),
      cmocka_unit_test(owners_refuse_bad_frees_at_once),
      cmocka_unit_test(processor_caches_refuse_bad_frees_at_once),
      cmocka_unit_test(two_threads_that_free_the_same_blocks_do_no_harm),
      cmocka_unit_test(owners_get_their_blocks_back),
      cmocka_unit_test(owners_keep_nothing_between_threads),
      cmocka_unit_test(runs_change_homes_while_others_free_their_blocks),
      cmocka_unit_test(thousand_threads_share_a_processors_cache),
      cmocka_unit_test(processors_exchange_whole_magazines),
      cmocka_unit_test(child_has_the_processors_caches),
      cmocka_unit_test(what_grows_gets_room_for_its_next_growth),
      cmocka_unit_test(without_growth_room_nothing_gets_more),
      cmocka_unit_test(blocks_of_4_and_8_kib_are_roomier_while_such_blocks_grow),
      cmocka_unit_test(shrinking_blocks_get_no_room),
      cmocka_unit_test(check_finds_what_is_wrong_in_each_layer),
      cmocka_unit_test(hundred_thousand_runs_live_at_once),
      cmocka_unit_test(sixteen_gib_of_blocks_are_served),
  };
  return isolated_run(tests, hz_count_of(tests));
}
