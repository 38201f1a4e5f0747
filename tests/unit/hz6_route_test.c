// RouteLayer of lines/hz6 alone, over core's arena: what it answers, and that it answers exactly.
#include "lines/hz6/hz6_route.h"

#include "core/class_run.h"
#include "core/large.h"
#include "core/meta.h"
#include "lines/hz6/hz6_policy.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

struct hz6_policy hz6_policy; // a stand-in: spread is all that Route asks

static void spread(unsigned marks) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    hz6_policy.of[c].spread = hz_class_bytes(c) / 16 < marks ? 1 : marks;
}

static void start(void) {
  fake_os_install();
  if (hz6_policy.of[0].spread == 0) spread(1);
  assert_true(hz_arena_start(256 * HZ_MIB));
  assert_true(hz6_route_start());
}

static struct hz_run *open_run(unsigned class_id) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  assert_non_null(run);
  assert_true(hz6_route_open(run, class_id));
  assert_true(hz_class_run_open(run, class_id));
  return run;
}

static void close_run(struct hz_run *run) {
  hz6_route_close(run, run->class_id);
  hz_class_run_close(run);
  hz_arena_give(run);
}

static char *block_of(const struct hz_run *run, uint32_t index) {
  return (char *)hz_run_base(run) + index * hz_class_bytes(run->class_id);
}

static void mark(const void *p, unsigned class_id) {
  hz6_mark_set(hz6_route_mark(p), class_id + 1);
}

static unsigned unmark(const void *p) {
  _Atomic uint8_t *at;
  return hz6_route_unmark(p, &at);
}

// Every class, its first, second and last block: the start is VALID, and nothing else is.
static void only_starts_of_live_blocks_are_valid(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
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
      for (size_t offset = 1; offset < hz_class_bytes(c); offset += offset < 300 ? 1 : 97) {
        r = hz6_route(p + offset);
        assert_int_equal(r.answer, HZ6_INVALID);
        assert_int_equal(r.why, HZ_MISUSE_INTERIOR);
        assert_int_equal(unmark(p + offset), 0);
      }
    }
    for (unsigned i = 0; i < hz_count_of(some); i++) {
      assert_int_equal(unmark(block_of(run, some[i])), c + 1);
      assert_int_equal(unmark(block_of(run, some[i])), 0);
    }
    close_run(run);
  }
}

// Of every class, offsets all over its run, every block live: blocks have different marks, and
// between their beginnings none is set.
static void marks_are_set_where_blocks_begin_alone(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const struct hz_run *run = open_run(c);
    const char *base = hz_run_base(run);
    const size_t bytes = hz_class_bytes(c), end = (size_t)run->slabs << HZ_SLAB_SHIFT;
    for (uint32_t i = 0; i < run->blocks; i++) mark(block_of(run, i), c);
    for (size_t offset = 0; offset < end; offset += offset % bytes < 40 ? 1 : 7) {
      const _Atomic uint8_t *at = hz6_route_mark(base + offset);
      const bool block = offset % bytes == 0 && offset / bytes < run->blocks;
      assert_int_equal(at != NULL && hz6_mark_at(at) != 0, block);
    }
    for (uint32_t i = 0; i < run->blocks; i++) assert_int_equal(unmark(block_of(run, i)), c + 1);
  }
}

static void the_same_with_rows_of_marks(void **state) {
  spread(4);
  marks_are_set_where_blocks_begin_alone(state);
  const struct hz_run *run = open_run(30);
  assert_int_equal(hz6_route_mark(block_of(run, 1)) - hz6_route_mark(block_of(run, 0)), 4);
}

// Such a place is behind the last block, where the run has too little left for another.
static void rest_of_a_run_is_no_block(void **state) {
  (void)state;
  start();
  const struct hz_run *run = open_run(2); // 48 bytes: 1,365 blocks and 16 bytes
  const char *rest = block_of(run, run->blocks);
  assert_int_equal(unmark(rest), 0);
  assert_int_equal(hz6_route(rest).answer, HZ6_INVALID);
  assert_int_equal(hz6_route(rest).why, HZ_MISUSE_INTERIOR);
}

static void closed_run_has_no_blocks(void **state) {
  (void)state;
  start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct hz_run *run = open_run(c);
    const char *base = hz_run_base(run);
    const unsigned slabs = run->slabs;
    close_run(run);
    for (unsigned i = 0; i < slabs; i++)
      assert_null(hz6_route_mark(base + ((size_t)i << HZ_SLAB_SHIFT)));
  }
}

// The record of marks may have been anything before.
static void new_run_has_no_live_block(void **state) {
  (void)state;
  start();
  for (unsigned round = 0; round < 2; round++)
    for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
      struct hz_run *run = open_run(c);
      for (uint32_t i = 0; i < run->blocks; i++) {
        assert_int_equal(hz6_mark_at(hz6_route_mark(block_of(run, i))), 0);
        mark(block_of(run, i), c);
      }
      close_run(run);
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

static void without_memory_a_run_is_not_entered(void **state) {
  (void)state;
  start();
  struct hz_run *run = hz_arena_take(1, HZ_SLAB_BYTES);
  fake_os_fail_from(FAKE_COMMIT, 1);
  assert_false(hz6_route_open(run, 0));
  fake_os_fail_from(FAKE_COMMIT, 0);
  fake_os_fail_from(FAKE_MAP, 1); // its 4,097 marks want a record
  while (hz_meta_take(4096) != NULL) continue;
  assert_false(hz6_route_open(run, 0));
  assert_int_equal(unmark(hz_run_base(run)), 0);
  fake_os_fail_from(FAKE_MAP, 0);
  assert_true(hz6_route_open(run, 0));
}

static void what_the_arena_concedes_the_map_does(void **state) {
  (void)state;
  fake_os_install();
  spread(1);
  assert_true(hz_arena_start(64 * HZ_GIB));
  assert_true(hz6_route_start());
  struct hz_run *run = open_run(5), *above = NULL;
  for (unsigned i = 0; i < 200; i++) above = hz_arena_take(HZ_SEGMENT_SLABS, HZ_SLAB_BYTES);
  fake_os_address_limit(fake_os_address_bytes());
  const size_t before = fake_os_address_bytes();
  assert_true(hz_arena_concede());
  hz6_route_concede();
  assert_true(before - fake_os_address_bytes() > 60 * HZ_GIB);
  mark(block_of(run, 3), 5);
  assert_int_equal(unmark(block_of(run, 3)), 6);
  assert_int_equal(unmark((char *)hz_arena_base() + 60 * HZ_GIB), 0);
  // What lives above all runs of classes can still be asked about, and become one.
  assert_null(hz6_route_mark(hz_run_base(above)));
  hz_arena_give(above);
  above = open_run(30);
  mark(block_of(above, 1), 30);
  assert_int_equal(unmark(block_of(above, 1)), 31);
}

static void check_finds_a_mark_that_the_bitmap_denies(void **state) {
  (void)state;
  start();
  struct hz_run *run = open_run(5);
  void *out[1];
  assert_int_equal(hz_class_run_take(run, out, 1), 1);
  mark(out[0], 5);
  assert_null(hz6_route_check(run));
  hz6_mark_set(hz6_route_mark(out[0]), 7);
  assert_string_equal(hz6_route_check(run), "hz6: a block is marked as of another class");
  mark(out[0], 5);
  mark(block_of(run, 9), 5);
  assert_string_equal(hz6_route_check(run), "hz6: a block of a run is free and marked as live");
  unmark(block_of(run, 9));
  struct hz6_page *page = &hz6_pages[hz_slab_of(out[0])];
  page->base += 16;
  assert_string_equal(hz6_route_check(run), "hz6: the slabs of a run disagree about it");
  page->base -= 16;
  hz6_mark_set(page->marks + run->blocks, 6); // of 96 bytes: a mark each
  assert_string_equal(hz6_route_check(run), "hz6: what is behind the last block is marked");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_starts_of_live_blocks_are_valid),
      cmocka_unit_test(marks_are_set_where_blocks_begin_alone),
      cmocka_unit_test(the_same_with_rows_of_marks),
      cmocka_unit_test(rest_of_a_run_is_no_block),
      cmocka_unit_test(closed_run_has_no_blocks),
      cmocka_unit_test(new_run_has_no_live_block),
      cmocka_unit_test(what_is_not_ours_is_a_miss),
      cmocka_unit_test(runs_and_large_blocks_are_known_too),
      cmocka_unit_test(each_run_at_a_place_is_another_generation),
      cmocka_unit_test(without_memory_a_run_is_not_entered),
      cmocka_unit_test(what_the_arena_concedes_the_map_does),
      cmocka_unit_test(check_finds_a_mark_that_the_bitmap_denies),
  };
  return isolated_run(tests, hz_count_of(tests));
}
