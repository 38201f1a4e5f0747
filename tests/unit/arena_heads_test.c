// core/arena for a line that keeps records in the first slab of each segment.
#include "tests/unit/arena_machine.h"
#include "tests/support/check.h"

static void start_with_heads(void) {
  start();
  hz_arena_keep_heads();
}

static char *head_of(const struct hz_run *run) {
  return (char *)hz_align_down((uintptr_t)hz_run_base(run), HZ_SEGMENT_BYTES);
}

static void run_fits_where_an_empty_segment_has_room(void **state) {
  (void)state;
  start();
  for (size_t align = 1; align <= HZ_SEGMENT_BYTES; align *= 2) {
    assert_true(hz_arena_run_fits(HZ_SEGMENT_BYTES, align));
    assert_false(hz_arena_run_fits(HZ_SEGMENT_BYTES + 1, align));
  }
  assert_false(hz_arena_run_fits(1, 2 * (size_t)HZ_SEGMENT_BYTES));
  assert_false(hz_arena_run_fits(SIZE_MAX, 1));
  hz_arena_keep_heads();
  for (size_t align = 1; align < HZ_SEGMENT_BYTES; align *= 2) {
    const size_t longest = HZ_SEGMENT_BYTES - hz_max(align, HZ_SLAB_BYTES);
    assert_true(hz_arena_run_fits(longest, align));
    assert_false(hz_arena_run_fits(longest + 1, align));
  }
  assert_false(hz_arena_run_fits(0, HZ_SEGMENT_BYTES)); // a head lies at every such place
  assert_false(hz_arena_run_fits(SIZE_MAX, 1));
}

static void no_run_ever_covers_a_head(void **state) {
  (void)state;
  start_with_heads();
  for (size_t align = 16; align <= HZ_SEGMENT_BYTES; align *= 2)
    for (unsigned slabs = 1; slabs <= HZ_SEGMENT_SLABS; slabs++) {
      if (!hz_arena_run_fits((size_t)slabs << HZ_SLAB_SHIFT, align)) continue;
      struct hz_run *run = take(slabs, align);
      assert_non_null(run);
      assert_int_equal((uintptr_t)hz_run_base(run) % hz_max(align, HZ_SLAB_BYTES), 0);
      assert_true((char *)hz_run_base(run) >= head_of(run) + HZ_SLAB_BYTES);
      assert_true((char *)hz_run_base(run) + ((size_t)slabs << HZ_SLAB_SHIFT) <=
                  head_of(run) + HZ_SEGMENT_BYTES);
      assert_null(hz_run_of(head_of(run)));
      assert_sound();
      hz_arena_give(run);
    }
}

static void slabs_beside_the_heads_are_all_handed_out(void **state) {
  (void)state;
  start_with_heads();
  unsigned taken = 0;
  for (struct hz_run *run; (run = take(1, 16)) != NULL; taken++) {
    assert_true((char *)hz_run_base(run) != head_of(run));
    touch(run);
  }
  assert_int_equal(taken, SEGMENTS * (HZ_SEGMENT_SLABS - 1));
  assert_sound();
}

static void run_does_not_grow_into_the_next_segments_head(void **state) {
  (void)state;
  start_with_heads();
  struct hz_run *run = take(1, 16);
  assert_true(hz_arena_resize(run, HZ_SEGMENT_SLABS - 1));
  assert_false(hz_arena_resize(run, HZ_SEGMENT_SLABS));
  assert_int_equal(run->slabs, HZ_SEGMENT_SLABS - 1);
  assert_sound();
}

static void head_is_zero_when_a_segment_opens(void **state) {
  (void)state;
  start_with_heads();
  for (int round = 0; round < 5; round++) {
    struct hz_run *run = take(3, 16);
    const char *head = head_of(run);
    for (size_t i = 0; i < HZ_SLAB_BYTES; i++) assert_int_equal(head[i], 0);
    memset(head_of(run), 0xff, HZ_SLAB_BYTES);
    if (round == 2) fake_os_fail_nth(FAKE_DECOMMIT, 1); // the pages go another way
    hz_arena_give(run);
    purge_all();
    assert_sound();
  }
}

static void ask_in_between(enum fake_call call, void *at, size_t bytes) {
  if (call != FAKE_DECOMMIT || bytes != HZ_SEGMENT_BYTES) return;
  const size_t segment = ((uintptr_t)at - hz_arena.base) >> HZ_SEGMENT_SHIFT;
  CHECK(hz_arena.kind[segment] != HZ_SEGMENT_OF_RUNS, "a head is offered that is about to go");
  CHECK(hz_run_of((char *)at + HZ_SLAB_BYTES) == NULL, "a run is found in memory that goes");
  CHECK(hz_arena_check() == NULL, "%s", hz_arena_check());
}

static void head_is_not_offered_while_it_goes(void **state) {
  (void)state;
  start_with_heads();
  for (int round = 0; round < 2; round++) {
    hz_arena_give(take(1, 16));
    fake_os_interrupt(ask_in_between);
    if (round == 0) fake_os_fail_nth(FAKE_DECOMMIT, 1); // the segment stays
    purge_all();
    assert_sound();
    fake_os_interrupt(NULL);
  }
  struct hz_run *run = take(1, 16);
  assert_int_equal(hz_arena.kind[hz_slab_of(hz_run_base(run)) / HZ_SEGMENT_SLABS],
                   HZ_SEGMENT_OF_RUNS);
}

static void head_keeps_its_contents_while_a_run_is_out(void **state) {
  (void)state;
  start_with_heads();
  struct hz_run *stays = take(1, 16), *goes = take(10, 16);
  assert_ptr_equal(head_of(stays), head_of(goes));
  memset(head_of(stays), 0x55, HZ_SLAB_BYTES);
  touch(goes);
  hz_arena_give(goes);
  purge_all();
  for (size_t i = 0; i < HZ_SLAB_BYTES; i++) assert_int_equal(head_of(stays)[i], 0x55);
  assert_sound();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(run_fits_where_an_empty_segment_has_room),
      cmocka_unit_test(no_run_ever_covers_a_head),
      cmocka_unit_test(slabs_beside_the_heads_are_all_handed_out),
      cmocka_unit_test(run_does_not_grow_into_the_next_segments_head),
      cmocka_unit_test(head_is_zero_when_a_segment_opens),
      cmocka_unit_test(head_is_not_offered_while_it_goes),
      cmocka_unit_test(head_keeps_its_contents_while_a_run_is_out),
  };
  return isolated_run(tests, hz_count_of(tests));
}
