// RouteLayer of lines/hz6 alone, over core's arena: what it answers, and that it answers exactly.
#include "lines/hz6/hz6_route.h"

#include "core/class_run.h"
#include "core/large.h"
#include "core/lock.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

static void start(void) {
  fake_os_install();
  assert_true(hz_arena_start(256 * HZ_MIB));
  assert_true(hz6_route_start());
}

static struct hz_run *open_run(unsigned class_id) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  assert_non_null(run);
  assert_true(hz6_route_open(run));
  assert_true(hz_class_run_open(run, class_id));
  return run;
}

static void close_run(struct hz_run *run) {
  hz_class_run_close(run);
  hz_arena_give(run);
}

static char *block_of(const struct hz_run *run, uint32_t index) {
  return (char *)hz_run_base(run) + index * hz_class_bytes(run->class_id);
}

static void mark(const void *p, unsigned class_id) {
  hz6_mark_set(hz6_byte_of(p, class_id + 1), class_id + 1);
}

// Every class, its first, second and last block: the start is VALID, and nothing else is.
static void only_starts_of_live_blocks_are_valid(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
    assert_true(hz6_route_is_clear(run));
    const uint32_t some[] = {0, 1, run->blocks - 1};
    for (unsigned i = 0; i < hz_count_of(some); i++) {
      const char *p = block_of(run, some[i]);
      struct hz6_route r = hz6_route(p);
      assert_int_equal(r.answer, HZ6_INVALID);
      assert_int_equal(r.why, HZ_MISUSE_DOUBLE);
      mark(p, c);
      r = hz6_route(p);
      assert_int_equal(r.answer, HZ6_VALID);
      assert_int_equal(r.kind, HZ6_KIND_CLASS);
      assert_int_equal(r.class_id, c);
      assert_ptr_equal(r.descriptor, run);
      assert_false(hz6_route_is_clear(run));
      for (size_t offset = 1; offset < hz_class_bytes(c); offset += offset < 300 ? 1 : 97) {
        r = hz6_route(p + offset);
        assert_int_equal(r.answer, HZ6_INVALID);
        assert_int_equal(r.why, HZ_MISUSE_INTERIOR);
        assert_int_equal(hz6_route_unmark(p + offset), 0);
      }
    }
    for (unsigned i = 0; i < hz_count_of(some); i++) {
      assert_int_equal(hz6_route_unmark(block_of(run, some[i])), c + 1);
      assert_int_equal(hz6_route_unmark(block_of(run, some[i])), 0);
    }
    assert_true(hz6_route_is_clear(run));
    close_run(run);
  }
}

// The hot path tells them apart by the address alone.
static void places_between_blocks_lie_beyond_the_map(void **state) {
  (void)state;
  start();
  const char *base = hz_arena_base();
  for (size_t offset = 0; offset < 1024; offset++) {
    const bool small = hz6_small_place(base + offset) < hz6_map.small_places;
    const bool medium = hz6_medium_place(base + offset) < hz6_map.medium_places;
    assert_int_equal(small, offset % 16 == 0);
    assert_int_equal(medium, offset % 256 == 0);
  }
  assert_true(hz6_small_place(base - 16) >= hz6_map.small_places);
  assert_true(hz6_small_place(NULL) >= hz6_map.small_places);
  assert_true(hz6_medium_place(base - 256) >= hz6_map.medium_places);
  assert_true(hz6_medium_place(base + hz_arena_bytes()) >= hz6_map.medium_places);
}

static void classes_are_where_their_marks_say(void **state) {
  (void)state;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const bool small = c + 1 <= HZ6_SMALL_MARKS;
    assert_int_equal(small, hz_class_bytes(c) <= 2048);
    assert_int_equal(hz_class_bytes(c) % (small ? 16 : 256), 0);
  }
}

static void what_is_not_ours_is_a_miss(void **state) {
  (void)state;
  start();
  int on_the_stack;
  assert_int_equal(hz6_route(&on_the_stack).answer, HZ6_MISS);
  assert_int_equal(hz6_route(&on_the_stack).why, HZ_MISUSE_FOREIGN);
  assert_int_equal(hz6_route(NULL).answer, HZ6_MISS);
  assert_int_equal(hz6_route((void *)UINTPTR_MAX).answer, HZ6_MISS);
}

static void runs_and_large_blocks_are_known_too(void **state) {
  (void)state;
  start();
  struct hz_run *run = hz_arena_take(3, HZ_SLAB_BYTES);
  char *p = hz_run_base(run);
  atomic_store(&run->state, HZ_RUN_LIVE);
  assert_int_equal(hz6_route(p).answer, HZ6_VALID);
  assert_int_equal(hz6_route(p).kind, HZ6_KIND_RUN);
  assert_int_equal(hz6_route(p + HZ_SLAB_BYTES).why, HZ_MISUSE_INTERIOR);
  atomic_store(&run->state, HZ_RUN_CACHED);
  assert_int_equal(hz6_route(p).answer, HZ6_INVALID);
  assert_int_equal(hz6_route(p).why, HZ_MISUSE_DOUBLE);
  atomic_store(&run->state, HZ_RUN_NONE);
  hz_arena_give(run);
  assert_int_equal(hz6_route(p).answer, HZ6_INVALID);
  assert_int_equal(hz6_route(p).why, HZ_MISUSE_DOUBLE);
  bool zero;
  char *large = hz_large_take(9 * HZ_MIB, 16, &zero);
  assert_int_equal(hz6_route(large).answer, HZ6_VALID);
  assert_int_equal(hz6_route(large).kind, HZ6_KIND_LARGE);
  assert_int_equal(hz6_route(large + 4096).answer, HZ6_INVALID);
  assert_int_equal(hz6_route(large + 4096).why, HZ_MISUSE_INTERIOR);
}

static void each_run_at_a_place_is_another_generation(void **state) {
  (void)state;
  start();
  struct hz_run *first = open_run(10);
  const uint32_t generation = hz6_route(hz_run_base(first)).generation;
  close_run(first);
  struct hz_run *second = open_run(20);
  assert_ptr_equal(second, first);
  assert_int_equal(hz6_route(hz_run_base(second)).generation, generation + 1);
}

static void the_map_is_committed_as_far_as_runs_reach(void **state) {
  (void)state;
  start();
  assert_int_equal(fake_os_calls(FAKE_COMMIT), 0);
  struct hz_run *run = open_run(0);
  const uint64_t calls = fake_os_calls(FAKE_COMMIT);
  for (unsigned i = 1; i < HZ_SEGMENT_SLABS; i++) open_run(i % 30);
  assert_int_equal(fake_os_calls(FAKE_COMMIT), calls);
  fake_os_fail_nth(FAKE_COMMIT, 5); // after those of the arena for another segment
  struct hz_run *other = hz_arena_take(1, HZ_SLAB_BYTES);
  fake_os_fail_from(FAKE_COMMIT, 1);
  assert_false(hz6_route_open(other));
  fake_os_fail_from(FAKE_COMMIT, 0);
  fake_os_fail_nth(FAKE_COMMIT, 0);
  assert_true(hz6_route_open(other));
  close_run(run);
}

// A byte per 16 bytes of small blocks must not stay when the blocks have gone.
static void rows_of_purged_slabs_go_along(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(0);
  for (uint32_t i = 0; i < run->blocks; i++) mark(block_of(run, i), 0);
  const uint8_t *row = (const uint8_t *)&hz6_map.small[hz6_small_of(hz_run_base(run))];
  assert_int_equal(row[17], 1);
  for (uint32_t i = 0; i < run->blocks; i++) hz6_route_unmark(block_of(run, i));
  struct hz_run *neighbour = open_run(0); // so that the segment stays
  close_run(run);
  const uint64_t calls = fake_os_calls(FAKE_PURGE);
  bool more;
  assert_true(hz_arena_purge(UINT64_MAX, 0, 100, &more) != 0);
  assert_int_equal(fake_os_calls(FAKE_PURGE) - calls, 2);
  close_run(neighbour);
}

static void address_limit_bounds_the_map(void **state) {
  (void)state;
  fake_os_install();
  fake_os_address_limit(512 * HZ_MIB);
  assert_true(hz_arena_start(HZ_TIB));
  const size_t before = fake_os_address_bytes();
  assert_true(hz6_route_start());
  assert_true(fake_os_address_bytes() - before < 512 * HZ_MIB / 10);
  assert_true(hz6_map.small_places >= 512 * HZ_MIB / 16);
  open_run(0);
  assert_null(hz_run_of((char *)hz_arena_base() + hz_arena_bytes() - 16));
  assert_int_equal(hz6_route_unmark((char *)hz_arena_base() + hz_arena_bytes() - 256), 0);
}

static void check_finds_a_mark_that_the_bitmap_denies(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(5);
  void *out[1];
  assert_int_equal(hz_class_run_take(run, out, 1), 1);
  mark(out[0], 5);
  assert_null(hz6_route_check(run));
  hz6_mark_set(hz6_byte_of(out[0], 6), 7);
  assert_string_equal(hz6_route_check(run), "hz6: a block is marked as of another class");
  mark(out[0], 5);
  mark(block_of(run, 9), 5);
  assert_string_equal(hz6_route_check(run), "hz6: a block of a run is free and marked as live");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_starts_of_live_blocks_are_valid),
      cmocka_unit_test(places_between_blocks_lie_beyond_the_map),
      cmocka_unit_test(classes_are_where_their_marks_say),
      cmocka_unit_test(what_is_not_ours_is_a_miss),
      cmocka_unit_test(runs_and_large_blocks_are_known_too),
      cmocka_unit_test(each_run_at_a_place_is_another_generation),
      cmocka_unit_test(the_map_is_committed_as_far_as_runs_reach),
      cmocka_unit_test(rows_of_purged_slabs_go_along),
      cmocka_unit_test(address_limit_bounds_the_map),
      cmocka_unit_test(check_finds_a_mark_that_the_bitmap_denies),
  };
  return isolated_run(tests, hz_count_of(tests));
}
