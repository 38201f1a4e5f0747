// Pages of hz4: cut, listed by class, taken from, given to, moved, returned. All of it under the
// lock of the heap that owns the page.
#include "lines/hz4/hz4_model.h"

#include <string.h>

#include "core/counter.h"
#include "core/misuse.h"

enum { MOVED_AT_ONCE = 4 }; // pages that change hands for one refill

// ---- Lists (under the owner's lock) -------------------------------------------------------------

static void add_free(struct hz4_heap *heap, int64_t bytes) {
  const uint64_t now = atomic_load_explicit(&heap->free_bytes, memory_order_relaxed);
  atomic_store_explicit(&heap->free_bytes, now + (uint64_t)bytes, memory_order_relaxed);
}

static void set_listed(struct hz4_heap *heap, unsigned class_id) {
  const uint64_t bit = UINT64_C(1) << class_id;
  const uint64_t others = atomic_load_explicit(&heap->listed, memory_order_relaxed) & ~bit;
  atomic_store_explicit(&heap->listed, others | (heap->pages[class_id] != NULL ? bit : 0),
                        memory_order_relaxed);
}

static void list_insert(struct hz4_heap *heap, struct hz_run *run) {
  struct hz_run *head = heap->pages[run->class_id];
  run->prev = NULL;
  run->next = head;
  if (head != NULL) head->prev = run;
  heap->pages[run->class_id] = run;
  set_listed(heap, run->class_id);
}

static void list_remove(struct hz4_heap *heap, struct hz_run *run) {
  if (run->next != NULL) run->next->prev = run->prev;
  if (run->prev != NULL) run->prev->next = run->next;
  else heap->pages[run->class_id] = run->next;
  set_listed(heap, run->class_id);
}

// ---- The head -----------------------------------------------------------------------------------

static void write_head(const struct hz_run *run, struct hz4_heap *owner) {
  struct hz4_page *page = hz4_page_at(hz_run_base(run));
  for (unsigned i = 0; i < run->slabs; i++) {
    atomic_store_explicit(&page[i].class_id, run->class_id, memory_order_relaxed);
    atomic_store_explicit(&page[i].lane, owner != NULL ? owner->index % HZ4_LANES : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&page[i].owner, owner, memory_order_relaxed);
  }
}

// ---- Taking -------------------------------------------------------------------------------------

static uint32_t take_from(struct hz4_heap *heap, struct hz_run *run, void **out, uint32_t want) {
  const uint32_t got = hz_class_run_take(run, out, want);
  add_free(heap, -(int64_t)(got * hz_class_bytes(run->class_id)));
  return got;
}

uint32_t hz4_pages_take(struct hz4_heap *heap, unsigned class_id, void **out, uint32_t want) {
  uint32_t got = 0;
  hz_lock(heap->lock);
  for (struct hz_run *run; got < want && (run = heap->pages[class_id]) != NULL;) {
    got += take_from(heap, run, out, want - got);
    if (run->free == 0) list_remove(heap, run);
  }
  hz_unlock(heap->lock);
  if (got != 0 && got < want) memmove(out, out + (want - got), got * sizeof *out);
  return got;
}

uint32_t hz4_pages_carve(struct hz4_heap *heap, unsigned class_id, void **out, uint32_t want) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  if (run == NULL) return 0;
  if (!hz_class_run_open(run, class_id)) {
    hz_arena_give(run);
    return 0;
  }
  hz_count(HZ_COUNT_runs_carved, 1);
  want = (uint32_t)hz_min(want, run->blocks);
  hz_lock(heap->lock);
  write_head(run, heap);
  add_free(heap, (int64_t)(run->free * hz_class_bytes(class_id)));
  const uint32_t got = take_from(heap, run, out, want);
  if (run->free != 0) list_insert(heap, run);
  hz_unlock(heap->lock);
  return got;
}

// ---- Giving -------------------------------------------------------------------------------------

// What one pass over some blocks has found besides blocks.
struct found {
  struct hz_run *empty; // pages to return, unlisted, linked by next
  const void *refused;  // a block that is none, or NULL
  enum hz_misuse_kind kind;
};

static void give_to(struct hz4_heap *heap, struct hz_run *run, struct found *found) {
  add_free(heap, (int64_t)hz_class_bytes(run->class_id));
  if (run->free == 1) list_insert(heap, run);
  if (run->free < run->blocks) return;
  list_remove(heap, run);
  add_free(heap, -(int64_t)(run->blocks * hz_class_bytes(run->class_id)));
  write_head(run, NULL);
  run->next = found->empty;
  found->empty = run;
}

// Gives blocks as long as they belong to one heap, and none is refused. Returns how many were
// looked at.
static uint32_t give_some(void *const *blocks, uint32_t count, struct found *found) {
  struct hz4_heap *heap = hz4_owner_of(blocks[0]);
  if (heap == NULL) {
    found->refused = blocks[0];
    found->kind = HZ_MISUSE_FOREIGN;
    return 1;
  }
  uint32_t done = 0;
  hz_lock(heap->lock);
  // Pages change hands under the lock of their owner, so what we find now stays.
  while (done < count && found->refused == NULL && hz4_owner_of(blocks[done]) == heap) {
    const void *block = blocks[done++];
    struct hz_run *run = hz_run_of(block);
    if (run != NULL && hz_class_run_give(run, run->class_id, block, &found->kind))
      give_to(heap, run, found);
    else found->refused = block;
  }
  hz_unlock(heap->lock);
  return done; // 0: the first one's page has just changed hands
}

static void return_pages(struct hz_run *list) {
  if (list == NULL) return;
  uint64_t runs = 0;
  for (struct hz_run *run = list; run != NULL; run = run->next, runs++) hz_class_run_close(run);
  hz_count(HZ_COUNT_runs_returned, runs);
  hz_arena_give_list(list);
}

void hz4_pages_give(void *const *blocks, uint32_t count, const char *when) {
  struct found found = {NULL, NULL, HZ_MISUSE_FOREIGN};
  for (uint32_t done = 0; done < count;) {
    done += give_some(blocks + done, count - done, &found);
    if (found.refused == NULL) continue;
    // Outside the lock: the report may not return.
    const void *refused = found.refused;
    found.refused = NULL;
    hz_misuse(found.kind, refused, when);
  }
  return_pages(found.empty);
}

// ---- Changing hands -----------------------------------------------------------------------------

// Locks are taken in the order of their addresses: it is the order of fork, too.
static void lock_both(const struct hz4_heap *a, const struct hz4_heap *b) {
  struct hz_lock *first = a->lock < b->lock ? a->lock : b->lock;
  struct hz_lock *second = a->lock < b->lock ? b->lock : a->lock;
  hz_lock(first);
  if (first != second) hz_lock(second);
}

static void unlock_both(const struct hz4_heap *a, const struct hz4_heap *b) {
  if (a->lock != b->lock) hz_unlock(a->lock);
  hz_unlock(b->lock);
}

bool hz4_pages_move(struct hz4_heap *from, struct hz4_heap *to, unsigned class_id, bool any) {
  const uint64_t listed = atomic_load_explicit(&from->listed, memory_order_relaxed);
  if (from == to || (listed >> class_id & 1) == 0) return false;
  unsigned moved = 0;
  lock_both(from, to);
  const bool may = any || !atomic_load_explicit(&from->attended, memory_order_relaxed);
  for (struct hz_run *run; may && moved < MOVED_AT_ONCE && (run = from->pages[class_id]) != NULL;
       moved++) {
    const int64_t bytes = (int64_t)(run->free * hz_class_bytes(class_id));
    list_remove(from, run);
    add_free(from, -bytes);
    write_head(run, to);
    list_insert(to, run);
    add_free(to, bytes);
  }
  unlock_both(from, to);
  hz_count(HZ_COUNT_taken_over, moved);
  return moved != 0;
}

// ---- Memory back to the kernel ------------------------------------------------------------------

// The system calls are made under the lock, because the free blocks must stay free meanwhile.
size_t hz4_pages_decay(struct hz4_heap *heap, bool all, bool tick, unsigned *calls) {
  size_t purged = 0;
  if (atomic_load_explicit(&heap->listed, memory_order_relaxed) == 0) return 0;
  hz_lock(heap->lock);
  for (uint64_t listed = atomic_load_explicit(&heap->listed, memory_order_relaxed); listed != 0;
       listed &= listed - 1)
    for (struct hz_run *run = heap->pages[__builtin_ctzll(listed)]; run != NULL; run = run->next)
      purged += hz_class_run_decay(run, all, tick, calls);
  hz_unlock(heap->lock);
  if (purged != 0) hz_count(HZ_COUNT_purged, purged);
  return purged;
}
