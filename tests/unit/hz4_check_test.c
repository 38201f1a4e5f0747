// The checker of lines/hz4: each invariant of hz4_model.h, broken by hand, is found and named.
#include "tests/unit/hz4_machine.h"

// A heap with a listed page, a loaded magazine, and a packet in its queue.
struct scene {
  struct hz4_heap *heap;
  struct hz_run *page;
  struct hz_magazine *loaded, *packet;
  unsigned class_id;
};

static void plant_class_of_page(struct scene *s) {
  s->page->class_id++;
}
static void plant_full_page(struct scene *s) {
  s->page->free = 0;
}
static void plant_empty_page(struct scene *s) {
  s->page->free = s->page->blocks;
}
static void plant_class_in_head(struct scene *s) {
  atomic_fetch_add(&hz4_page_at(hz_run_base(s->page))->class_id, 1);
}
static void plant_owner_in_head(struct scene *s) {
  atomic_store(&hz4_page_at(hz_run_base(s->page))->owner, NULL);
}
static void plant_free_count(struct scene *s) {
  s->page->free--;
}
static void plant_listed(struct scene *s) {
  atomic_fetch_xor(&s->heap->listed, UINT64_C(1) << 40);
}
static void plant_free_bytes(struct scene *s) {
  atomic_fetch_add(&s->heap->free_bytes, 16);
}
static void plant_foreign_block(struct scene *s) {
  s->loaded->slots[1] = s;
}
static void plant_block_of_other_class(struct scene *s) {
  s->loaded->slots[1] = take(OTHER_BYTES);
}
static void plant_free_block(struct scene *s) {
  char *p = hz_run_base(s->page);
  while (!free_in_page(p)) p += hz_class_bytes(s->class_id);
  s->loaded->slots[1] = p;
}
static void plant_free_block_in_packet(struct scene *s) {
  plant_free_block(s);
  s->packet->slots[1] = s->loaded->slots[1];
  s->loaded->slots[1] = blocks[0];
}
static void plant_note(struct scene *s) {
  s->packet->note--;
}
static void plant_count(struct scene *s) {
  s->packet->count = s->packet->capacity + 1;
}
static void plant_empty_packet(struct scene *s) {
  s->packet->count = 0;
}
static void plant_capacity(struct scene *s) {
  s->packet->capacity = HZ4_MAGAZINE_BLOCKS + 1;
}
static void plant_lower_sentinel(struct scene *s) {
  s->loaded->slots[0] = s->loaded->slots[1];
}
static void plant_upper_sentinel(struct scene *s) {
  s->loaded->slots[s->loaded->capacity + 1] = NULL;
}
static void plant_loaded(struct scene *s) {
  s->loaded->capacity--;
}
static void plant_top(struct scene *s) {
  s->heap->loaded[s->class_id] = NULL;
}

static const struct {
  void (*plant)(struct scene *);
  const char *found;
} plants[] = {
    {plant_class_of_page, "hz4: a page is in another class's list"},
    {plant_full_page, "hz4: a page without free blocks is listed"},
    {plant_empty_page, "hz4: an empty page is listed"},
    {plant_class_in_head, "hz4: the head disagrees with a page's list"},
    {plant_owner_in_head, "hz4: the head disagrees with a page's list"},
    {plant_free_count, "class run: its free count disagrees with its bitmap"},
    {plant_listed, "hz4: `listed` misnames a class"},
    {plant_free_bytes, "hz4: a heap miscounts its free bytes"},
    {plant_foreign_block, "hz4: a waiting block lies in no page"},
    {plant_block_of_other_class, "hz4: a waiting block is of another class"},
    {plant_free_block, "hz4: a waiting block is free in its page, too"},
    {plant_free_block_in_packet, "hz4: a waiting block is free in its page, too"},
    {plant_note, "hz4: a waiting block is of another class"},
    {plant_count, "hz4: a magazine holds more than it can"},
    {plant_empty_packet, "hz4: an empty packet waits"},
    {plant_capacity, "hz4: a magazine is larger than its record"},
    {plant_lower_sentinel, "hz4: a magazine lost its lower sentinel"},
    {plant_upper_sentinel, "hz4: a magazine lost its upper sentinel"},
    {plant_loaded, "hz4: a magazine of another class is loaded"},
    {plant_top, "hz4: a top without a magazine"},
};

static void plant_and_check(uint64_t i) {
  line_start();
  take_blocks(70);
  give_in_thread(0, 4);
  struct scene s = {.heap = hz4_heap_get(), .class_id = class_of_bytes()};
  s.page = s.heap->pages[s.class_id];
  s.loaded = s.heap->loaded[s.class_id];
  s.packet = atomic_load(&s.heap->queue);
  CHECK(s.page != NULL && s.loaded != NULL && s.packet != NULL, "not the scene that was meant");
  check_sound();
  plants[i].plant(&s);
  const char *found = hz4_check();
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
