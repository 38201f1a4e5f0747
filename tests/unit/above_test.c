// core/above: blocks above the classes, of both kinds behind one door: what is served, when caches
// are asked to help, when a line is to look at the clock, and what is refused.
#include "core/above.h"

#include <errno.h>

#include "core/counter.h"
#include "core/large.h"
#include "core/misuse.h"
#include "tests/support/fake_os.h"
#include "tests/support/pattern.h"
#include "tests/unit/isolated.h"

static struct hz_run_cache cache;
static bool pause_wanted; // what the last call said

static void start(void) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  hz_run_cache_bytes = 4 * HZ_MIB;
  hz_large_cache_bytes = 64 * HZ_MIB;
  assert_true(hz_arena_start(256 * HZ_MIB));
}

// ---- What a line does ---------------------------------------------------------------------------

static unsigned times_asked;

static bool nothing_in_caches(void) {
  times_asked++;
  return false;
}
static bool something_that_does_not_help(void) {
  times_asked++;
  return true;
}
static bool kernel_gives_again(void) {
  times_asked++;
  fake_os_fail_from(FAKE_COMMIT, 0);
  return true;
}

static void *take_with(size_t align, size_t bytes, bool zeroed, bool (*last_resort)(void)) {
  return hz_above_take(&cache, align, bytes, zeroed, last_resort, &pause_wanted);
}
static void *take(size_t bytes) {
  return take_with(16, bytes, false, nothing_in_caches);
}
static void give(void *p) {
  hz_above_give(&cache, p, &pause_wanted);
}

static uint64_t misused(enum hz_misuse_kind kind) {
  return hz_counter_read(kind == HZ_MISUSE_FOREIGN    ? HZ_COUNT_misuse_foreign
                         : kind == HZ_MISUSE_INTERIOR ? HZ_COUNT_misuse_interior
                                                      : HZ_COUNT_misuse_double);
}

// All four that take an address refuse it, the first two with a word about it.
static void assert_refused(void *p, enum hz_misuse_kind kind) {
  hz_counters_reset();
  give(p);
  assert_int_equal(misused(kind), 1);
  assert_int_equal(hz_above_usable(p), 0);
  assert_int_equal(misused(kind), 2);
  assert_null(hz_above_resize(p, HZ_MIB));
  assert_null(hz_above_resize(p, 5 * HZ_MIB));
  assert_int_equal(
      misused(HZ_MISUSE_FOREIGN) + misused(HZ_MISUSE_INTERIOR) + misused(HZ_MISUSE_DOUBLE), 2);
}

static uint64_t large_blocks(void) {
  uint64_t bytes, number, cached;
  hz_large_read(&bytes, &number, &cached);
  return number;
}

// ---- Taking -------------------------------------------------------------------------------------

static void what_fits_a_segment_is_a_run_and_what_does_not_is_large(void **state) {
  (void)state;
  start();
  const size_t runs[] = {HZ_SLAB_BYTES + 1, HZ_MIB, HZ_SEGMENT_BYTES};
  for (unsigned i = 0; i < hz_count_of(runs); i++) {
    void *p = take(runs[i]);
    assert_non_null(hz_run_of(p));
    assert_true(hz_above_usable(p) >= runs[i]);
    give(p);
  }
  assert_int_equal(large_blocks(), 0);
  void *longer = take(HZ_SEGMENT_BYTES + 1);
  void *aligned = take_with(2 * HZ_SEGMENT_BYTES, 100, false, nothing_in_caches);
  assert_int_equal(large_blocks(), 2);
  assert_int_equal((uintptr_t)aligned % (2 * HZ_SEGMENT_BYTES), 0);
  assert_true(hz_above_usable(longer) > HZ_SEGMENT_BYTES);
  give(longer);
  give(aligned);
  assert_int_equal(large_blocks(), 0);
}

static void heads_leave_a_run_less_room(void **state) {
  (void)state;
  start();
  hz_arena_keep_heads();
  void *run = take(HZ_SEGMENT_BYTES - HZ_SLAB_BYTES);
  assert_int_equal(large_blocks(), 0);
  void *longer = take(HZ_SEGMENT_BYTES - HZ_SLAB_BYTES + 1);
  assert_int_equal(large_blocks(), 1);
  void *aligned = take_with(HZ_SEGMENT_BYTES, 1, false, nothing_in_caches);
  assert_int_equal(large_blocks(), 2);
  give(run);
  give(longer);
  give(aligned);
}

static void zeroed_block_is_zero_whatever_was_there_before(void **state) {
  (void)state;
  start();
  const size_t sizes[] = {100000, HZ_MIB, 5 * HZ_MIB};
  for (unsigned i = 0; i < hz_count_of(sizes); i++)
    for (int round = 0; round < 3; round++) {
      char *p = take_with(16, sizes[i], true, nothing_in_caches);
      for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(p[k], 0);
      memset(p, 0xff, hz_above_usable(p));
      give(p);
    }
}

// ---- When the kernel refuses --------------------------------------------------------------------

static void last_resort_is_asked_once_and_the_block_comes(void **state) {
  (void)state;
  start();
  const size_t sizes[] = {100000, 5 * HZ_MIB};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    times_asked = 0;
    fake_os_fail_from(FAKE_COMMIT, 1);
    errno = 0;
    void *p = take_with(16, sizes[i], false, kernel_gives_again);
    assert_non_null(p);
    assert_int_equal(errno, 0);
    assert_int_equal(times_asked, 1);
  }
}

static void nothing_helps_is_null_and_enomem_after_one_question(void **state) {
  (void)state;
  start();
  bool (*const resorts[])(void) = {nothing_in_caches, something_that_does_not_help};
  const size_t sizes[] = {100000, 5 * HZ_MIB};
  fake_os_fail_from(FAKE_COMMIT, 1);
  for (unsigned i = 0; i < 4; i++) {
    times_asked = 0;
    errno = 0;
    assert_null(take_with(16, sizes[i / 2], true, resorts[i % 2]));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(times_asked, 1);
  }
  assert_int_equal(large_blocks(), 0);
  assert_null(hz_arena_check());
}

static void absurd_sizes_empty_no_caches(void **state) {
  (void)state;
  start();
  const size_t absurd[] = {hz_arena_bytes() + 1, PTRDIFF_MAX, SIZE_MAX};
  for (unsigned i = 0; i < hz_count_of(absurd); i++) {
    errno = 0;
    assert_null(take_with(16, absurd[i], false, something_that_does_not_help));
    assert_int_equal(errno, ENOMEM);
  }
  assert_int_equal(times_asked, 0);
}

static void block_that_is_there_asks_for_no_help(void **state) {
  (void)state;
  start();
  give(take(100000));
  give(take(5 * HZ_MIB));
  assert_int_equal(times_asked, 0);
}

// ---- The clock ----------------------------------------------------------------------------------

static void every_call_about_a_large_block_pauses(void **state) {
  (void)state;
  start();
  for (int i = 0; i < 5; i++) {
    void *p = take(5 * HZ_MIB);
    assert_true(pause_wanted);
    give(p);
    assert_true(pause_wanted);
  }
}

static void every_sixteenth_call_about_a_run_pauses(void **state) {
  (void)state;
  start();
  for (unsigned call = 1; call <= 160; call += 2) {
    void *p = take(100000);
    assert_int_equal(pause_wanted, call % 16 == 0);
    give(p);
    assert_int_equal(pause_wanted, (call + 1) % 16 == 0);
  }
}

static void every_call_of_a_thread_without_a_cache_pauses(void **state) {
  (void)state;
  start();
  for (int i = 0; i < 5; i++) {
    bool pause = false;
    void *p = hz_above_take(NULL, 16, 100000, false, nothing_in_caches, &pause);
    assert_true(pause);
    pause = false;
    hz_above_give(NULL, p, &pause);
    assert_true(pause);
  }
}

static void free_of_nothing_does_nothing(void **state) {
  (void)state;
  start();
  pause_wanted = true;
  give(NULL);
  assert_false(pause_wanted);
  assert_int_equal(hz_above_usable(NULL), 0);
  assert_int_equal(misused(HZ_MISUSE_FOREIGN), 0);
}

// ---- Bad frees ----------------------------------------------------------------------------------

static void inside_of_a_block_is_refused_as_interior(void **state) {
  (void)state;
  start();
  const size_t sizes[] = {100000, 3 * HZ_MIB, 9 * HZ_MIB};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    char *p = take(sizes[i]);
    assert_refused(p + 16, HZ_MISUSE_INTERIOR);
    assert_refused(p + HZ_SLAB_BYTES, HZ_MISUSE_INTERIOR);
    assert_refused(p + sizes[i] - 1, HZ_MISUSE_INTERIOR);
    assert_true(hz_above_usable(p) >= sizes[i]); // alive
    give(p);
  }
}

static void block_in_a_cache_is_refused_as_double(void **state) {
  (void)state;
  start();
  const size_t sizes[] = {100000, 5 * HZ_MIB};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    void *p = take(sizes[i]);
    give(p);
    assert_refused(p, HZ_MISUSE_DOUBLE);
    assert_ptr_equal(take(sizes[i]), p); // once
    assert_ptr_not_equal(take(sizes[i]), p);
  }
}

static void what_is_no_block_is_refused(void **state) {
  (void)state;
  start();
  int on_stack;
  char *run = take(100000), *base = hz_arena_base();
  void *foreign[] = {&on_stack,
                     (void *)16,
                     base - 1,
                     base + hz_arena_bytes(),
                     run + 20 * HZ_SLAB_BYTES,
                     base + hz_arena_bytes() - 1};
  for (unsigned i = 0; i < hz_count_of(foreign); i++) assert_refused(foreign[i], HZ_MISUSE_FOREIGN);
  hz_run_cache_bytes = 0; // freed blocks go back to the arena
  give(run);
  assert_refused(run, HZ_MISUSE_DOUBLE);
  assert_refused(run + HZ_SLAB_BYTES, HZ_MISUSE_FOREIGN);
}

// ---- Resizing -----------------------------------------------------------------------------------

static void run_is_resized_in_place_within_its_kind(void **state) {
  (void)state;
  start();
  char *p = take(HZ_MIB);
  pattern_fill(p, HZ_MIB, 3);
  assert_ptr_equal(hz_above_resize(p, 2 * HZ_MIB), p);
  assert_int_equal(hz_above_usable(p), 2 * HZ_MIB);
  assert_null(hz_above_resize(p, HZ_MIB - 1)); // more than half would be wasted
  assert_ptr_equal(hz_above_resize(p, HZ_MIB), p);
  assert_int_equal(hz_above_usable(p), HZ_MIB);
  assert_null(hz_above_resize(p, HZ_SEGMENT_BYTES + 1)); // another kind of block
  assert_int_equal(pattern_intact(p, HZ_MIB, HZ_MIB, 3), HZ_MIB);
  give(p);
}

static void large_block_grows_with_its_contents_within_its_kind(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB);
  pattern_fill(p, 5 * HZ_MIB, 4);
  p = hz_above_resize(p, 50 * HZ_MIB);
  assert_non_null(p);
  assert_true(hz_above_usable(p) >= 50 * HZ_MIB);
  assert_int_equal(pattern_intact(p, 5 * HZ_MIB, 5 * HZ_MIB, 4), 5 * HZ_MIB);
  assert_null(hz_above_resize(p, HZ_MIB)); // another kind of block
  assert_true(hz_above_usable(p) >= 50 * HZ_MIB);
  give(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_fits_a_segment_is_a_run_and_what_does_not_is_large),
      cmocka_unit_test(heads_leave_a_run_less_room),
      cmocka_unit_test(zeroed_block_is_zero_whatever_was_there_before),
      cmocka_unit_test(last_resort_is_asked_once_and_the_block_comes),
      cmocka_unit_test(nothing_helps_is_null_and_enomem_after_one_question),
      cmocka_unit_test(absurd_sizes_empty_no_caches),
      cmocka_unit_test(block_that_is_there_asks_for_no_help),
      cmocka_unit_test(every_call_about_a_large_block_pauses),
      cmocka_unit_test(every_sixteenth_call_about_a_run_pauses),
      cmocka_unit_test(every_call_of_a_thread_without_a_cache_pauses),
      cmocka_unit_test(free_of_nothing_does_nothing),
      cmocka_unit_test(inside_of_a_block_is_refused_as_interior),
      cmocka_unit_test(block_in_a_cache_is_refused_as_double),
      cmocka_unit_test(what_is_no_block_is_refused),
      cmocka_unit_test(run_is_resized_in_place_within_its_kind),
      cmocka_unit_test(large_block_grows_with_its_contents_within_its_kind),
  };
  return isolated_run(tests, hz_count_of(tests));
}
