// Scavenge of lines/hz6 alone, on a clock that the test sets: the front caches, Transfer, Source and
// Policy are stand-ins.
#include "lines/hz6/hz6_scavenge.h"

#include "core/core.h"
#include "core/tick.h"
#include "lines/hz6/hz6_route.h"
#include "lines/hz6/hz6_source.h"
#include "lines/hz6/hz6_transfer.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

enum { CLASS = 19, BLOCKS = 10, MAGAZINE_BYTES = BLOCKS * 1024, IDLE_MS = 400, PERIOD_MS = 100 };

// ---- Stand-ins ----------------------------------------------------------------------------------

struct hz6_policy hz6_policy;
static unsigned due;              // magazines of CLASS
static unsigned in_each = BLOCKS; // blocks in each of them
static uint64_t moved;            // blocks that Source got
static unsigned periods, flushes, adoptions, concessions, front_periods;
static bool orphan;

void hz6_transfer_period(void) {
  periods++;
}
struct hz6_magazine *hz6_transfer_due(unsigned class_id, size_t bytes, bool all) {
  if (class_id != CLASS) return NULL;
  struct hz6_magazine *list = NULL;
  for (size_t n = all ? due : hz_min(due, bytes / MAGAZINE_BYTES + 1); n > 0; n--, due--) {
    struct hz6_magazine *m = hz6_magazine_new(BLOCKS);
    m->count = in_each;
    m->next = list;
    list = m;
  }
  return list;
}
void hz6_source_give(unsigned class_id, const struct hz6_item *items, uint32_t count) {
  (void)items;
  assert_int_equal(class_id, CLASS);
  moved += count;
}
void hz6_route_concede(void) {
  concessions++;
}

static void flush(void) {
  flushes++;
}
static bool adopt(void) {
  adoptions++;
  return orphan;
}
static void period(void) {
  front_periods++;
}
static const char *check(void) {
  return NULL;
}

static void start(size_t budget) {
  static const struct hz6_scavenge_front front = {flush, adopt, period, check};
  static const struct hz_core_options options = {
      .reserve_bytes = 256 * HZ_MIB, .purge_idle_ms = IDLE_MS, .run_batch = 1};
  fake_os_install();
  assert_true(hz_core_start(&options));
  hz6_policy.scavenge_bytes = budget;
  hz6_scavenge_start(&front);
  hz6_scavenge_pause(NULL); // the first period begins
  periods = adoptions = front_periods = 0;
}

static void pass_ms(uint64_t ms) {
  fake_os_clock_add(ms);
  hz6_scavenge_pause(NULL);
}

// ---- Cases --------------------------------------------------------------------------------------

static void nothing_is_done_before_its_time(void **state) {
  (void)state;
  start(HZ_MIB);
  due = 5;
  for (unsigned i = 0; i < 50; i++) hz6_scavenge_pause(NULL);
  pass_ms(PERIOD_MS - 1);
  assert_int_equal(moved, 0);
  assert_int_equal(periods, 0);
  pass_ms(1);
  assert_int_equal(moved, 5 * BLOCKS);
  assert_int_equal(periods, 1);
  assert_int_equal(adoptions, 1);
  assert_int_equal(front_periods, 1);
}

static void one_quiet_point_moves_no_more_than_its_budget(void **state) {
  (void)state;
  start(3 * MAGAZINE_BYTES - 1);
  due = 8;
  pass_ms(PERIOD_MS);
  assert_int_equal(moved, 3 * BLOCKS);
  hz6_scavenge_pause(NULL); // not in the same millisecond
  assert_int_equal(moved, 3 * BLOCKS);
  pass_ms(1);
  assert_int_equal(moved, 6 * BLOCKS);
  pass_ms(1);
  assert_int_equal(moved, 8 * BLOCKS);
  assert_int_equal(periods, 1);
}

static void magazines_that_are_not_full_go_as_well(void **state) {
  (void)state;
  start(3 * MAGAZINE_BYTES);
  due = 20;
  in_each = 1;
  pass_ms(PERIOD_MS);
  assert_int_equal(moved, 20);
}

static void idle_process_is_left_in_peace(void **state) {
  (void)state;
  start(HZ_MIB);
  pass_ms(PERIOD_MS);
  for (unsigned i = 0; i < 10; i++) pass_ms(1);
  assert_int_equal(periods, 1);
}

static void everything_goes_at_once_when_asked(void **state) {
  (void)state;
  start(MAGAZINE_BYTES);
  due = 20;
  hz6_scavenge_trim(0);
  assert_int_equal(moved, 20 * BLOCKS);
  assert_int_equal(flushes, 1);
  assert_int_equal(adoptions, 1);
  assert_int_equal(concessions, 0);
}

static void others_follow_at_their_next_slow_path_once(void **state) {
  (void)state;
  start(HZ_MIB);
  uint32_t seen = 0;
  hz6_scavenge_pause(&seen);
  assert_int_equal(flushes, 0);
  hz6_scavenge_all();
  flushes = 0;
  hz6_scavenge_pause(&seen);
  hz6_scavenge_pause(&seen);
  assert_int_equal(flushes, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_done_before_its_time),
      cmocka_unit_test(one_quiet_point_moves_no_more_than_its_budget),
      cmocka_unit_test(magazines_that_are_not_full_go_as_well),
      cmocka_unit_test(idle_process_is_left_in_peace),
      cmocka_unit_test(everything_goes_at_once_when_asked),
      cmocka_unit_test(others_follow_at_their_next_slow_path_once),
  };
  return isolated_run(tests, hz_count_of(tests));
}
