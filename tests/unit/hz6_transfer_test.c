// The transfer cache of lines/hz6 alone: Route and Policy are stand-ins.
#include "lines/hz6/hz6_transfer.h"

#include "core/lock.h"
#include "lines/hz6/hz6_route.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

enum { CLASS = 7, CAPACITY = 8, MOST = 5 };

// ---- Stand-ins ----------------------------------------------------------------------------------

struct hz6_policy hz6_policy;

// Blocks are numbers here; Route says of all that they are free ones of CLASS, but for one.
static void *odd_one;

struct hz6_route hz6_route(const void *p) {
  const bool live = p == odd_one;
  return (struct hz6_route){.answer = live ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_CLASS,
                            .class_id = CLASS,
                            .why = HZ_MISUSE_DOUBLE};
}

_Atomic uint8_t *hz6_route_mark(const void *p) {
  (void)p;
  return NULL;
}

static void *block(uintptr_t n) {
  return (void *)(n * 16 + 16);
}

static void start(void) {
  fake_os_install();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    hz6_policy.of[c].capacity = CAPACITY;
    hz6_policy.of[c].transfer = MOST;
  }
  hz6_transfer_start();
}

static struct hz6_magazine *full(uintptr_t first) {
  struct hz6_magazine *m = hz6_transfer_take_empty(CLASS);
  assert_non_null(m);
  for (m->count = 0; m->count < CAPACITY; m->count++)
    m->items[m->count + 1].block = block(first + m->count);
  return m;
}

static void put(struct hz6_magazine *m) {
  struct hz6_magazine *empty;
  assert_true(hz6_transfer_put(CLASS, m, &empty));
  if (empty != NULL) hz6_transfer_put_empty(CLASS, empty);
}

// ---- Cases --------------------------------------------------------------------------------------

static void newest_magazine_comes_out_first_and_whole(void **state) {
  (void)state;
  start();
  struct hz6_magazine *first = full(0), *second = full(100);
  put(first);
  put(second);
  assert_null(hz6_transfer_check());
  assert_ptr_equal(hz6_transfer_get(CLASS, NULL), second);
  assert_int_equal(second->count, CAPACITY);
  assert_ptr_equal(second->items[1].block, block(100));
  assert_ptr_equal(hz6_transfer_get(CLASS, NULL), first);
  assert_null(hz6_transfer_get(CLASS, NULL));
}

static void classes_are_apart(void **state) {
  (void)state;
  start();
  put(full(0));
  assert_null(hz6_transfer_get(CLASS + 1, NULL));
}

static void full_one_is_exchanged_for_an_empty_one(void **state) {
  (void)state;
  start();
  struct hz6_magazine *m = full(0), *mine = hz6_magazine_new(CAPACITY), *back;
  put(m);
  assert_ptr_equal(hz6_transfer_get(CLASS, mine), m);
  assert_true(hz6_transfer_put(CLASS, m, &back));
  assert_ptr_equal(back, mine);
}

static void empty_one_stays_when_nothing_waits(void **state) {
  (void)state;
  start();
  struct hz6_magazine *mine = hz6_magazine_new(CAPACITY);
  assert_null(hz6_transfer_get(CLASS, mine));
  // It was not taken in: no other one is handed out in its place.
  assert_ptr_not_equal(hz6_transfer_take_empty(CLASS), mine);
}

static void no_more_than_policy_allows_wait(void **state) {
  (void)state;
  start();
  for (unsigned i = 0; i < MOST; i++) put(full(i * 100));
  struct hz6_magazine *over = full(900), *empty = over;
  assert_false(hz6_transfer_put(CLASS, over, &empty));
  assert_null(empty);
  assert_int_equal(hz6_transfer_bytes(), MOST * CAPACITY * hz_class_bytes(CLASS));
  assert_non_null(hz6_transfer_get(CLASS, NULL));
  assert_true(hz6_transfer_put(CLASS, over, &empty));
}

static void nothing_waits_where_policy_says_none(void **state) {
  (void)state;
  start();
  hz6_policy.of[CLASS].transfer = 0;
  struct hz6_magazine *m = full(0), *empty;
  assert_false(hz6_transfer_put(CLASS, m, &empty));
}

static unsigned length(struct hz6_magazine *list) {
  unsigned n = 0;
  for (; list != NULL; list = list->next) n++;
  return n;
}

static void only_what_nobody_needed_for_a_period_is_due(void **state) {
  (void)state;
  start();
  for (unsigned i = 0; i < 4; i++) put(full(i * 100));
  hz6_transfer_period(); // all four came within it
  assert_null(hz6_transfer_due(CLASS, HZ_MIB, false));
  struct hz6_magazine *m = hz6_transfer_get(CLASS, NULL);
  put(m);
  hz6_transfer_period(); // three were there all the time
  assert_int_equal(length(hz6_transfer_due(CLASS, HZ_MIB, false)), 3);
  assert_null(hz6_transfer_due(CLASS, HZ_MIB, false));
  assert_null(hz6_transfer_check());
}

static void what_was_due_and_is_needed_again_stays(void **state) {
  (void)state;
  start();
  for (unsigned i = 0; i < 4; i++) put(full(i * 100));
  hz6_transfer_period();
  hz6_transfer_period(); // all four are due
  struct hz6_magazine *m[3];
  for (unsigned i = 0; i < 3; i++) m[i] = hz6_transfer_get(CLASS, NULL);
  for (unsigned i = 0; i < 3; i++) put(m[i]);
  assert_int_equal(length(hz6_transfer_due(CLASS, HZ_MIB, false)), 1);
}

static void due_magazines_come_within_the_budget(void **state) {
  (void)state;
  start();
  for (unsigned i = 0; i < 4; i++) put(full(i * 100));
  hz6_transfer_period();
  hz6_transfer_period();
  assert_int_equal(length(hz6_transfer_due(CLASS, 0, false)), 1);
  assert_int_equal(length(hz6_transfer_due(CLASS, CAPACITY * hz_class_bytes(CLASS), false)), 2);
  assert_int_equal(length(hz6_transfer_due(CLASS, HZ_MIB, false)), 1);
}

static void all_come_when_all_are_asked_for(void **state) {
  (void)state;
  start();
  for (unsigned i = 0; i < 4; i++) put(full(i * 100));
  assert_int_equal(length(hz6_transfer_due(CLASS, 0, true)), 4);
  assert_int_equal(hz6_transfer_bytes(), 0);
}

static void few_empty_ones_are_kept(void **state) {
  (void)state;
  start();
  const size_t before = hz_meta_bytes();
  for (unsigned round = 0; round < 100; round++)
    for (unsigned i = 0; i < 100; i++) {
      struct hz6_magazine *m = hz6_magazine_new(CAPACITY);
      hz6_transfer_put_empty(CLASS, m);
    }
  assert_true(hz_meta_bytes() - before <= 2 * HZ_MIB); // a chunk of records, not ten thousand
}

static void without_memory_there_is_no_new_magazine(void **state) {
  (void)state;
  start();
  fake_os_fail_from(FAKE_MAP, 1);
  struct hz6_magazine *last = NULL, *m;
  for (unsigned i = 0; (m = hz6_transfer_take_empty(CLASS)) != NULL; i++) {
    assert_true(i < 1000000);
    last = m;
  }
  if (last == NULL) return;
  hz6_transfer_put_empty(CLASS, last);
  assert_ptr_equal(hz6_transfer_take_empty(CLASS), last);
}

static void check_names_what_is_wrong(void **state) {
  (void)state;
  start();
  struct hz6_magazine *m = full(0);
  put(m);
  assert_null(hz6_transfer_check());
  odd_one = block(3);
  assert_string_equal(hz6_transfer_check(), "hz6: a waiting block is marked as live, or is none");
  odd_one = NULL;
  m->count = 0;
  assert_string_equal(hz6_transfer_check(), "hz6: a waiting magazine's count is off");
  m->count = CAPACITY;
  m->items[0].block = m;
  assert_string_equal(hz6_transfer_check(), "hz6: a magazine lost its lower sentinel");
  m->items[0].block = NULL;
  m->items[CAPACITY + 1].block = NULL;
  assert_string_equal(hz6_transfer_check(), "hz6: a magazine lost its upper sentinel");
  m->items[CAPACITY + 1].block = HZ6_FULL;
  static _Atomic uint8_t other;
  m->items[2].mark = &other;
  assert_string_equal(hz6_transfer_check(), "hz6: a waiting block's mark is another's");
  m->items[2].mark = NULL;
  m->next = full(100);
  assert_string_equal(hz6_transfer_check(), "hz6: the transfer cache miscounts its magazines");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(newest_magazine_comes_out_first_and_whole),
      cmocka_unit_test(classes_are_apart),
      cmocka_unit_test(full_one_is_exchanged_for_an_empty_one),
      cmocka_unit_test(empty_one_stays_when_nothing_waits),
      cmocka_unit_test(no_more_than_policy_allows_wait),
      cmocka_unit_test(nothing_waits_where_policy_says_none),
      cmocka_unit_test(only_what_nobody_needed_for_a_period_is_due),
      cmocka_unit_test(what_was_due_and_is_needed_again_stays),
      cmocka_unit_test(due_magazines_come_within_the_budget),
      cmocka_unit_test(all_come_when_all_are_asked_for),
      cmocka_unit_test(few_empty_ones_are_kept),
      cmocka_unit_test(without_memory_there_is_no_new_magazine),
      cmocka_unit_test(check_names_what_is_wrong),
  };
  return isolated_run(tests, hz_count_of(tests));
}
