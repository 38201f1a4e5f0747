// core/large: blocks of whole segments, their cache, growth without copying, and their bad frees.
#include "core/large.h"

#include "core/counter.h"
#include "core/meta.h"
#include "core/misuse.h"
#include "core/os.h"
#include "tests/support/fake_os.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"
#include "tests/unit/isolated.h"

static void start_of(size_t bytes) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  hz_large_cache_bytes = 64 * HZ_MIB;
  assert_true(hz_arena_start(bytes));
}

static void start(void) {
  start_of(HZ_GIB);
}

static char *take(size_t bytes) {
  bool zero;
  return hz_large_take(bytes, 16, &zero);
}

static struct hz_large *record_of(const void *p) {
  void *base;
  return hz_large_of(p, &base);
}

static void give(char *p) {
  void *base;
  struct hz_large *large = hz_large_of(p, &base);
  assert_non_null(large);
  hz_large_give(large, base, p);
}

static void assert_sound(void) {
  const char *broken = hz_arena_check();
  if (broken != NULL) fail_msg("%s", broken);
}

static struct { uint64_t bytes, blocks, cached; } now;

static void read_totals(void) {
  hz_large_read(&now.bytes, &now.blocks, &now.cached);
}

static uint64_t large_segments(void) {
  struct hz_arena_totals totals;
  hz_arena_read_totals(&totals);
  return totals.large_segments;
}

static void block_commits_what_it_uses_and_no_more(void **state) {
  (void)state;
  start();
  fake_os_fail_nth(FAKE_COMMIT, 0);
  give(take(5 * HZ_MIB)); // the tables have their pages now
  hz_large_purge(UINT64_MAX, 0);
  const size_t before = fake_os_committed();
  char *p = take(5 * HZ_MIB + 1);
  assert_int_equal((uintptr_t)p % HZ_SEGMENT_BYTES, 0);
  assert_int_equal(hz_large_usable(record_of(p)), 5 * HZ_MIB + hz_page_bytes);
  assert_int_equal(fake_os_committed(), before + 5 * HZ_MIB + hz_page_bytes);
  p[5 * HZ_MIB + hz_page_bytes - 1] = 1;
  read_totals();
  assert_int_equal(now.blocks, 1);
  assert_int_equal(now.bytes, 5 * HZ_MIB + hz_page_bytes);
  give(p);
  read_totals();
  assert_int_equal(now.blocks + now.bytes, 0);
  assert_int_equal(now.cached, 5 * HZ_MIB + hz_page_bytes);
}

static void alignments_above_a_segment_are_met(void **state) {
  (void)state;
  start();
  for (size_t align = 16; align <= 64 * HZ_MIB; align *= 4) {
    bool zero;
    char *p = hz_large_take(align < HZ_SEGMENT_BYTES ? 5 * HZ_MIB : 100, align, &zero);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % align, 0);
    p[99] = 1;
    give(p);
  }
  assert_sound();
}

static void absurd_sizes_are_refused(void **state) {
  (void)state;
  start();
  bool zero;
  assert_null(take(SIZE_MAX));
  assert_null(take(PTRDIFF_MAX));
  assert_null(take((size_t)PTRDIFF_MAX - HZ_SEGMENT_BYTES));
  assert_null(take(2 * HZ_GIB)); // more than the arena
  assert_null(hz_large_take(100, (size_t)1 << 62, &zero));
  char *p = take(5 * HZ_MIB);
  assert_null(hz_large_resize(record_of(p), SIZE_MAX - 5));
  assert_null(hz_large_resize(record_of(p), 2 * HZ_GIB));
  p[0] = 1;
  assert_int_equal(large_segments(), 2);
}

// ---- Cache -------------------------------------------------------------------------------------

static void freed_block_serves_the_next_of_as_many_segments(void **state) {
  (void)state;
  start();
  bool zero = true;
  char *p = take(7 * HZ_MIB);
  give(p);
  assert_ptr_equal(hz_large_take(6 * HZ_MIB, 16, &zero), p);
  assert_false(zero);
  assert_int_equal(hz_large_usable(record_of(p)), 6 * HZ_MIB);
  assert_int_equal(hz_counter_read(HZ_COUNT_large_maps), 1);
  assert_int_equal(hz_counter_read(HZ_COUNT_large_reuses), 1);
  read_totals();
  assert_int_equal(now.cached, 0);
  assert_int_equal(now.bytes, 6 * HZ_MIB);
}

static void new_block_is_zero_and_says_so(void **state) {
  (void)state;
  start();
  bool zero = false;
  char *p = hz_large_take(5 * HZ_MIB, 16, &zero);
  assert_true(zero);
  memset(p, 1, 5 * HZ_MIB);
  give(p);
  hz_large_purge(UINT64_MAX, 0);
  zero = false;
  p = hz_large_take(5 * HZ_MIB, 16, &zero);
  assert_true(zero);
  for (size_t i = 0; i < 5 * HZ_MIB; i += 512) assert_int_equal(p[i], 0);
}

static void cache_keeps_no_more_than_its_budget(void **state) {
  (void)state;
  start();
  hz_large_cache_bytes = 16 * HZ_MIB;
  char *blocks[5];
  for (int i = 0; i < 5; i++) blocks[i] = take(5 * HZ_MIB);
  for (int i = 0; i < 5; i++) give(blocks[i]);
  read_totals();
  assert_int_equal(now.cached, 15 * HZ_MIB);
  assert_int_equal(large_segments(), 6);
  assert_null(record_of(blocks[4]));
}

static void cache_of_no_bytes_keeps_nothing(void **state) {
  (void)state;
  start();
  hz_large_cache_bytes = 0;
  give(take(5 * HZ_MIB));
  assert_int_equal(large_segments(), 0);
}

static void cached_block_leaves_after_the_idle_time(void **state) {
  (void)state;
  start();
  char *first = take(5 * HZ_MIB), *second = take(9 * HZ_MIB);
  give(first); // at 1000 ms
  fake_os_clock(1300);
  give(second);
  assert_int_equal(hz_large_purge(1499, 500), 0);
  assert_int_equal(hz_large_purge(1500, 500), 5 * HZ_MIB);
  assert_int_equal(large_segments(), 3);
  assert_int_equal(hz_large_purge(1799, 500), 0);
  assert_int_equal(hz_large_purge(1800, 500), 9 * HZ_MIB);
  assert_int_equal(large_segments(), 0);
  read_totals();
  assert_int_equal(now.cached, 0);
  assert_int_equal(hz_counter_read(HZ_COUNT_purged), 14 * HZ_MIB);
}

// ---- Bad frees ---------------------------------------------------------------------------------

static void second_free_and_interior_frees_are_refused(void **state) {
  (void)state;
  start();
  char *p = take(9 * HZ_MIB);
  struct hz_large *large = record_of(p);
  for (size_t offset = 1; offset < 9 * HZ_MIB; offset += HZ_MIB - 1) {
    void *base;
    assert_ptr_equal(hz_large_of(p + offset, &base), large);
    hz_large_give(large, base, p + offset);
  }
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_interior), 10);
  give(p);
  give(p);
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_double), 1);
  read_totals();
  assert_int_equal(now.cached, 9 * HZ_MIB);
  assert_int_equal(now.blocks, 0);
}

// ---- Resizing ----------------------------------------------------------------------------------

static void assert_intact(const char *p, size_t filled, size_t kept, unsigned tag) {
  assert_int_equal(pattern_intact(p, filled, kept, tag), kept);
}

static void block_grows_and_shrinks_where_it_is(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB);
  pattern_fill(p, 5 * HZ_MIB, 3);
  struct hz_large *large = record_of(p);
  assert_ptr_equal(hz_large_resize(large, 7 * HZ_MIB), p);  // inside its segments
  assert_ptr_equal(hz_large_resize(large, 30 * HZ_MIB), p); // into the next ones
  assert_int_equal(hz_large_usable(large), 30 * HZ_MIB);
  for (size_t i = 5 * HZ_MIB; i < 30 * HZ_MIB; i += 1000) assert_int_equal(p[i], 0);
  memset(p + 5 * HZ_MIB, 1, 25 * HZ_MIB);
  const size_t committed = fake_os_committed();
  assert_ptr_equal(hz_large_resize(large, 5 * HZ_MIB), p);
  assert_int_equal(fake_os_committed(), committed - 25 * HZ_MIB);
  assert_intact(p, 5 * HZ_MIB, 5 * HZ_MIB, 3);
  read_totals();
  assert_int_equal(now.bytes, 5 * HZ_MIB);
  assert_int_equal(hz_counter_read(HZ_COUNT_large_moves), 0);
  give(p);
  hz_large_purge(UINT64_MAX, 0);
  assert_int_equal(large_segments(), 0);
}

static void blocked_block_moves_its_pages(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB), *wall = take(5 * HZ_MIB);
  pattern_fill(p, 5 * HZ_MIB, 3);
  struct hz_large *large = record_of(p);
  char *moved = hz_large_resize(large, 20 * HZ_MIB);
  assert_non_null(moved);
  assert_ptr_not_equal(moved, p);
  assert_int_equal(hz_counter_read(HZ_COUNT_large_moves), 1);
  assert_intact(moved, 5 * HZ_MIB, 5 * HZ_MIB, 3);
  for (size_t i = 5 * HZ_MIB; i < 20 * HZ_MIB; i += 1000) assert_int_equal(moved[i], 0);
  assert_ptr_equal(record_of(moved), large);
  assert_null(record_of(p));
  assert_int_equal(hz_large_usable(large), 20 * HZ_MIB);
  read_totals();
  assert_int_equal(now.bytes, 25 * HZ_MIB);
  assert_int_equal(large_segments(), 5 + 2);
  assert_ptr_equal(take(5 * HZ_MIB), p); // its old place serves again
  give(wall);
  give(moved);
  assert_sound();
}

static void block_that_keeps_growing_is_never_copied(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB);
  for (unsigned i = 1; i <= 5; i++) {
    const size_t bytes = hz_large_usable(record_of(p));
    pattern_fill(p, bytes, i);
    assert_non_null(take(5 * HZ_MIB)); // somebody settles behind it
    p = hz_large_resize(record_of(p), bytes * 2);
    assert_non_null(p);
    assert_intact(p, bytes, bytes, i);
  }
  assert_true(hz_large_usable(record_of(p)) >= 160 * HZ_MIB);
  assert_true(hz_counter_read(HZ_COUNT_large_moves) >= 4);
}

static void old_place_that_somebody_took_is_never_used_again(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB);
  take(5 * HZ_MIB);
  fake_os_fail_nth(FAKE_CLAIM, 1);
  assert_non_null(hz_large_resize(record_of(p), 20 * HZ_MIB));
  assert_null(record_of(p));
  for (char *next; (next = take(5 * HZ_MIB)) != NULL;) assert_ptr_not_equal(next, p);
  assert_sound();
}

static void refused_move_leaves_the_block_and_is_not_tried_again(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB);
  take(5 * HZ_MIB);
  pattern_fill(p, 5 * HZ_MIB, 3);
  const uint64_t segments = large_segments();
  fake_os_fail_nth(FAKE_MOVE, 1);
  assert_null(hz_large_resize(record_of(p), 20 * HZ_MIB));
  assert_int_equal(large_segments(), segments);
  assert_intact(p, 5 * HZ_MIB, 5 * HZ_MIB, 3);
  read_totals();
  assert_int_equal(now.bytes, 10 * HZ_MIB);
  assert_null(hz_large_resize(record_of(p), 20 * HZ_MIB));
  assert_int_equal(fake_os_calls(FAKE_MOVE), 1);
}

static void refused_moves_lose_no_addresses(void **state) {
  (void)state;
  start();
  fake_os_fail_from(FAKE_MOVE, 1);
  for (unsigned i = 0; i < 20; i++) {
    char *p = take(5 * HZ_MIB), *wall = take(5 * HZ_MIB);
    assert_null(hz_large_resize(record_of(p), 20 * HZ_MIB));
    assert_int_equal(large_segments(), 4);
    give(p);
    give(wall);
    hz_large_purge(UINT64_MAX, 0);
  }
  assert_non_null(take(HZ_GIB)); // every place is there
  assert_sound();
}

// The machine has no more memory, whatever the addresses allow.
static void growth_beyond_the_commit_limit_leaves_the_block_alone(void **state) {
  (void)state;
  start();
  char *p = take(5 * HZ_MIB);
  pattern_fill(p, 5 * HZ_MIB, 3);
  fake_os_commit_limit(10 * HZ_MIB);
  assert_null(hz_large_resize(record_of(p), 30 * HZ_MIB));
  assert_null(take(8 * HZ_MIB));
  void *base;
  assert_non_null(hz_large_of(p, &base));
  assert_ptr_equal(base, p);
  assert_intact(p, 5 * HZ_MIB, 5 * HZ_MIB, 3);
  assert_int_equal(hz_large_usable(record_of(p)), 5 * HZ_MIB);
  give(p);
  hz_large_purge(UINT64_MAX, 0);
  assert_int_equal(large_segments(), 0);
  assert_non_null(take(8 * HZ_MIB));
}

// ---- Failures ----------------------------------------------------------------------------------

enum { BLOCKS = 12 };
static struct {
  char *p;
  size_t filled;
} held[BLOCKS];

static void random_step(struct random_state *random, unsigned i) {
  const size_t bytes = random_between(random, HZ_SEGMENT_BYTES + 1, 24 * HZ_MIB);
  if (held[i].p == NULL) {
    held[i].p = take(bytes);
  } else {
    assert_intact(held[i].p, held[i].filled, held[i].filled, i);
    if (random_next(random) % 2) {
      give(held[i].p);
      held[i].p = NULL;
    } else {
      char *p = hz_large_resize(record_of(held[i].p), bytes);
      if (p == NULL) return; // the block is as it was: looked at next time
      held[i].p = p;
      assert_intact(p, held[i].filled, hz_min(held[i].filled, bytes), i);
    }
  }
  if (held[i].p == NULL) return;
  held[i].filled = hz_min(bytes, 300000);
  pattern_fill(held[i].p, held[i].filled, i);
}

static void work_with_the_nth_failing(enum fake_call call, uint64_t n, uint64_t seed) {
  start_of(256 * HZ_MIB);
  struct random_state random = random_start(seed);
  fake_os_fail_nth(call, n);
  for (int step = 0; step < 300; step++) {
    random_step(&random, (unsigned)random_between(&random, 0, BLOCKS - 1));
    fake_os_clock_add(20);
    if (step % 16 == 0) hz_large_purge(hz_os.now_ms(), 500);
  }
  const bool failed = fake_os_failed(call);
  fake_os_fail_nth(call, 0);
  for (unsigned i = 0; i < BLOCKS; i++)
    if (held[i].p != NULL) give(held[i].p);
  hz_large_purge(UINT64_MAX, 0);
  assert_int_equal(large_segments(), 0);
  read_totals();
  assert_int_equal(now.bytes + now.blocks + now.cached, 0);
  // All of the arena is there, but for a place that was lost to others while a block moved.
  assert_non_null(take(call == FAKE_CLAIM ? 64 * HZ_MIB : 256 * HZ_MIB));
  assert_sound();
  exit(failed ? 0 : 2);
}

static void each_failure_in_turn_loses_nothing(enum fake_call call) {
  const uint64_t seed = random_seed(NULL);
  print_message("seed %llu\n", (unsigned long long)seed);
  for (uint64_t n = 1, step = 1;; n += step) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) work_with_the_nth_failing(call, n, seed);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (status != 0) {
      assert_int_equal(WEXITSTATUS(status), 2); // no n-th call any more
      return;
    }
    if (n > 30) step = 5;
  }
}

static void every_refused_commit_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_COMMIT);
}

static void every_refused_decommit_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_DECOMMIT);
}

static void every_refused_move_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_MOVE);
}

static void every_refused_claim_loses_no_more_than_a_place(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_CLAIM);
}

static void no_memory_for_the_record_is_null(void **state) {
  (void)state;
  start();
  fake_os_fail_from(FAKE_MAP, 1);
  assert_null(take(5 * HZ_MIB));
  assert_int_equal(large_segments(), 0);
  fake_os_fail_from(FAKE_MAP, 0);
  assert_non_null(take(5 * HZ_MIB));
}

// ---- Under RLIMIT_AS ---------------------------------------------------------------------------

static void limited_process_gives_address_space_back(void **state) {
  (void)state;
  fake_os_install();
  fake_os_address_limit(128 * HZ_MIB);
  assert_true(hz_arena_start(HZ_TIB));
  const size_t before = fake_os_address_bytes();
  char *p = take(40 * HZ_MIB);
  assert_non_null(p);
  assert_null(take(100 * HZ_MIB));
  pattern_fill(p, HZ_MIB, 3);
  assert_non_null(take(5 * HZ_MIB));
  char *moved = hz_large_resize(record_of(p), 60 * HZ_MIB); // there is room for one of them
  if (moved != NULL) p = moved;
  assert_intact(p, HZ_MIB, HZ_MIB, 3);
  give(p);
  hz_large_purge(UINT64_MAX, 0);
  assert_true(fake_os_address_bytes() <= before + 10 * HZ_MIB);
  assert_non_null(take(100 * HZ_MIB));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(block_commits_what_it_uses_and_no_more),
      cmocka_unit_test(alignments_above_a_segment_are_met),
      cmocka_unit_test(absurd_sizes_are_refused),
      cmocka_unit_test(freed_block_serves_the_next_of_as_many_segments),
      cmocka_unit_test(new_block_is_zero_and_says_so),
      cmocka_unit_test(cache_keeps_no_more_than_its_budget),
      cmocka_unit_test(cache_of_no_bytes_keeps_nothing),
      cmocka_unit_test(cached_block_leaves_after_the_idle_time),
      cmocka_unit_test(second_free_and_interior_frees_are_refused),
      cmocka_unit_test(block_grows_and_shrinks_where_it_is),
      cmocka_unit_test(blocked_block_moves_its_pages),
      cmocka_unit_test(block_that_keeps_growing_is_never_copied),
      cmocka_unit_test(old_place_that_somebody_took_is_never_used_again),
      cmocka_unit_test(refused_move_leaves_the_block_and_is_not_tried_again),
      cmocka_unit_test(refused_moves_lose_no_addresses),
      cmocka_unit_test(growth_beyond_the_commit_limit_leaves_the_block_alone),
      cmocka_unit_test(every_refused_commit_loses_nothing),
      cmocka_unit_test(every_refused_decommit_loses_nothing),
      cmocka_unit_test(every_refused_move_loses_nothing),
      cmocka_unit_test(every_refused_claim_loses_no_more_than_a_place),
      cmocka_unit_test(no_memory_for_the_record_is_null),
      cmocka_unit_test(limited_process_gives_address_space_back),
  };
  return isolated_run(tests, hz_count_of(tests));
}
