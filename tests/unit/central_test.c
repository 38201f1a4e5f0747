// core/central: bitmaps that know of every block whether it is free, and refuse what is none.
#include "core/central.h"

#include "core/counter.h"
#include "core/meta.h"
#include "core/misuse.h"
#include "tests/support/fake_os.h"
#include "tests/support/random.h"
#include "tests/unit/isolated.h"

enum { MAX_BLOCKS = 4096, HOME = 3 };
static_assert(HZ_SLAB_BYTES / 16 == MAX_BLOCKS, "the longest bitmap");

static void start(void) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  assert_true(hz_arena_start(256 * HZ_MIB));
  hz_central_start();
}

static void assert_sound(void) {
  const char *broken = hz_central_check(NULL);
  if (broken == NULL) broken = hz_arena_check();
  if (broken != NULL) fail_msg("%s", broken);
}

static struct hz_run *carve(unsigned class_id, unsigned home) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  assert_non_null(run);
  assert_true(hz_central_carve(run, class_id, home));
  return run;
}

static struct hz_run *give(unsigned class_id, void *const *blocks, uint32_t count) {
  return hz_central_give(class_id, blocks, count, "in a test");
}

static unsigned count_of(const struct hz_run *list) {
  unsigned n = 0;
  for (; list != NULL; list = list->next) n++;
  return n;
}

static uint64_t refused(enum hz_counter counter) {
  return hz_counter_read(counter);
}

static void *block_at(const struct hz_run *run, uint32_t index) {
  return (char *)hz_run_base(run) + index * hz_class_bytes(run->class_id);
}

static uint64_t arena_bytes(void) {
  struct hz_arena_totals totals;
  hz_arena_read_totals(&totals);
  return totals.run_bytes;
}

// Takes `count` blocks at random sizes of request, first from a fresh run, then from its home.
static uint32_t take_all(struct hz_run *run, unsigned class_id, void **out, uint32_t step) {
  const uint32_t all = hz_size_classes[class_id].blocks;
  uint32_t got = hz_central_take_new(run, out, hz_min(step, all));
  while (got < all) {
    struct hz_run *from = NULL;
    const uint32_t more =
        hz_central_take(class_id, HOME, out + got, hz_min(step, all - got), &from);
    assert_true(more > 0);
    assert_ptr_equal(from, run);
    got += more;
  }
  return got;
}

static void every_class_gives_each_block_once_and_takes_all_back(void **state) {
  (void)state;
  static void *blocks[MAX_BLOCKS];
  static bool seen[MAX_BLOCKS];
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = carve(c, HOME);
    const uint32_t count = take_all(run, c, blocks, 7);
    assert_int_equal(count, hz_size_classes[c].blocks);
    assert_false(hz_central_has(c, HOME));
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < count; i++) {
      const size_t offset = (size_t)((char *)blocks[i] - (char *)hz_run_base(run));
      assert_int_equal(offset % hz_class_bytes(c), 0);
      assert_true(offset + hz_class_bytes(c) <= (size_t)run->slabs << HZ_SLAB_SHIFT);
      assert_false(seen[offset / hz_class_bytes(c)]);
      seen[offset / hz_class_bytes(c)] = true;
    }
    assert_sound();
    assert_null(give(c, blocks, count - 1));
    assert_int_equal(hz_central_free_bytes(c), (count - 1) * hz_class_bytes(c));
    struct hz_run *empty = give(c, blocks + count - 1, 1);
    assert_ptr_equal(empty, run);
    assert_int_equal(count_of(empty), 1);
    assert_int_equal(hz_central_free_bytes(c), 0);
    assert_false(hz_central_has(c, HOME));
    hz_central_release(empty);
    assert_sound();
    assert_int_equal(arena_bytes(), 0);
  }
  assert_int_equal(hz_counter_read(HZ_COUNT_runs_returned), HZ_CLASS_COUNT);
}

static void first_block_in_address_order_comes_last(void **state) {
  (void)state;
  start();
  struct hz_run *run = carve(0, HOME), *from;
  void *out[200];
  assert_int_equal(hz_central_take_new(run, out, 100), 100);
  for (uint32_t i = 0; i < 100; i++) assert_ptr_equal(out[99 - i], block_at(run, i));
  assert_int_equal(hz_central_take(0, HOME, out, 100, &from), 100);
  for (uint32_t i = 0; i < 100; i++) assert_ptr_equal(out[99 - i], block_at(run, 100 + i));
}

static void short_supply_fills_the_front_of_out(void **state) {
  (void)state;
  start();
  const unsigned class_id = HZ_CLASS_COUNT - 1; // four blocks to a run
  struct hz_run *run = carve(class_id, HOME), *from;
  void *out[10];
  assert_int_equal(hz_central_take_new(run, out, 1), 1);
  assert_int_equal(hz_central_take(class_id, HOME, out, 10, &from), 3);
  for (uint32_t i = 0; i < 3; i++) assert_ptr_equal(out[i], block_at(run, 3 - i));
  assert_int_equal(hz_central_take(class_id, HOME, out, 10, &from), 0);
  run = carve(class_id, HOME);
  assert_int_equal(hz_central_take_new(run, out, 10), 4);
  for (uint32_t i = 0; i < 4; i++) assert_ptr_equal(out[i], block_at(run, 3 - i));
}

static void one_request_may_empty_several_runs(void **state) {
  (void)state;
  start();
  const unsigned class_id = HZ_CLASS_COUNT - 1;
  void *out[8];
  for (int i = 0; i < 2; i++) hz_central_take_new(carve(class_id, HOME), out, 1);
  struct hz_run *from;
  assert_int_equal(hz_central_take(class_id, HOME, out, 8, &from), 6);
  for (int i = 0; i < 6; i++)
    for (int k = i + 1; k < 6; k++) assert_ptr_not_equal(out[i], out[k]);
  assert_ptr_equal(hz_run_of(out[0]), from); // the run of the last block that was found
  assert_sound();
}

// ---- Exactness ---------------------------------------------------------------------------------

static void every_interior_address_is_refused(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = carve(c, HOME);
    void *out[1];
    hz_central_take_new(run, out, 1);
    const uint64_t before = refused(HZ_COUNT_misuse_interior);
    const size_t bytes = hz_class_bytes(c), end = (size_t)run->slabs << HZ_SLAB_SHIFT;
    // Each offset of the first block, then those around every border, to the run's end.
    uint64_t tried = 0;
    for (size_t offset = 1; offset < end; offset += offset < bytes + 64 ? 1 : bytes / 2 - 1) {
      if (offset % bytes == 0 && offset / bytes < run->blocks) continue;
      void *p = (char *)hz_run_base(run) + offset;
      assert_null(give(c, &p, 1));
      tried++;
    }
    assert_true(tried > 15);
    assert_int_equal(refused(HZ_COUNT_misuse_interior), before + tried);
    assert_int_equal(run->free, run->blocks - 1);
  }
  assert_int_equal(refused(HZ_COUNT_misuse_double) + refused(HZ_COUNT_misuse_foreign), 0);
  assert_sound();
}

static void rest_of_a_run_behind_its_last_block_is_no_block(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = carve(c, HOME);
    void *out[1];
    hz_central_take_new(run, out, 1);
    void *p = block_at(run, run->blocks);
    if ((char *)p >= (char *)hz_run_base(run) + ((size_t)run->slabs << HZ_SLAB_SHIFT)) continue;
    const uint64_t before = refused(HZ_COUNT_misuse_interior);
    assert_null(give(c, &p, 1));
    assert_int_equal(refused(HZ_COUNT_misuse_interior), before + 1);
  }
  assert_sound();
}

static void second_free_of_a_block_is_refused(void **state) {
  (void)state;
  start();
  struct hz_run *run = carve(5, HOME);
  void *out[10];
  hz_central_take_new(run, out, 10);
  void *twice[2] = {out[3], out[3]};
  assert_null(give(5, twice, 2));
  assert_int_equal(refused(HZ_COUNT_misuse_double), 1);
  void *never = block_at(run, 500);
  assert_null(give(5, &never, 1));
  assert_int_equal(refused(HZ_COUNT_misuse_double), 2);
  assert_int_equal(run->free, run->blocks - 9);
  assert_sound();
}

static void what_is_no_block_of_the_class_is_refused(void **state) {
  (void)state;
  start();
  struct hz_run *run = carve(5, HOME), *live = hz_arena_take(2, 16);
  atomic_store(&live->state, HZ_RUN_LIVE);
  void *out[1], *strange[] = {&run, hz_run_base(live), (char *)hz_arena_base() + 100 * HZ_MIB};
  hz_central_take_new(run, out, 1);
  for (unsigned i = 0; i < hz_count_of(strange); i++) assert_null(give(5, &strange[i], 1));
  assert_int_equal(refused(HZ_COUNT_misuse_foreign), hz_count_of(strange));
  assert_null(give(6, out, 1)); // a block, but of another class
  assert_int_equal(refused(HZ_COUNT_misuse_foreign), hz_count_of(strange) + 1);
  assert_sound();
}

static void bad_block_among_good_ones_stops_none_of_them(void **state) {
  (void)state;
  start();
  struct hz_run *run = carve(20, HOME);
  void *out[10];
  hz_central_take_new(run, out, 10);
  void *mixed[] = {out[0], (char *)out[1] + 16, out[1], out[0], &run, out[2]};
  assert_null(give(20, mixed, hz_count_of(mixed)));
  assert_int_equal(run->free, run->blocks - 7);
  assert_int_equal(refused(HZ_COUNT_misuse_interior), 1);
  assert_int_equal(refused(HZ_COUNT_misuse_double), 1);
  assert_int_equal(refused(HZ_COUNT_misuse_foreign), 1);
  assert_sound();
}

// ---- Homes -------------------------------------------------------------------------------------

static void blocks_come_from_the_home_that_is_asked(void **state) {
  (void)state;
  start();
  void *out[4];
  struct hz_run *run = carve(8, 10), *from;
  hz_central_take_new(run, out, 1);
  assert_true(hz_central_has(8, 10));
  assert_false(hz_central_has(8, 11));
  assert_int_equal(hz_central_take(8, 11, out, 1, &from), 0);
  assert_int_equal(hz_central_take(8, 10, out, 1, &from), 1);
  assert_ptr_equal(from, run);
}

static void homes_with_free_blocks_are_found_in_a_set(void **state) {
  (void)state;
  start();
  void *out[1];
  assert_int_equal(hz_central_find_home(8, UINT64_MAX), HZ_HOMES);
  hz_central_take_new(carve(8, 10), out, 1);
  assert_int_equal(hz_central_find_home(8, UINT64_MAX), 10);
  assert_int_equal(hz_central_find_home(8, ~(UINT64_C(1) << 10)), HZ_HOMES);
  hz_central_take_new(carve(8, 63), out, 1);
  assert_int_equal(hz_central_find_home(8, UINT64_MAX), 10);
  assert_int_equal(hz_central_find_home(8, UINT64_C(1) << 63), 63);
  assert_int_equal(hz_central_find_home(8, 0), HZ_HOMES);
  assert_int_equal(hz_central_find_home(9, UINT64_MAX), HZ_HOMES);
}

static void run_moves_with_its_free_blocks(void **state) {
  (void)state;
  start();
  void *blocks[8], *out[8];
  const unsigned class_id = HZ_CLASS_COUNT - 1;
  struct hz_run *run = carve(class_id, 1), *from;
  hz_central_take_new(run, blocks, 2);
  hz_central_move(run, 2);
  assert_false(hz_central_has(class_id, 1));
  assert_int_equal(hz_central_take(class_id, 2, out, 8, &from), 2);
  hz_central_move(run, 5); // none free: it goes where it belongs when one is
  assert_sound();
  assert_false(hz_central_has(class_id, 5));
  give(class_id, blocks, 1);
  assert_true(hz_central_has(class_id, 5));
  assert_sound();
}

// ---- Pages inside of runs ----------------------------------------------------------------------

static void purge_takes_only_pages_that_free_blocks_alone_touch(void **state) {
  (void)state;
  start();
  static void *blocks[MAX_BLOCKS];
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = carve(c, HOME);
    const uint32_t count = take_all(run, c, blocks, MAX_BLOCKS);
    const size_t bytes = hz_class_bytes(c);
    for (uint32_t i = 0; i < count; i++) memset(block_at(run, i), (int)(i % 255 + 1), bytes);
    // Two of three stay free, in one range where that is possible, and every 16th alone.
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
      void *p = block_at(run, i);
      if (i % 16 == 5 || i * 3 < count || i == count - 1) kept++;
      else give(c, &p, 1);
    }
    hz_central_purge(c);
    for (uint32_t i = 0; i < count; i++) {
      if (!(i % 16 == 5 || i * 3 < count || i == count - 1)) continue;
      const unsigned char *p = block_at(run, i);
      for (size_t k = 0; k < bytes; k++) assert_int_equal(p[k], i % 255 + 1);
    }
    assert_true(kept > 0);
    assert_sound();
  }
  assert_true(hz_counter_read(HZ_COUNT_purged) > 0);
}

static void purge_gives_back_every_whole_free_page(void **state) {
  (void)state;
  start();
  void *out[16];
  const unsigned class_id = hz_class_of(4096);
  hz_central_take_new(carve(class_id, HOME), out, 1);
  assert_int_equal(hz_central_purge(class_id), 15 * 4096);
  assert_int_equal(fake_os_calls(FAKE_PURGE), 1);
  assert_int_equal(hz_counter_read(HZ_COUNT_purged), 15 * 4096);
  fake_os_fail_nth(FAKE_PURGE, 1);
  assert_int_equal(hz_central_purge(class_id), 0);
}

static void idle_run_decays_once_until_it_is_used_again(void **state) {
  (void)state;
  start();
  void *out[2];
  struct hz_run *from;
  const unsigned class_id = hz_class_of(4096);
  hz_central_take_new(carve(class_id, HOME), out, 1);
  unsigned calls = 10;
  for (int tick = 1; tick < HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_central_decay(class_id, true, &calls), 0);
  assert_int_equal(hz_central_decay(class_id, true, &calls), 15 * 4096);
  assert_int_equal(calls, 9);
  for (int tick = 0; tick < 3 * HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_central_decay(class_id, true, &calls), 0);
  assert_int_equal(hz_central_take(class_id, HOME, out, 1, &from), 1);
  for (int tick = 1; tick < HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_central_decay(class_id, true, &calls), 0);
  assert_int_equal(hz_central_decay(class_id, true, &calls), 14 * 4096);
}

static void decay_without_calls_left_is_made_up_for(void **state) {
  (void)state;
  start();
  void *out[16];
  const unsigned class_id = hz_class_of(4096);
  hz_central_take_new(carve(class_id, HOME), out, 16 - 1);
  for (int i = 0; i < 15; i += 2) give(class_id, &out[i], 1); // ranges of one page
  size_t bytes = 0;
  for (int tick = 0; tick < HZ_IDLE_TICKS + 20; tick++) {
    unsigned calls = 3;
    bytes = hz_central_decay(class_id, true, &calls);
    assert_true(bytes <= 3 * 4096);
    if (tick == HZ_IDLE_TICKS - 1) assert_int_equal(bytes, 3 * 4096);
  }
  unsigned calls = 100;
  for (int tick = 0; tick < 2; tick++) hz_central_decay(class_id, true, &calls);
  calls = 100;
  assert_int_equal(hz_central_decay(class_id, true, &calls), 0); // all done
}

// ---- Random work -------------------------------------------------------------------------------

enum { HELD = 3000, STEPS = 60000 };

static void random_work_keeps_the_books(void **state) {
  (void)state;
  start();
  static struct {
    void *p;
    unsigned class_id;
  } held[HELD];
  const uint64_t seed = random_seed(NULL);
  print_message("seed %llu\n", (unsigned long long)seed);
  struct random_state random = random_start(seed);
  for (int step = 0; step < STEPS; step++) {
    const size_t i = random_between(&random, 0, HELD - 1);
    if (held[i].p != NULL) {
      struct hz_run *run = hz_run_of(held[i].p);
      assert_int_equal(*(uint32_t *)held[i].p, i);
      if (random_next(&random) % 8 == 0)
        hz_central_move(run, (unsigned)random_between(&random, 0, 3));
      hz_central_release(give(held[i].class_id, &held[i].p, 1));
      held[i].p = NULL;
    } else {
      const unsigned c = (unsigned)random_between(&random, 0, HZ_CLASS_COUNT - 1);
      const unsigned home = (unsigned)random_between(&random, 0, 3);
      struct hz_run *from;
      held[i].class_id = c;
      if (hz_central_take(c, home, &held[i].p, 1, &from) == 0)
        assert_int_equal(hz_central_take_new(carve(c, home), &held[i].p, 1), 1);
      *(uint32_t *)held[i].p = (uint32_t)i;
    }
    if (step % 256 == 0) assert_sound();
  }
  for (size_t i = 0; i < HELD; i++)
    if (held[i].p != NULL) hz_central_release(give(held[i].class_id, &held[i].p, 1));
  assert_sound();
  assert_int_equal(arena_bytes(), 0);
}

static void run_without_memory_for_its_bitmap_stays_the_callers(void **state) {
  (void)state;
  start();
  struct hz_run *run = hz_arena_take(1, 16);
  while (hz_meta_take(512) != NULL) fake_os_fail_from(FAKE_MAP, 1);
  assert_false(hz_central_carve(run, 0, HOME));
  hz_arena_give(run);
  assert_sound();
  assert_int_equal(arena_bytes(), 0);
  fake_os_fail_from(FAKE_MAP, 0);
  carve(0, HOME);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_class_gives_each_block_once_and_takes_all_back),
      cmocka_unit_test(first_block_in_address_order_comes_last),
      cmocka_unit_test(short_supply_fills_the_front_of_out),
      cmocka_unit_test(one_request_may_empty_several_runs),
      cmocka_unit_test(every_interior_address_is_refused),
      cmocka_unit_test(rest_of_a_run_behind_its_last_block_is_no_block),
      cmocka_unit_test(second_free_of_a_block_is_refused),
      cmocka_unit_test(what_is_no_block_of_the_class_is_refused),
      cmocka_unit_test(bad_block_among_good_ones_stops_none_of_them),
      cmocka_unit_test(blocks_come_from_the_home_that_is_asked),
      cmocka_unit_test(homes_with_free_blocks_are_found_in_a_set),
      cmocka_unit_test(run_moves_with_its_free_blocks),
      cmocka_unit_test(purge_takes_only_pages_that_free_blocks_alone_touch),
      cmocka_unit_test(purge_gives_back_every_whole_free_page),
      cmocka_unit_test(idle_run_decays_once_until_it_is_used_again),
      cmocka_unit_test(decay_without_calls_left_is_made_up_for),
      cmocka_unit_test(random_work_keeps_the_books),
      cmocka_unit_test(run_without_memory_for_its_bitmap_stays_the_callers),
  };
  return isolated_run(tests, hz_count_of(tests));
}
