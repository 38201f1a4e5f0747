// core/class_run: one run's bitmap. It knows of every block whether it is free, refuses what is no
// block, and gives back the pages that only free blocks touch.
#include "core/class_run.h"

#include "core/counter.h"
#include "core/meta.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

enum { MAX_BLOCKS = 4096, PLENTY = 1000 };
static_assert(HZ_SLAB_BYTES / 16 == MAX_BLOCKS, "the longest bitmap");

static void *out[MAX_BLOCKS];

static void start(void) {
  fake_os_install();
  assert_true(hz_arena_start(256 * HZ_MIB));
}

static struct hz_run *open_run(unsigned class_id) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  assert_non_null(run);
  assert_true(hz_class_run_open(run, class_id));
  return run;
}

static void assert_sound(const struct hz_run *run) {
  const char *broken = hz_class_run_check(run);
  if (broken != NULL) fail_msg("%s", broken);
}

static void assert_broken(const struct hz_run *run, const char *expected) {
  const char *broken = hz_class_run_check(run);
  assert_non_null(broken);
  assert_string_equal(broken, expected);
}

static char *block_at(const struct hz_run *run, uint32_t index) {
  return (char *)hz_run_base(run) + index * hz_class_bytes(run->class_id);
}

static void give(struct hz_run *run, const void *block) {
  enum hz_misuse_kind reason;
  assert_true(hz_class_run_give(run, run->class_id, block, &reason));
}

static void assert_refused(struct hz_run *run, unsigned class_id, const void *block,
                           enum hz_misuse_kind expected) {
  enum hz_misuse_kind reason;
  const uint32_t before = run != NULL ? run->free : 0;
  assert_false(hz_class_run_give(run, class_id, block, &reason));
  assert_int_equal(reason, expected);
  if (run != NULL) assert_int_equal(run->free, before);
}

// ---- Taking and giving --------------------------------------------------------------------------

static void opened_run_has_all_blocks_of_its_class_free(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
    assert_int_equal(run->state, HZ_RUN_CLASS);
    assert_int_equal(run->class_id, c);
    assert_int_equal(run->blocks, hz_size_classes[c].blocks);
    assert_int_equal(run->free, run->blocks);
    for (uint32_t i = 0; i < run->blocks; i++) assert_true(hz_class_run_has(run, block_at(run, i)));
    assert_sound(run);
    hz_class_run_close(run);
    hz_arena_give(run);
  }
  assert_null(hz_arena_check());
}

static void every_class_gives_each_block_once_and_takes_all_back(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
    uint32_t got = 0;
    for (uint32_t n; (n = hz_class_run_take(run, out, 7)) != 0; got += n) {
      for (uint32_t i = 0; i < n; i++) {
        // The lowest first, and the lowest of a portion last in it, so that it is used first.
        const char *expected = block_at(run, got + i);
        const uint32_t last = n < 7 ? 7 : n; // of a short portion, the front stays empty
        assert_ptr_equal(out[last - 1 - i], expected);
        assert_false(hz_class_run_has(run, expected));
      }
      assert_sound(run);
    }
    assert_int_equal(got, run->blocks);
    assert_int_equal(run->free, 0);
    for (uint32_t i = run->blocks; i-- > 0;) give(run, block_at(run, i));
    assert_int_equal(run->free, run->blocks);
    assert_sound(run);
  }
}

static void block_that_was_given_is_the_next_to_be_taken_if_it_is_the_lowest(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(0);
  assert_int_equal(hz_class_run_take(run, out, 300), 300); // several words of the bitmap
  give(run, block_at(run, 200));
  give(run, block_at(run, 3));
  assert_sound(run);
  assert_int_equal(hz_class_run_take(run, out, 3), 3);
  assert_ptr_equal(out[2], block_at(run, 3));
  assert_ptr_equal(out[1], block_at(run, 200));
  assert_ptr_equal(out[0], block_at(run, 300));
  assert_sound(run);
}

static void run_whose_bitmap_is_refused_is_not_opened(void **state) {
  (void)state;
  start();
  struct hz_run *run = hz_arena_take(hz_size_classes[0].slabs, HZ_SLAB_BYTES);
  fake_os_fail_from(FAKE_MAP, 1);
  while (hz_meta_take(16) != NULL) continue; // every last record
  assert_false(hz_class_run_open(run, 0));
  assert_int_equal(run->state, HZ_RUN_NONE);
  // A bitmap of one word lies in the run's own record.
  struct hz_run *short_one = open_run(HZ_CLASS_COUNT - 1);
  assert_true(short_one->blocks <= 64);
  assert_sound(short_one);
  fake_os_fail_from(FAKE_MAP, 0);
  assert_true(hz_class_run_open(run, 0));
}

static void bitmap_of_a_closed_run_is_used_again(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(0);
  const size_t bytes = hz_meta_bytes();
  for (int i = 0; i < 10000; i++) {
    hz_class_run_close(run);
    assert_true(hz_class_run_open(run, 0));
  }
  assert_int_equal(hz_meta_bytes(), bytes);
}

// ---- Bad gives ----------------------------------------------------------------------------------

static void every_address_inside_a_block_is_refused_as_interior(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
    assert_int_equal(hz_class_run_take(run, out, 2), 2);
    for (size_t offset = 1; offset < hz_class_bytes(c); offset++) {
      assert_refused(run, c, block_at(run, 0) + offset, HZ_MISUSE_INTERIOR);
      assert_refused(run, c, block_at(run, 1) + offset, HZ_MISUSE_INTERIOR);
    }
    assert_sound(run);
  }
}

static void rest_behind_the_last_block_is_refused_as_interior(void **state) {
  (void)state;
  start();
  unsigned tried = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
    const char *end = (char *)hz_run_base(run) + ((size_t)run->slabs << HZ_SLAB_SHIFT);
    for (const char *p = block_at(run, run->blocks); p < end; p += 16, tried++)
      assert_refused(run, c, p, HZ_MISUSE_INTERIOR);
    assert_sound(run);
  }
  assert_true(tried > 0);
}

static void block_that_is_free_is_refused_as_double(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(5);
  assert_int_equal(hz_class_run_take(run, out, 10), 10);
  give(run, out[3]);
  assert_refused(run, 5, out[3], HZ_MISUSE_DOUBLE);
  assert_refused(run, 5, block_at(run, run->blocks - 1), HZ_MISUSE_DOUBLE); // never taken
  assert_sound(run);
}

static void what_is_no_run_of_the_class_is_refused_as_foreign(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(5), *other = hz_arena_take(1, HZ_SLAB_BYTES);
  assert_int_equal(hz_class_run_take(run, out, 1), 1);
  assert_refused(NULL, 5, out[0], HZ_MISUSE_FOREIGN);
  assert_refused(run, 6, out[0], HZ_MISUSE_FOREIGN);
  for (int kind = HZ_RUN_NONE; kind <= HZ_RUN_CACHED; kind++) {
    if (kind == HZ_RUN_CLASS) continue;
    atomic_store(&other->state, (uint8_t)kind);
    assert_refused(other, 5, hz_run_base(other), HZ_MISUSE_FOREIGN);
  }
  assert_sound(run);
}

// ---- Pages --------------------------------------------------------------------------------------

// A run of 4 KiB blocks, a page each, of which every other one is free.
static struct hz_run *every_other_page(void) {
  struct hz_run *run = open_run(hz_class_of(4096));
  const uint32_t all = hz_class_run_take(run, out, MAX_BLOCKS);
  for (uint32_t i = 0; i < all; i++) memset(block_at(run, i), 1, 4096);
  for (uint32_t i = 0; i < all; i += 2) give(run, block_at(run, i));
  return run;
}

static void assert_pages(const struct hz_run *run, bool kept) {
  for (uint32_t i = 0; i < run->blocks; i++)
    assert_int_equal(block_at(run, i)[100], i % 2 != 0 || kept ? 1 : 0);
}

static void decay_at_once_gives_back_what_only_free_blocks_touch(void **state) {
  (void)state;
  start();
  struct hz_run *run = every_other_page();
  unsigned calls = PLENTY;
  assert_int_equal(hz_class_run_decay(run, true, false, &calls), run->free * 4096);
  assert_int_equal(PLENTY - calls, run->free);
  assert_int_equal(hz_counter_read(HZ_COUNT_purge_calls), run->free);
  assert_pages(run, false);
  assert_sound(run);
}

static void decay_waits_until_nothing_was_taken_or_given_for_some_ticks(void **state) {
  (void)state;
  start();
  struct hz_run *run = every_other_page();
  unsigned calls = PLENTY;
  for (int tick = 1; tick < HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_class_run_decay(run, false, true, &calls), 0);
  give(run, block_at(run, 1)); // and the wait begins anew
  for (int tick = 1; tick < HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_class_run_decay(run, false, true, &calls), 0);
  assert_int_equal(hz_class_run_take(run, out, 1), 1);
  give(run, out[0]);
  for (int tick = 1; tick < HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_class_run_decay(run, false, true, &calls), 0);
  assert_int_equal(calls, PLENTY);
  assert_int_equal(hz_class_run_decay(run, false, true, &calls), run->free * 4096);
}

static void decay_gives_back_only_once_until_the_run_is_used_again(void **state) {
  (void)state;
  start();
  struct hz_run *run = every_other_page();
  unsigned calls = PLENTY;
  for (int tick = 0; tick < HZ_IDLE_TICKS; tick++) hz_class_run_decay(run, false, true, &calls);
  const unsigned left = calls;
  assert_true(left < PLENTY);
  for (int tick = 0; tick < 3 * HZ_IDLE_TICKS; tick++)
    assert_int_equal(hz_class_run_decay(run, false, true, &calls), 0);
  assert_int_equal(calls, left);
  assert_int_equal(hz_class_run_take(run, out, 1), 1);
  give(run, out[0]);
  size_t again = 0;
  for (int tick = 0; tick < HZ_IDLE_TICKS; tick++)
    again += hz_class_run_decay(run, false, true, &calls);
  assert_int_equal(again, run->free * 4096);
}

static void decay_makes_no_more_calls_than_it_may_and_goes_on_later(void **state) {
  (void)state;
  start();
  struct hz_run *run = every_other_page();
  unsigned calls = PLENTY, few = 3;
  for (int tick = 1; tick < HZ_IDLE_TICKS; tick++) hz_class_run_decay(run, false, true, &calls);
  assert_int_equal(hz_class_run_decay(run, false, true, &few), 3 * 4096);
  assert_int_equal(few, 0);
  assert_int_equal(fake_os_calls(FAKE_PURGE), 3);
  assert_int_equal(hz_class_run_decay(run, false, false, &few), 0); // none are left
  assert_int_equal(hz_class_run_decay(run, false, false, &calls), run->free * 4096);
  assert_pages(run, false);
}

static void refused_decay_keeps_the_pages(void **state) {
  (void)state;
  start();
  struct hz_run *run = every_other_page();
  unsigned calls = PLENTY;
  fake_os_fail_from(FAKE_PURGE, 1);
  assert_int_equal(hz_class_run_decay(run, true, false, &calls), 0);
  assert_pages(run, true);
  fake_os_fail_from(FAKE_PURGE, 0);
  assert_int_equal(hz_class_run_decay(run, true, false, &calls), run->free * 4096);
  assert_sound(run);
}

static void page_that_a_taken_block_touches_is_kept(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(hz_class_of(1024));
  const uint32_t all = hz_class_run_take(run, out, MAX_BLOCKS);
  for (uint32_t i = 0; i < all; i++) memset(block_at(run, i), 1, 1024);
  for (uint32_t i = 0; i < 11; i++) give(run, block_at(run, i)); // two pages and three quarters
  unsigned calls = PLENTY;
  assert_int_equal(hz_class_run_decay(run, true, false, &calls), 2 * 4096);
  assert_int_equal(PLENTY - calls, 1); // neighbours go together
  for (uint32_t i = 0; i < all; i++) assert_int_equal(block_at(run, i)[9], i < 8 ? 0 : 1);
}

// ---- The checker --------------------------------------------------------------------------------

static void checker_finds_each_broken_invariant(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(hz_class_of(112)); // the last word of its bitmap is not full
  assert_true(run->blocks % 64 != 0 && run->blocks > 128);
  assert_int_equal(hz_class_run_take(run, out, 70), 70);
  assert_int_equal(run->first_word, 1);
  assert_sound(run);
  run->free--;
  assert_broken(run, "class run: its free count disagrees with its bitmap");
  run->free++;
  run->first_word = 2;
  assert_broken(run, "class run: first_word is too high");
  run->first_word = 1;
  run->free_bits[run->blocks / 64] |= UINT64_C(1) << 63;
  assert_broken(run, "class run: a bit beyond the last block is set");
  run->free_bits[run->blocks / 64] &= ~(UINT64_C(1) << 63);
  atomic_store(&run->state, HZ_RUN_LIVE);
  assert_broken(run, "class run: its state is another");
  atomic_store(&run->state, HZ_RUN_CLASS);
  assert_sound(run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opened_run_has_all_blocks_of_its_class_free),
      cmocka_unit_test(every_class_gives_each_block_once_and_takes_all_back),
      cmocka_unit_test(block_that_was_given_is_the_next_to_be_taken_if_it_is_the_lowest),
      cmocka_unit_test(run_whose_bitmap_is_refused_is_not_opened),
      cmocka_unit_test(bitmap_of_a_closed_run_is_used_again),
      cmocka_unit_test(every_address_inside_a_block_is_refused_as_interior),
      cmocka_unit_test(rest_behind_the_last_block_is_refused_as_interior),
      cmocka_unit_test(block_that_is_free_is_refused_as_double),
      cmocka_unit_test(what_is_no_run_of_the_class_is_refused_as_foreign),
      cmocka_unit_test(decay_at_once_gives_back_what_only_free_blocks_touch),
      cmocka_unit_test(decay_waits_until_nothing_was_taken_or_given_for_some_ticks),
      cmocka_unit_test(decay_gives_back_only_once_until_the_run_is_used_again),
      cmocka_unit_test(decay_makes_no_more_calls_than_it_may_and_goes_on_later),
      cmocka_unit_test(refused_decay_keeps_the_pages),
      cmocka_unit_test(page_that_a_taken_block_touches_is_kept),
      cmocka_unit_test(checker_finds_each_broken_invariant),
  };
  return isolated_run(tests, hz_count_of(tests));
}
