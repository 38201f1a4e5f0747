// Every invariant of lines/hz4/hz4_model.h, walked. Takes the locks one at a time; what other
// threads have in their hands is not looked at.
#include "lines/hz4/hz4_model.h"

// ---- Pages --------------------------------------------------------------------------------------

static const char *check_page(const struct hz4_heap *heap, const struct hz_run *run,
                              unsigned class_id) {
  if (run->class_id != class_id) return "hz4: a page is in another class's list";
  if (run->free == 0) return "hz4: a page without free blocks is listed";
  if (run->free == run->blocks) return "hz4: an empty page is listed";
  const struct hz4_page *page = hz4_page_at(hz_run_base(run));
  for (unsigned i = 0; i < run->slabs; i++)
    if (hz4_owner(&page[i]) != heap || hz4_class(&page[i]) != class_id)
      return "hz4: the head disagrees with a page's list";
  return hz_class_run_check(run);
}

static const char *check_pages(const struct hz4_heap *heap) {
  const uint64_t listed = atomic_load_explicit(&heap->listed, memory_order_relaxed);
  uint64_t free_bytes = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    if ((listed >> c & 1) != (heap->pages[c] != NULL)) return "hz4: `listed` misnames a class";
    const struct hz_run *before = NULL;
    for (const struct hz_run *run = heap->pages[c]; run != NULL; before = run, run = run->next) {
      if (run->prev != before) return "hz4: a page's list is not linked both ways";
      const char *broken = check_page(heap, run, c);
      if (broken != NULL) return broken;
      free_bytes += run->free * hz_class_bytes(c);
    }
  }
  return free_bytes == atomic_load_explicit(&heap->free_bytes, memory_order_relaxed)
             ? NULL
             : "hz4: a heap miscounts its free bytes";
}

// ---- Magazines and packets ----------------------------------------------------------------------

// class_id: that the block is of, or HZ4_MIXED.
static const char *check_block(const struct hz4_heap *heap, const void *p, unsigned class_id) {
  const struct hz4_heap *owner = hz4_owner_of(p);
  if (owner == NULL) return "hz4: a waiting block lies in no page";
  if (class_id != HZ4_MIXED && hz4_class(hz4_page_at(p)) != class_id)
    return "hz4: a waiting block is of another class";
  // Another heap's page is under another lock.
  if (owner != heap) return NULL;
  return hz_class_run_has(hz_run_of(p), p) ? "hz4: a waiting block is free in its page, too" : NULL;
}

static const char *check_magazine(const struct hz4_heap *heap, const struct hz_magazine *m,
                                  uint32_t count, unsigned class_id) {
  if (count > m->capacity) return "hz4: a magazine holds more than it can";
  if (m->capacity > HZ4_MAGAZINE_BLOCKS) return "hz4: a magazine is larger than its record";
  if (m->slots[0] != NULL) return "hz4: a magazine lost its lower sentinel";
  if (m->slots[m->capacity + 1] != HZ_MAGAZINE_FULL)
    return "hz4: a magazine lost its upper sentinel";
  const char *broken = NULL;
  for (uint32_t i = 1; i <= count && broken == NULL; i++)
    broken = check_block(heap, m->slots[i], class_id);
  return broken;
}

static const char *check_packets(const struct hz4_heap *heap, const struct hz_magazine *list) {
  const char *broken = NULL;
  for (const struct hz_magazine *m = list; m != NULL && broken == NULL; m = m->next) {
    if (m->count == 0) return "hz4: an empty packet waits";
    broken = check_magazine(heap, m, m->count, m->note);
  }
  return broken;
}

static const char *check_loaded(const struct hz4_heap *heap) {
  const char *broken = NULL;
  for (unsigned c = 0; c < HZ_CLASS_COUNT && broken == NULL; c++) {
    const struct hz_magazine *m = heap->loaded[c];
    if (m == NULL && heap->top[c] != HZ_NO_TOP) return "hz4: a top without a magazine";
    if (m == NULL) continue;
    if (m->capacity != hz4_limits[c].capacity) return "hz4: a magazine of another class is loaded";
    broken = check_magazine(heap, m, (uint32_t)(heap->top[c] - m->slots), c);
  }
  return broken;
}

// Packets that the heap's thread fills.
static const char *check_open_packets(const struct hz4_heap *heap) {
  const char *broken = NULL;
  for (unsigned i = 0; i < HZ4_LANES && broken == NULL; i++) {
    const struct hz4_packet *packet = &heap->packets[i];
    if ((packet->blocks == NULL) != (packet->count == HZ4_NO_PACKET))
      return "hz4: a packet without a record counts blocks";
    if (packet->blocks == NULL) continue;
    if (packet->owner->index % HZ4_LANES != i) return "hz4: a packet lies in another owner's lane";
    broken = check_magazine(heap, packet->blocks, packet->count,
                            packet->mixed != 0 ? HZ4_MIXED : packet->class_id);
  }
  return broken;
}

// ---- Heaps --------------------------------------------------------------------------------------

const char *hz4_check_heap(struct hz4_heap *heap) {
  hz_lock(heap->lock);
  const char *broken = check_pages(heap);
  // Packets that come later lie on top: those from here on down stay as they are under the lock.
  if (broken == NULL)
    broken = check_packets(heap, atomic_load_explicit(&heap->queue, memory_order_acquire));
  if (broken == NULL)
    broken = check_packets(heap, atomic_load_explicit(&heap->inbox, memory_order_acquire));
  if (broken == NULL &&
      (heap == hz4_heap || !atomic_load_explicit(&heap->attended, memory_order_relaxed))) {
    broken = check_loaded(heap);
    if (broken == NULL) broken = check_open_packets(heap);
  }
  hz_unlock(heap->lock);
  return broken;
}

const char *hz4_check(void) {
  const char *broken = hz_arena_check();
  for (struct hz4_heap *heap = hz4_heaps_all(); heap != NULL && broken == NULL; heap = heap->next)
    broken = hz4_check_heap(heap);
  return broken;
}
