// core/depot: full magazines between the threads and the runs.
#include "core/depot.h"

#include "tests/unit/isolated.h"

enum { COUNT = 6 };
static struct hz_magazine magazines[COUNT];

static void fill(struct hz_depot *depot, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) hz_depot_put(depot, &magazines[i]);
}

static unsigned length(const struct hz_magazine *list) {
  unsigned n = 0;
  for (; list != NULL; list = list->next) n++;
  return n;
}

static void newest_magazine_comes_out_first(void **state) {
  (void)state;
  struct hz_depot depot = {0};
  fill(&depot, 0, 3);
  assert_int_equal(depot.count, 3);
  assert_ptr_equal(hz_depot_get(&depot), &magazines[2]);
  assert_ptr_equal(hz_depot_get(&depot), &magazines[1]);
  assert_ptr_equal(hz_depot_get(&depot), &magazines[0]);
  assert_null(hz_depot_get(&depot));
  assert_int_equal(depot.count, 0);
}

static void surplus_is_what_nobody_needed_since_the_last_time(void **state) {
  (void)state;
  struct hz_depot depot = {0};
  fill(&depot, 0, 5);
  assert_null(hz_depot_surplus(&depot, false)); // all new: perhaps needed
  hz_depot_put(&depot, hz_depot_get(&depot));
  hz_depot_get(&depot);
  hz_depot_get(&depot);
  fill(&depot, 5, 6); // 4 now, 3 at the lowest
  assert_int_equal(length(hz_depot_surplus(&depot, false)), 3);
  assert_int_equal(depot.count, 1);
  assert_int_equal(length(hz_depot_surplus(&depot, false)), 1);
  assert_null(hz_depot_surplus(&depot, false));
}

static void idle_depot_is_empty_after_two_rounds(void **state) {
  (void)state;
  struct hz_depot depot = {0};
  fill(&depot, 0, COUNT);
  hz_depot_surplus(&depot, false);
  assert_int_equal(length(hz_depot_surplus(&depot, false)), COUNT);
  assert_null(depot.full);
}

static void surplus_of_all_leaves_nothing(void **state) {
  (void)state;
  struct hz_depot depot = {0};
  fill(&depot, 0, COUNT);
  assert_int_equal(length(hz_depot_surplus(&depot, true)), COUNT);
  assert_int_equal(depot.count, 0);
  assert_null(hz_depot_surplus(&depot, true));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(newest_magazine_comes_out_first),
      cmocka_unit_test(surplus_is_what_nobody_needed_since_the_last_time),
      cmocka_unit_test(idle_depot_is_empty_after_two_rounds),
      cmocka_unit_test(surplus_of_all_leaves_nothing),
  };
  return isolated_run(tests, hz_count_of(tests));
}
