// Frees by other threads than the owner: collected in a packet per owner, sent whole, looked into
// when the owner runs out of blocks.
#include "lines/hz4/hz4_model.h"

#include "core/counter.h"

// What the program did wrong earlier shows when blocks come to their pages.
static const char late[] = "found when blocks went back to their pages";

// ---- Sending ------------------------------------------------------------------------------------

// What the packet's blocks amount to.
static uint32_t weight_kib(const struct hz_magazine *m) {
  size_t bytes = 0;
  if (m->note != HZ4_MIXED) bytes = m->count * hz_class_bytes(m->note);
  else
    for (uint32_t i = 1; i <= m->count; i++)
      bytes += hz_class_bytes(hz4_class(hz4_page_at(m->slots[i])));
  return (uint32_t)(bytes / HZ_KIB) + 1;
}

static void send(struct hz4_heap *heap, struct hz4_packet *packet) {
  struct hz_magazine *m = packet->blocks;
  if (m == NULL || packet->count == 0) return;
  struct hz4_heap *owner = packet->owner;
  m->count = packet->count;
  m->note = packet->mixed != 0 ? HZ4_MIXED : packet->class_id;
  packet->count = HZ4_NO_PACKET;
  packet->blocks = NULL;
  hz_count(HZ_COUNT_remote_frees, m->count);
  hz_count(HZ_COUNT_remote_batches, 1);
  const uint32_t most_kib = (uint32_t)(hz4_options.queue_bytes / HZ_KIB);
  if (hz_stash_push(&owner->queue, m, weight_kib(m), most_kib)) {
    struct hz_magazine *empty = hz_stash_take(&owner->returned);
    if (empty != NULL) hz4_magazine_give(heap, empty);
    return;
  }
  // The owner does not come for it: who brings more than may wait puts it all where it belongs.
  m->next = NULL;
  hz4_give_magazines(m);
  hz4_queue_settle(owner, true);
}

void hz4_send_all(struct hz4_heap *heap) {
  heap->room = (int64_t)hz4_options.packets_bytes;
  for (unsigned i = 0; i < HZ4_LANES; i++) send(heap, &heap->packets[i]);
}

HZ_SLOW void hz4_release_remote(struct hz4_heap *heap, struct hz4_heap *owner, void *p) {
  struct hz4_packet *packet = &heap->packets[owner->index % HZ4_LANES];
  if (packet->blocks != NULL) send(heap, packet);
  packet->owner = owner;
  if (packet->blocks == NULL) packet->blocks = hz4_magazine_take(heap, heap->packet_blocks);
  if (packet->blocks == NULL) { // no memory even for this: the block itself can always go down
    hz4_pages_give(&p, 1, NULL);
    return;
  }
  packet->blocks->slots[1] = p;
  packet->class_id = (uint8_t)hz4_class(hz4_page_at(p));
  packet->mixed = 0;
  atomic_signal_fence(memory_order_release); // a fork must not find a count without its block
  packet->count = 1;
}

// ---- Collecting ---------------------------------------------------------------------------------

// The packet is a magazine of this class that may be loaded as it is.
static bool suits(const struct hz_magazine *m, unsigned class_id) {
  return m->note == class_id && m->count <= hz4_limits[class_id].capacity;
}

// An empty magazine, for the next sender or for ourselves.
static void give_back(struct hz4_heap *heap, struct hz_magazine *m) {
  m->next = NULL;
  // Release pairs with the acquire in hz_stash_take.
  m = atomic_exchange_explicit(&heap->returned, m, memory_order_acq_rel);
  if (m != NULL) hz4_magazine_give(heap, m);
}

// The blocks' addresses are in the sender's cache: all lines are asked for at once. m: or NULL.
static void fetch(const struct hz_magazine *m) {
  if (m == NULL) return;
  for (uint32_t i = m->count; i > 0; i -= hz_min(i, HZ_CACHE_LINE / sizeof(void *)))
    __builtin_prefetch(&m->slots[i]);
}

static void load(struct hz4_heap *heap, unsigned class_id, struct hz_magazine *m) {
  struct hz_magazine *empty = heap->loaded[class_id];
  hz4_magazine_load(heap, class_id, m);
  if (empty != NULL) give_back(heap, empty);
}

// Blocks go into the magazines of their classes where there is room; the others stay, at the
// bottom, and go to their pages.
static void sort(struct hz4_heap *heap, struct hz_magazine *m) {
  uint32_t left = 0;
  for (uint32_t i = 1; i <= m->count; i++) {
    void *p = m->slots[i];
    const struct hz4_page *page = hz4_page_at(p);
    if (!hz_magazine_push(&heap->top[hz4_class(page)], p)) m->slots[++left] = p;
  }
  if (left != 0) hz4_pages_give(m->slots + 1, left, late);
  give_back(heap, m);
}

static struct hz_magazine *take_packet(struct hz4_heap *heap) {
  if (heap->inbox == NULL && atomic_load_explicit(&heap->queue, memory_order_relaxed) != NULL) {
    hz_lock(heap->lock); // against the checker, and others that take in what waits
    heap->inbox = hz_stash_take(&heap->queue);
    hz_unlock(heap->lock);
    fetch(heap->inbox);
  }
  struct hz_magazine *m = heap->inbox;
  if (m != NULL) heap->inbox = m->next;
  return m;
}

bool hz4_collect(struct hz4_heap *heap, unsigned class_id) {
  uint64_t packets = 0;
  for (struct hz_magazine *m; *heap->top[class_id] == NULL && (m = take_packet(heap)) != NULL;
       packets++) {
    fetch(heap->inbox);
    if (suits(m, class_id)) load(heap, class_id, m);
    else sort(heap, m);
  }
  if (packets != 0) hz_count(HZ_COUNT_collected, packets);
  return *heap->top[class_id] != NULL;
}

// ---- For others ---------------------------------------------------------------------------------

void hz4_give_magazines(struct hz_magazine *list) {
  for (const struct hz_magazine *m = list; m != NULL; m = m->next)
    hz4_pages_give(m->slots + 1, m->count, late);
  hz4_magazines_drop(list);
}

void hz4_queue_settle(struct hz4_heap *heap, bool all) {
  if (atomic_load_explicit(&heap->queue, memory_order_relaxed) == NULL) return;
  struct hz_magazine *list = NULL;
  hz_lock(heap->lock);
  struct hz_magazine *top = atomic_load_explicit(&heap->queue, memory_order_relaxed);
  // The same packet on top as last time: the owner does not come for it.
  if (all || top == heap->queue_seen) list = hz_stash_take(&heap->queue);
  heap->queue_seen = list != NULL ? NULL : top;
  hz_unlock(heap->lock);
  hz4_give_magazines(list);
}
