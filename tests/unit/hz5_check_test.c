// The checker of lines/hz5: each invariant of hz5_model.h, broken by hand, is found and named.
#include "tests/unit/hz5_machine.h"

// A heap with a current and a listed run, an orphan, and a vacant run.
struct scene {
  struct hz5_heap *heap;
  struct hz5_cursor *cursor;
  struct hz5_slab *current, *listed, *orphan, *vacant;
  unsigned class_id;
};

static void plant_owner(struct scene *s) {
  hz5_run_own(s->listed, s->heap->token + 1);
}
static void plant_class(struct scene *s) {
  s->listed->class_id++;
}
static void plant_state(struct scene *s) {
  atomic_store(&s->listed->state, HZ5_CURRENT);
}
static void plant_link(struct scene *s) {
  s->listed->prev = hz5_name(s->listed);
}
static void plant_place(struct scene *s) {
  s->listed->at = HZ_SLAB_BYTES;
}
static void plant_arena(struct scene *s) {
  atomic_store(&hz_run_of(hz5_base(s->listed))->state, HZ_RUN_LIVE);
}
static void plant_bit_beyond(struct scene *s) {
  static struct hz5_bits record[3] = {[2] = {1, 1}}; // the first is where `until` is
  s->listed->words = 2;
  s->listed->bits = record + 1;
}
static void plant_full(struct scene *s) {
  atomic_store(&s->listed->bits[0].idle, 0);
}
static void plant_empty(struct scene *s) {
  atomic_store(&s->listed->bits[0].idle, ~UINT64_C(0));
}
static void plant_until(struct scene *s) {
  ++*hz5_until(s->listed);
}
static void plant_current_state(struct scene *s) {
  atomic_store(&s->current->state, HZ5_LISTED);
}
static void plant_current_owner(struct scene *s) {
  hz5_run_own(s->current, HZ5_FULL);
}
static void plant_cursor_base(struct scene *s) {
  s->cursor->base += 16;
}
static void plant_cursor_bytes(struct scene *s) {
  s->cursor->bytes--;
}
static void plant_cursor_bits(struct scene *s) {
  s->cursor->bits = s->listed->bits;
}
static void plant_orphan_owner(struct scene *s) {
  hz5_run_own(s->orphan, s->heap->token);
}
static void plant_orphan_until(struct scene *s) {
  --*hz5_until(s->orphan);
}
static void plant_vacant_owner(struct scene *s) {
  hz5_run_own(s->vacant, HZ5_FULL);
}
static void plant_vacant_block(struct scene *s) {
  hz5_take(s->vacant, 3);
}
static void plant_vacant_count(struct scene *s) {
  s->vacant->next = 0;
}

static const struct {
  void (*plant)(struct scene *);
  const char *found;
} plants[] = {
    {plant_owner, "hz5: a run is in the list of another owner"},
    {plant_class, "hz5: a run is in another class's list"},
    {plant_state, "hz5: a run is in a list and does not know it"},
    {plant_link, "hz5: a list is not linked both ways"},
    {plant_place, "hz5: a slab is at another place of its run"},
    {plant_arena, "hz5: a run is none of the arena's"},
    {plant_bit_beyond, "hz5: a bit that stands for no block is free or live"},
    {plant_full, "hz5: a listed run is empty or full"},
    {plant_empty, "hz5: a listed run is empty or full"},
    {plant_until, "hz5: a listed run miscounts its live blocks"},
    {plant_current_state, "hz5: a cursor names a run that is not current"},
    {plant_current_owner, "hz5: a cursor names a run that is not current"},
    {plant_cursor_base, "hz5: a cursor does not fit its run"},
    {plant_cursor_bytes, "hz5: a cursor does not fit its run"},
    {plant_cursor_bits, "hz5: a cursor does not fit its run"},
    {plant_orphan_owner, "hz5: a run is in the list of another owner"},
    {plant_orphan_until, "hz5: a listed run miscounts its live blocks"},
    {plant_vacant_owner, "hz5: a vacant run has an owner, or another class"},
    {plant_vacant_block, "hz5: a vacant run has a live block"},
    {plant_vacant_count, "hz5: vacant runs are miscounted"},
};

enum { OTHER_BYTES = 3000 };

static void *leave_an_orphan(void *p) {
  *(void **)p = take(OTHER_BYTES);
  return NULL;
}

static void plant_and_check(uint64_t i) {
  line_start();
  void *orphan;
  in_thread(leave_an_orphan, &orphan);
  take_blocks(4 * FULL_RUN + 1);
  give_blocks(FULL_RUN, 3 * FULL_RUN); // two vacant runs
  give(blocks[0]);                     // and a listed one
  struct scene s = {.heap = hz5_heap_get(), .class_id = run_of(blocks[0])->class_id};
  s.cursor = &s.heap->cursor[s.class_id];
  s.current = hz5_named(s.cursor->run);
  s.listed = run_of(blocks[0]);
  s.orphan = run_of(orphan);
  s.vacant = run_of(blocks[2 * FULL_RUN]); // the newer one
  CHECK(s.current == run_of(blocks[4 * FULL_RUN]) && hz5_state(s.listed) == HZ5_LISTED &&
            hz5_owner(s.orphan) == HZ5_ORPHAN && hz5_owner(s.vacant) == HZ5_VACANT,
        "not the scene that was meant");
  check_sound();
  plants[i].plant(&s);
  const char *found = hz5_check();
  CHECK(found != NULL, "not found: %s", plants[i].found);
  CHECK(strcmp(found, plants[i].found) == 0, "found '%s' instead of '%s'", found, plants[i].found);
}

static void checker_finds_each_broken_invariant(void **state) {
  (void)state;
  for (size_t i = 0; i < hz_count_of(plants); i++) in_child(plant_and_check, i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checker_finds_each_broken_invariant),
  };
  return isolated_run(tests, hz_count_of(tests));
}
