// core/magazine: sentinels at both ends, and the stash that many push to and one takes from.
#include "core/magazine.h"

#include <pthread.h>
#include <sched.h>

#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

static void **top_of(struct hz_magazine *m) {
  return m->slots + m->count;
}

static void magazine_holds_exactly_its_capacity(void **state) {
  (void)state;
  static char blocks[100];
  for (uint32_t capacity = 1; capacity <= hz_count_of(blocks); capacity++) {
    struct hz_magazine *m = hz_magazine_new(capacity);
    void **top = top_of(m);
    assert_null(hz_magazine_pop(&top));
    for (uint32_t i = 0; i < capacity; i++) assert_true(hz_magazine_push(&top, &blocks[i]));
    assert_false(hz_magazine_push(&top, &blocks[0]));
    assert_int_equal(top - m->slots, capacity);
    for (uint32_t i = capacity; i-- > 0;) assert_ptr_equal(hz_magazine_pop(&top), &blocks[i]);
    assert_null(hz_magazine_pop(&top));
    assert_ptr_equal(top, m->slots);
    hz_magazine_drop(m);
  }
}

static void used_record_becomes_an_empty_magazine(void **state) {
  (void)state;
  size_t bytes = hz_magazine_bytes(30);
  void **record = hz_meta_take(bytes);
  for (size_t i = 0; i < bytes / sizeof *record; i++) record[i] = HZ_MAGAZINE_FULL;
  hz_meta_give(record, bytes);
  struct hz_magazine *m = hz_magazine_new(30);
  assert_ptr_equal(m, record);
  void **top = top_of(m);
  assert_null(hz_magazine_pop(&top));
  for (int i = 0; i < 30; i++) assert_true(hz_magazine_push(&top, &bytes));
  assert_false(hz_magazine_push(&top, &bytes));
}

// hz3.magazine_blocks may be 1024.
static void magazine_of_the_largest_capacity_can_be_dropped(void **state) {
  (void)state;
  struct hz_magazine *m = hz_magazine_new(1024);
  hz_magazine_drop(m);
  assert_ptr_equal(hz_magazine_new(1024), m);
}

static void no_memory_is_no_magazine(void **state) {
  (void)state;
  fake_os_install();
  fake_os_fail_nth(FAKE_MAP, 1);
  assert_null(hz_magazine_new(10));
}

static void stash_gives_the_newest_first_and_all_at_once(void **state) {
  (void)state;
  _Atomic(struct hz_magazine *) head = NULL;
  struct hz_magazine packets[3] = {0};
  assert_null(hz_stash_take(&head));
  for (int i = 0; i < 3; i++) assert_true(hz_stash_push(&head, &packets[i], 1, 10));
  struct hz_magazine *list = hz_stash_take(&head);
  for (int i = 3; i-- > 0; list = list->next) assert_ptr_equal(list, &packets[i]);
  assert_null(list);
  assert_null(hz_stash_take(&head));
}

static void full_stash_refuses_and_keeps_what_it_has(void **state) {
  (void)state;
  _Atomic(struct hz_magazine *) head = NULL;
  struct hz_magazine packets[3] = {0};
  assert_false(hz_stash_push(&head, &packets[0], 1, 0));
  assert_true(hz_stash_push(&head, &packets[0], 1, 2));
  assert_true(hz_stash_push(&head, &packets[1], 1, 2));
  assert_false(hz_stash_push(&head, &packets[2], 1, 2));
  assert_ptr_equal(hz_stash_take(&head), &packets[1]);
  assert_true(hz_stash_push(&head, &packets[2], 1, 2));
  assert_ptr_equal(hz_stash_take(&head), &packets[2]);
}

// ---- Threads -----------------------------------------------------------------------------------

enum { PUSHERS = 3, PACKETS = 20000, MAX_DEPTH = 50 };
static _Atomic(struct hz_magazine *) shared;
static struct hz_magazine *given[PUSHERS];
static atomic_uint running;

static void *push_all(void *argument) {
  struct hz_magazine *mine = argument;
  for (uint32_t i = 0; i < PACKETS; i++) {
    mine[i].count = i + 1; // what the release of the push must carry along
    while (!hz_stash_push(&shared, &mine[i], 1, MAX_DEPTH)) sched_yield();
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

static void take_and_mark(unsigned char *seen) {
  uint32_t in_list = 0;
  for (struct hz_magazine *m = hz_stash_take(&shared); m != NULL; m = m->next, in_list++) {
    size_t pusher = 0;
    while (m < given[pusher] || m >= given[pusher] + PACKETS) pusher++;
    const size_t i = (size_t)(m - given[pusher]);
    assert_int_equal(m->count, i + 1);
    assert_int_equal(seen[pusher * PACKETS + i]++, 0);
  }
  // Nothing is reused here, so the depth is exact.
  assert_true(in_list <= MAX_DEPTH);
}

static void every_packet_of_every_pusher_is_taken_once(void **state) {
  (void)state;
  pthread_t threads[PUSHERS];
  unsigned char *seen = calloc(PUSHERS, PACKETS);
  atomic_store(&running, PUSHERS);
  for (int i = 0; i < PUSHERS; i++) given[i] = calloc(PACKETS, sizeof *given[i]);
  for (int i = 0; i < PUSHERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, push_all, given[i]), 0);
  while (atomic_load(&running) != 0) take_and_mark(seen);
  for (int i = 0; i < PUSHERS; i++) pthread_join(threads[i], NULL);
  take_and_mark(seen);
  for (size_t i = 0; i < (size_t)PUSHERS * PACKETS; i++) assert_int_equal(seen[i], 1);
  for (int i = 0; i < PUSHERS; i++) free(given[i]);
  free(seen);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(magazine_holds_exactly_its_capacity),
      cmocka_unit_test(used_record_becomes_an_empty_magazine),
      cmocka_unit_test(magazine_of_the_largest_capacity_can_be_dropped),
      cmocka_unit_test(no_memory_is_no_magazine),
      cmocka_unit_test(stash_gives_the_newest_first_and_all_at_once),
      cmocka_unit_test(full_stash_refuses_and_keeps_what_it_has),
      cmocka_unit_test(every_packet_of_every_pusher_is_taken_once),
  };
  return isolated_run(tests, hz_count_of(tests));
}
