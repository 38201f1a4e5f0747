// hz4 on the machine of tests/support/line_machine.h, and what its tests ask of heaps and queues.
#ifndef TESTS_UNIT_HZ4_MACHINE_H
#define TESTS_UNIT_HZ4_MACHINE_H

#include "core/tick.h"
#include "lines/hz4/hz4_model.h"
#include "tests/unit/isolated.h"

extern const struct hz_line hz4_line;
static const struct hz_line *const line = &hz4_line;

#include "tests/support/line_machine.h"

enum { OTHER_BYTES = 500 }; // of another class than BYTES

static inline unsigned class_of_bytes(void) {
  return hz_class_of(BYTES);
}
// Brings what this thread has at hand to pages and queues.
static inline void flush(void) {
  hz4_heap_flush(hz4_heap_get());
}

// Packets that wait for a heap. Nobody takes them meanwhile.
static inline unsigned queue_length(struct hz4_heap *heap) {
  unsigned n = 0;
  for (const struct hz_magazine *m = atomic_load(&heap->queue); m != NULL; m = m->next) n++;
  return n;
}

// What waits for a heap, by the weights that the packets were pushed with.
static inline unsigned queue_kib(struct hz4_heap *heap) {
  const struct hz_magazine *top = atomic_load(&heap->queue);
  return top != NULL ? atomic_load(&top->depth) : 0;
}

static inline unsigned heap_count(void) {
  unsigned n = 0;
  for (const struct hz4_heap *heap = hz4_heaps_all(); heap != NULL; heap = heap->next) n++;
  return n;
}

// Blocks in the loaded magazine of the calling thread's heap.
static inline unsigned loaded_blocks(const struct hz4_heap *heap, unsigned class_id) {
  const struct hz_magazine *m = heap->loaded[class_id];
  return m == NULL ? 0 : (unsigned)(heap->top[class_id] - m->slots);
}

// Whether a block lies free in its page. Its page exists.
static inline bool free_in_page(const void *p) {
  return hz_class_run_has(hz_run_of(p), p);
}

#endif
