// core/run_block: blocks of 64 KiB to 4 MiB, their cache, and their bad frees.
#include "core/run_block.h"

#include "core/counter.h"
#include "core/misuse.h"
#include "tests/support/fake_os.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"
#include "tests/unit/arena_sound.h"

static struct hz_run_cache cache;

static void start(void) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  hz_run_cache_bytes = 4 * HZ_MIB;
  assert_true(hz_arena_start(256 * HZ_MIB));
}

static void *take(size_t bytes, size_t align) {
  bool zero;
  return hz_run_block_take(&cache, bytes, align, &zero);
}

static void give(void *p) {
  hz_run_block_give(&cache, hz_run_of(p), p);
}

static size_t cached_by_counting(void) {
  size_t bytes = 0;
  for (unsigned slabs = 0; slabs <= HZ_SEGMENT_SLABS; slabs++)
    for (const struct hz_run *run = cache.head[slabs]; run != NULL; run = run->next) {
      assert_int_equal(run->slabs, slabs);
      assert_int_equal(run->state, HZ_RUN_CACHED);
      bytes += (size_t)slabs << HZ_SLAB_SHIFT;
    }
  return bytes;
}

static void block_holds_its_bytes_at_its_alignment(void **state) {
  (void)state;
  start();
  for (size_t align = 16; align <= HZ_RUN_BLOCK_MAX_BYTES; align *= 4)
    for (size_t bytes = 1; bytes <= HZ_RUN_BLOCK_MAX_BYTES; bytes = bytes * 3 + 1) {
      char *p = take(bytes, align);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % align, 0);
      const struct hz_run *run = hz_run_of(p);
      assert_ptr_equal(hz_run_base(run), p);
      assert_int_equal(run->state, HZ_RUN_LIVE);
      assert_true((size_t)run->slabs * HZ_SLAB_BYTES >= bytes);
      assert_true((size_t)run->slabs * HZ_SLAB_BYTES < bytes + HZ_SLAB_BYTES);
      p[0] = p[bytes - 1] = 1;
      give(p);
    }
  assert_sound();
}

static void freed_block_serves_the_next_request_of_its_length(void **state) {
  (void)state;
  start();
  void *p = take(300000, 16);
  give(p);
  const uint64_t arena_calls = hz_counter_read(HZ_COUNT_run_blocks);
  bool zero = true;
  assert_ptr_equal(hz_run_block_take(&cache, 280000, 16, &zero), p);
  assert_false(zero);
  assert_int_equal(hz_counter_read(HZ_COUNT_run_blocks), arena_calls);
  assert_int_equal(cache.bytes, 0);
}

static void cached_block_of_the_wrong_alignment_stays_where_it_is(void **state) {
  (void)state;
  start();
  take(1, 16);
  void *p = take(HZ_SLAB_BYTES, 16); // the second slab of its segment
  give(p);
  void *aligned = take(HZ_SLAB_BYTES, HZ_MIB);
  assert_int_equal((uintptr_t)aligned % HZ_MIB, 0);
  assert_ptr_equal(take(HZ_SLAB_BYTES, 16), p);
}

static void cache_never_exceeds_its_budget(void **state) {
  (void)state;
  start();
  enum { BLOCKS = 200 };
  static void *blocks[BLOCKS];
  const uint64_t seed = random_seed(NULL);
  print_message("seed %llu\n", (unsigned long long)seed);
  struct random_state random = random_start(seed);
  for (int step = 0; step < 4000; step++) {
    const size_t i = random_between(&random, 0, BLOCKS - 1);
    if (blocks[i] == NULL) blocks[i] = take(random_between(&random, 1, 600 * 1024), 16);
    else {
      give(blocks[i]);
      blocks[i] = NULL;
    }
    assert_true(cache.bytes <= hz_run_cache_bytes);
    assert_int_equal(cache.bytes, cached_by_counting());
    if (step % 64 == 0) assert_sound();
  }
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i] != NULL) give(blocks[i]);
  assert_int_equal(totals().run_bytes, cache.bytes);
  hz_run_cache_flush(&cache);
  assert_int_equal(cache.bytes, 0);
  assert_int_equal(totals().run_bytes, 0);
  assert_sound();
}

static void overfull_cache_sheds_half(void **state) {
  (void)state;
  start();
  void *blocks[5];
  for (int i = 0; i < 5; i++) blocks[i] = take(HZ_MIB, 16);
  for (int i = 0; i < 4; i++) give(blocks[i]);
  assert_int_equal(cache.bytes, 4 * HZ_MIB);
  give(blocks[4]);
  assert_int_equal(cache.bytes, 2 * HZ_MIB);
}

static void block_above_half_the_budget_is_not_kept(void **state) {
  (void)state;
  start();
  give(take(2 * HZ_MIB + 1, 16));
  assert_int_equal(cache.bytes, 0);
  assert_int_equal(totals().run_bytes, 0);
  give(take(2 * HZ_MIB, 16));
  assert_int_equal(cache.bytes, 2 * HZ_MIB);
}

static void thread_without_a_cache_is_served_by_the_arena(void **state) {
  (void)state;
  start();
  bool zero;
  void *p = hz_run_block_take(NULL, 100000, 16, &zero);
  assert_non_null(p);
  assert_true(zero);
  hz_run_block_give(NULL, hz_run_of(p), p);
  assert_int_equal(totals().run_bytes, 0);
  assert_sound();
}

static void zero_is_claimed_only_for_what_reads_as_zero(void **state) {
  (void)state;
  start();
  bool zero = false, more;
  char *p = hz_run_block_take(&cache, HZ_MIB, 16, &zero);
  assert_true(zero);
  for (size_t i = 0; i < HZ_MIB; i++) assert_int_equal(p[i], 0);
  memset(p, 1, HZ_MIB);
  give(p);
  hz_run_cache_flush(&cache);
  p = hz_run_block_take(&cache, HZ_MIB, 16, &zero);
  assert_false(zero); // used slabs serve first
  give(p);
  hz_run_cache_flush(&cache);
  hz_arena_purge(UINT64_MAX, 0, 100, &more);
  p = hz_run_block_take(&cache, HZ_MIB, 16, &zero);
  assert_true(zero);
  for (size_t i = 0; i < HZ_MIB; i++) assert_int_equal(p[i], 0);
}

// ---- Bad frees ---------------------------------------------------------------------------------

static void second_free_is_refused_cached_or_not(void **state) {
  (void)state;
  start();
  char *p = take(100000, 16);
  struct hz_run *run = hz_run_of(p);
  give(p);
  hz_run_block_give(&cache, run, p);
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_double), 1);
  assert_int_equal(cache.bytes, 2 * HZ_SLAB_BYTES);
  hz_run_cache_flush(&cache);
  assert_null(hz_run_of(p)); // then it is no block any more
  assert_sound();
}

static void every_interior_page_is_refused(void **state) {
  (void)state;
  start();
  char *p = take(300000, 16);
  uint64_t tried = 0;
  for (size_t offset = 1; offset < 5 * HZ_SLAB_BYTES; offset += 511, tried++)
    hz_run_block_give(&cache, hz_run_of(p + offset), p + offset);
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_interior), tried);
  assert_int_equal(cache.bytes, 0);
  assert_int_equal(hz_run_of(p)->state, HZ_RUN_LIVE);
}

// ---- Resizing ----------------------------------------------------------------------------------

static void resize_in_place_keeps_the_contents(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_SLAB_BYTES, 16);
  struct hz_run *run = hz_run_of(p);
  pattern_fill(p, 4 * HZ_SLAB_BYTES, 7);
  assert_true(hz_run_block_resize(run, HZ_MIB));
  assert_int_equal(pattern_intact(p, 4 * HZ_SLAB_BYTES, 4 * HZ_SLAB_BYTES, 7), 4 * HZ_SLAB_BYTES);
  assert_int_equal(run->slabs, 16);
  memset(p + 4 * HZ_SLAB_BYTES, 1, 12 * HZ_SLAB_BYTES);
  assert_true(hz_run_block_resize(run, 9 * HZ_SLAB_BYTES - 5));
  assert_int_equal(run->slabs, 9);
  assert_int_equal(pattern_intact(p, 4 * HZ_SLAB_BYTES, 4 * HZ_SLAB_BYTES, 7), 4 * HZ_SLAB_BYTES);
  assert_null(hz_run_of(p + 9 * HZ_SLAB_BYTES));
  give(p);
  assert_int_equal(cache.bytes, 9 * HZ_SLAB_BYTES);
  assert_sound();
}

static void resize_refuses_waste_size_and_neighbours(void **state) {
  (void)state;
  start();
  char *p = take(8 * HZ_SLAB_BYTES, 16), *wall = take(1, 16);
  struct hz_run *run = hz_run_of(p);
  assert_false(hz_run_block_resize(run, 4 * HZ_SLAB_BYTES - 1)); // more than half would be unused
  assert_false(hz_run_block_resize(run, 8 * HZ_SLAB_BYTES + 1)); // the wall
  assert_false(hz_run_block_resize(run, HZ_RUN_BLOCK_MAX_BYTES + 1));
  assert_int_equal(run->slabs, 8);
  assert_true(hz_run_block_resize(run, 8 * HZ_SLAB_BYTES));
  assert_true(hz_run_block_resize(run, 4 * HZ_SLAB_BYTES));
  give(wall);
  assert_sound();
}

static void memory_that_is_refused_is_null_and_comes_later(void **state) {
  (void)state;
  start();
  fake_os_fail_nth(FAKE_COMMIT, fake_os_calls(FAKE_COMMIT) == 0 ? 1 : 2);
  assert_null(take(100000, 16));
  fake_os_fail_from(FAKE_COMMIT, 1);
  assert_null(take(100000, 16));
  fake_os_fail_from(FAKE_COMMIT, 0);
  assert_non_null(take(100000, 16));
  assert_sound();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(block_holds_its_bytes_at_its_alignment),
      cmocka_unit_test(freed_block_serves_the_next_request_of_its_length),
      cmocka_unit_test(cached_block_of_the_wrong_alignment_stays_where_it_is),
      cmocka_unit_test(cache_never_exceeds_its_budget),
      cmocka_unit_test(overfull_cache_sheds_half),
      cmocka_unit_test(block_above_half_the_budget_is_not_kept),
      cmocka_unit_test(thread_without_a_cache_is_served_by_the_arena),
      cmocka_unit_test(zero_is_claimed_only_for_what_reads_as_zero),
      cmocka_unit_test(second_free_is_refused_cached_or_not),
      cmocka_unit_test(every_interior_page_is_refused),
      cmocka_unit_test(resize_in_place_keeps_the_contents),
      cmocka_unit_test(resize_refuses_waste_size_and_neighbours),
      cmocka_unit_test(memory_that_is_refused_is_null_and_comes_later),
  };
  return isolated_run(tests, hz_count_of(tests));
}
