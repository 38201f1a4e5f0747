// What only lines/hz4 does under many threads: pages move between heaps while their blocks are out.
// What every line does is in lines_stress_test.c.
//
// TEST_SEED repeats a run as far as the scheduler allows; STRESS_STEPS sets the steps per thread.
#include "tests/unit/hz4_machine.h"
#include "tests/unit/stress.h"

static_assert(CROWD > 2 * HZ4_LOCKS && CROWD > 2 * HZ4_LANES, "heaps share locks and lanes");

static struct hz4_heap *random_heap(struct random_state *random) {
  struct hz4_heap *heap = hz4_heaps_all();
  for (size_t i = random_between(random, 0, CROWD); i > 0 && heap != NULL; i--) heap = heap->next;
  return heap;
}

// What a thread does that finds no memory: attended or not, heaps lose pages to others. Both
// threads do it, in both directions, between any two heaps, those of one lock included.
static void *move_pages(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  while (!atomic_load(&over)) {
    struct hz4_heap *from = random_heap(&random), *to = random_heap(&random);
    const unsigned class_id = (unsigned)random_between(&random, 0, HZ_CLASS_COUNT - 1);
    if (from == NULL || to == NULL) continue;
    hz4_pages_move(from, to, class_id, true);
    hz4_pages_move(to, from, class_id, random_next(&random) % 2 == 0);
    sched_yield();
  }
  return NULL;
}

static void pages_that_change_hands_in_a_crowd_lose_nothing(void **state) {
  (void)state;
  core_options.reserve_bytes = 16 * HZ_GIB;
  steps_per_thread = hz_max(steps_wanted() / 16, 100);
  line_start();
  work_together(work_in_crowd, CROWD, move_pages);
  assert_true(heap_count() >= CROWD);
  assert_true(count(HZ_COUNT_taken_over) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pages_that_change_hands_in_a_crowd_lose_nothing),
  };
  return isolated_run(tests, hz_count_of(tests));
}
