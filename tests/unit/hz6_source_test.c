// SourceLayer of lines/hz6 over core's arena and bitmaps: Route and Policy are stand-ins.
#include "lines/hz6/hz6_source.h"

#include "core/counter.h"
#include "core/misuse.h"
#include "lines/hz6/hz6_options.h"
#include "lines/hz6/hz6_route.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

enum { CLASS = 19, MANY = 200 };
static_assert(MANY > 3 * 64, "several runs of 64 blocks of 1 KiB");

// ---- Stand-ins ----------------------------------------------------------------------------------

struct hz6_policy hz6_policy;
static bool route_refuses;

static int entered; // runs that Route knows
static _Atomic uint8_t a_mark;

bool hz6_route_open(struct hz_run *run, unsigned class_id) {
  (void)run, (void)class_id;
  entered += !route_refuses;
  return !route_refuses;
}
void hz6_route_close(const struct hz_run *run, unsigned class_id) {
  (void)run, (void)class_id;
  entered--;
}
_Atomic uint8_t *hz6_route_mark(const void *p) {
  (void)p;
  return &a_mark;
}
const char *hz6_route_check(const struct hz_run *run) {
  (void)run;
  return NULL;
}

static void start(uint32_t homes) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  hz6_policy.homes = homes;
  assert_true(hz_arena_start(256 * HZ_MIB));
  hz_central_start();
}

static uint32_t take(unsigned home, void **out, uint32_t want) {
  uint32_t got = 0;
  while (got < want) {
    struct hz6_item items[HZ6_MAX_FRONT_BLOCKS];
    const uint32_t most = (uint32_t)hz_min(want - got, HZ6_MAX_FRONT_BLOCKS);
    const uint32_t more = hz6_source_take(CLASS, home, items, most);
    for (uint32_t i = 0; i < more; i++) {
      assert_ptr_equal(items[i].mark, &a_mark);
      out[got++] = items[i].block;
    }
    if (more == 0) break;
  }
  return got;
}

static void give(void *const *blocks, uint32_t count) {
  struct hz6_item items[MANY];
  for (uint32_t i = 0; i < count; i++) items[i] = (struct hz6_item){blocks[i], &a_mark};
  for (uint32_t i = 0; i < count; i += HZ6_MAX_FRONT_BLOCKS)
    hz6_source_give(CLASS, items + i, (uint32_t)hz_min(count - i, HZ6_MAX_FRONT_BLOCKS));
}

static uint64_t run_bytes(void) {
  struct hz_arena_totals totals;
  hz_arena_read_totals(&totals);
  return totals.run_bytes;
}

static unsigned home_of(const void *p) {
  return hz_run_of(p)->home;
}

// ---- Cases --------------------------------------------------------------------------------------

static void blocks_are_distinct_and_of_the_class(void **state) {
  (void)state;
  start(1);
  static void *out[MANY];
  assert_int_equal(take(0, out, MANY), MANY);
  for (unsigned i = 0; i < MANY; i++) {
    assert_int_equal(hz_run_of(out[i])->class_id, CLASS);
    for (unsigned k = 0; k < i; k++) assert_ptr_not_equal(out[i], out[k]);
  }
  assert_null(hz_central_check(NULL));
}

static void runs_go_back_when_their_blocks_have(void **state) {
  (void)state;
  start(1);
  static void *out[MANY];
  take(0, out, MANY);
  assert_true(run_bytes() > 0);
  give(out, MANY);
  assert_int_equal(run_bytes(), 0);
  assert_int_equal(entered, 0);
  assert_int_equal(hz_counter_read(HZ_COUNT_runs_returned), hz_counter_read(HZ_COUNT_runs_carved));
}

// Two threads that free a block at the same moment both get past Route.
static void second_give_of_a_block_is_refused(void **state) {
  (void)state;
  start(1);
  void *out[2];
  take(0, out, 2);
  give((void *[]){out[0], out[0]}, 2);
  assert_int_equal(hz_counter_read(HZ_COUNT_misuse_double), 1);
  assert_null(hz_central_check(NULL));
  give(&out[1], 1);
  assert_int_equal(run_bytes(), 0);
}

static void without_owners_all_share_all_runs(void **state) {
  (void)state;
  start(1);
  void *out[3];
  take(0, out, 2);
  give(out, 1);
  take(0, out + 2, 1);
  assert_ptr_equal(hz_run_of(out[2]), hz_run_of(out[1]));
  assert_int_equal(hz_counter_read(HZ_COUNT_runs_carved), 1);
}

static void with_owners_a_living_home_is_left_alone(void **state) {
  (void)state;
  start(HZ_HOMES);
  hz6_source_join(3);
  hz6_source_join(4);
  void *theirs[1], *mine[1];
  take(3, theirs, 1);
  take(4, mine, 1);
  assert_int_equal(home_of(theirs[0]), 3);
  assert_int_equal(home_of(mine[0]), 4);
  assert_int_equal(hz_counter_read(HZ_COUNT_runs_carved), 2);
}

static void with_owners_a_dead_home_is_taken_over(void **state) {
  (void)state;
  start(HZ_HOMES);
  hz6_source_join(3);
  hz6_source_join(4);
  void *theirs[1], *mine[1];
  take(3, theirs, 1);
  hz6_source_leave(3);
  take(4, mine, 1);
  assert_int_equal(home_of(theirs[0]), 4);
  assert_int_equal(hz_counter_read(HZ_COUNT_runs_carved), 1);
  assert_int_equal(hz_counter_read(HZ_COUNT_taken_over), 1);
}

static void without_memory_any_home_must_do(void **state) {
  (void)state;
  start(HZ_HOMES);
  hz6_source_join(3);
  hz6_source_join(4);
  void *theirs[1], *mine[1];
  take(3, theirs, 1);
  route_refuses = true;
  assert_int_equal(take(4, mine, 1), 1);
  assert_int_equal(home_of(mine[0]), 4);
}

static void run_that_route_refuses_goes_back(void **state) {
  (void)state;
  start(1);
  void *out[1];
  route_refuses = true;
  assert_int_equal(take(0, out, 1), 0);
  assert_int_equal(run_bytes(), 0);
  route_refuses = false;
  assert_int_equal(take(0, out, 1), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_distinct_and_of_the_class),
      cmocka_unit_test(runs_go_back_when_their_blocks_have),
      cmocka_unit_test(second_give_of_a_block_is_refused),
      cmocka_unit_test(without_owners_all_share_all_runs),
      cmocka_unit_test(with_owners_a_living_home_is_left_alone),
      cmocka_unit_test(with_owners_a_dead_home_is_taken_over),
      cmocka_unit_test(without_memory_any_home_must_do),
      cmocka_unit_test(run_that_route_refuses_goes_back),
  };
  return isolated_run(tests, hz_count_of(tests));
}
