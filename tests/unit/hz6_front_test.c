// FrontCache of lines/hz6 alone: Transfer, Source and Policy are stand-ins that write down what
// they are asked, in order.
#include "lines/hz6/hz6_front.h"

#include <pthread.h>

#include "core/counter.h"
#include "core/lock.h"
#include "lines/hz6/hz6_source.h"
#include "lines/hz6/hz6_transfer.h"
#include "tests/support/fake_os.h"
#include "tests/unit/isolated.h"

enum { CLASS = 3, MARK = CLASS + 1, CAPACITY = 4, REFILL = 3 };

// ---- Stand-ins ----------------------------------------------------------------------------------

struct hz6_policy hz6_policy;

static char
    asked[100]; // a letter per call: g get, p put, e empty wanted, s Source takes, r returns
static unsigned said;
static struct hz6_magazine *waiting; // in the transfer cache
static bool no_room, no_magazines;
static uintptr_t next_block = 16;
static uint32_t source_has = 1000, returned;
static uint32_t joined[HZ_HOMES];

static _Atomic uint8_t a_mark;

static struct hz6_item item(uintptr_t address) {
  return (struct hz6_item){(void *)address, &a_mark};
}

static void say_asked(char letter) {
  asked[said++ % sizeof asked] = letter;
}

struct hz6_magazine *hz6_transfer_get(unsigned class_id, struct hz6_magazine *empty) {
  (void)class_id, (void)empty;
  say_asked('g');
  struct hz6_magazine *m = waiting;
  waiting = NULL;
  return m;
}
bool hz6_transfer_put(unsigned class_id, struct hz6_magazine *full, struct hz6_magazine **empty) {
  (void)class_id;
  say_asked('p');
  *empty = NULL;
  if (no_room) return false;
  waiting = full;
  return true;
}
void hz6_transfer_put_empty(unsigned class_id, struct hz6_magazine *empty) {
  (void)class_id;
  hz6_magazine_drop(empty);
}
struct hz6_magazine *hz6_transfer_take_empty(unsigned class_id) {
  (void)class_id;
  say_asked('e');
  return no_magazines ? NULL : hz6_magazine_new(CAPACITY);
}
uint32_t hz6_source_take(unsigned class_id, unsigned home, struct hz6_item *out, uint32_t want) {
  (void)class_id, (void)home;
  say_asked('s');
  const uint32_t got = want < source_has ? want : source_has;
  for (uint32_t i = 0; i < got; i++) out[i] = item(next_block += 16);
  source_has -= got;
  return got;
}
void hz6_source_give(unsigned class_id, const struct hz6_item *items, uint32_t count) {
  (void)class_id, (void)items;
  say_asked('r');
  returned += count;
}
void hz6_source_join(unsigned home) {
  joined[home]++;
}
void hz6_source_leave(unsigned home) {
  joined[home]--;
}

static struct hz6_heap *start(uint32_t homes) {
  fake_os_install();
  hz6_policy.homes = homes;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    hz6_policy.of[c].capacity = CAPACITY;
    hz6_policy.of[c].refill = REFILL;
  }
  assert_true(hz_thread_start());
  hz6_front_start();
  struct hz6_heap *heap = hz6_front_get();
  assert_non_null(heap);
  return heap;
}

static void assert_asked(const char *letters) {
  asked[said] = '\0';
  assert_string_equal(asked, letters);
  said = 0;
}

static bool push(struct hz6_heap *heap, void *p) {
  return hz6_magazine_push(&heap->top[MARK], item((uintptr_t)p));
}
static void *pop(struct hz6_heap *heap) {
  return hz6_magazine_pop(&heap->top[MARK]).block;
}
static void *refill(struct hz6_heap *heap) {
  const struct hz6_item got = hz6_front_refill(heap, CLASS);
  assert_true(got.block == NULL || got.mark == &a_mark);
  return got.block;
}
static void overflow(struct hz6_heap *heap, void *p) {
  hz6_front_overflow(heap, CLASS, item((uintptr_t)p));
}
static void foreign(struct hz6_heap *heap, void *p) {
  hz6_front_foreign(heap, CLASS, item((uintptr_t)p));
}

// ---- Cases --------------------------------------------------------------------------------------

static void transfer_is_asked_before_source(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  assert_non_null(refill(heap));
  assert_asked("ges");
  for (unsigned i = 1; i < REFILL; i++) assert_non_null(pop(heap));
  assert_null(pop(heap));
  waiting = hz6_magazine_new(CAPACITY);
  waiting->items[1] = item(0x1230);
  waiting->count = 1;
  assert_ptr_equal(refill(heap), (void *)0x1230);
  assert_asked("g");
}

static void last_block_in_is_the_first_out(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  overflow(heap, (void *)16);
  assert_true(push(heap, (void *)32));
  assert_ptr_equal(pop(heap), (void *)32);
  assert_ptr_equal(pop(heap), (void *)16);
  assert_null(pop(heap));
}

static void full_magazine_goes_to_transfer_whole(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  overflow(heap, (void *)16);
  assert_asked("e");
  for (uintptr_t i = 2; i <= CAPACITY; i++) assert_true(push(heap, (void *)(i * 16)));
  assert_false(push(heap, (void *)0x990));
  overflow(heap, (void *)0x990);
  assert_asked("pe");
  assert_int_equal(waiting->count, CAPACITY);
  assert_ptr_equal(waiting->items[1].block, (void *)16);
  assert_ptr_equal(pop(heap), (void *)0x990);
}

static void what_transfer_refuses_goes_to_source(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  no_room = true;
  overflow(heap, (void *)16);
  for (uintptr_t i = 2; i <= CAPACITY; i++) push(heap, (void *)(i * 16));
  assert_asked("e");
  overflow(heap, (void *)0x990);
  assert_asked("pr"); // and the emptied magazine is used again
  assert_int_equal(returned, CAPACITY);
  assert_ptr_equal(pop(heap), (void *)0x990);
}

static void without_memory_for_magazines_single_blocks_pass(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  no_magazines = true;
  assert_non_null(refill(heap));
  assert_asked("ges");
  overflow(heap, (void *)16);
  assert_asked("er");
  assert_int_equal(returned, 1);
  source_has = 0;
  assert_null(refill(heap));
  foreign(heap, (void *)16);
  assert_int_equal(returned, 2);
}

static void mark_of_no_block_is_full_and_empty(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  refill(heap);
  hz6_front_flush();
  const struct hz6_heap *heaps[] = {heap, &hz6_empty_heap, &hz6_dead_heap};
  for (unsigned i = 0; i < hz_count_of(heaps); i++) {
    assert_null(heaps[i]->top[0][0].block);
    assert_ptr_equal(heaps[i]->top[0][1].block, HZ6_FULL);
  }
}

static void flush_keeps_nothing_and_leaves_the_heap_usable(void **state) {
  (void)state;
  struct hz6_heap *heap = start(1);
  overflow(heap, (void *)16);
  foreign(heap, (void *)32);
  hz6_front_flush();
  assert_int_equal(waiting->count, 1);
  assert_int_equal(returned, 1); // the foreign one
  assert_null(pop(heap));
  waiting = NULL;
  assert_non_null(refill(heap));
}

static void foreign_blocks_go_to_source_in_magazines(void **state) {
  (void)state;
  struct hz6_heap *heap = start(HZ_HOMES);
  for (uintptr_t i = 1; i < CAPACITY; i++) foreign(heap, (void *)(i * 16));
  assert_int_equal(returned, 0);
  foreign(heap, (void *)0x990);
  assert_int_equal(returned, CAPACITY);
  assert_int_equal(hz_counter_read(HZ_COUNT_remote_frees), CAPACITY);
  assert_int_equal(hz_counter_read(HZ_COUNT_remote_batches), 1);
}

static void *have_a_heap(void *home) {
  *(uint32_t *)home = hz6_front_get()->home;
  overflow(hz6_front_get(), (void *)16);
  return NULL;
}

static void thread_leaves_its_home_and_its_blocks(void **state) {
  (void)state;
  const struct hz6_heap *heap = start(HZ_HOMES);
  uint32_t home = 99;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, have_a_heap, &home), 0);
  pthread_join(thread, NULL);
  assert_int_not_equal(home, heap->home);
  assert_int_equal(joined[home], 0);
  assert_int_equal(joined[heap->home], 1);
  assert_int_equal(waiting->count, 1);
  assert_int_equal(hz_counter_read(HZ_COUNT_threads_ended), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transfer_is_asked_before_source),
      cmocka_unit_test(last_block_in_is_the_first_out),
      cmocka_unit_test(full_magazine_goes_to_transfer_whole),
      cmocka_unit_test(what_transfer_refuses_goes_to_source),
      cmocka_unit_test(without_memory_for_magazines_single_blocks_pass),
      cmocka_unit_test(mark_of_no_block_is_full_and_empty),
      cmocka_unit_test(flush_keeps_nothing_and_leaves_the_heap_usable),
      cmocka_unit_test(foreign_blocks_go_to_source_in_magazines),
      cmocka_unit_test(thread_leaves_its_home_and_its_blocks),
  };
  return isolated_run(tests, hz_count_of(tests));
}
