// Frees by other threads than the owner, the sender's half: blocks are collected in a packet per
// owner and sent whole. The owner's half is hz4_collect.c.
#include "lines/hz4/hz4_model.h"

#include "core/counter.h"

// ---- Sending ------------------------------------------------------------------------------------

enum { WEIGHED = 8 }; // of so many blocks of a mixed packet one is looked at

static size_t blocks_bytes(const struct hz_magazine *m) {
  if (m->note != HZ4_MIXED) return m->count * hz_class_bytes(m->note);
  size_t bytes = 0;
  for (uint32_t i = 1; i <= m->count; i += WEIGHED) {
    const unsigned class_id = hz4_class_at(m->slots[i]);
    if (class_id < HZ_CLASS_COUNT) bytes += WEIGHED * hz_class_bytes(class_id);
  }
  return bytes;
}

// What waiting costs: about what the packet's blocks amount to, and its record of 2 KiB.
static uint32_t weight_kib(const struct hz_magazine *m) {
  return (uint32_t)((blocks_bytes(m) + hz_magazine_bytes(HZ4_MAGAZINE_BLOCKS)) / HZ_KIB) + 1;
}

// False: there is nothing to send.
static bool send(struct hz4_heap *heap, struct hz4_packet *packet) {
  struct hz_magazine *m = packet->blocks;
  if (m == NULL) return false;
  struct hz4_heap *owner = packet->owner;
  m->count = packet->count;
  m->note = packet->mixed != 0 ? HZ4_MIXED : packet->class_id;
  packet->count = HZ4_NO_PACKET;
  packet->blocks = NULL;
  heap->room += packet->wide_bytes;
  hz_count(HZ_COUNT_remote_frees, m->count);
  hz_count(HZ_COUNT_remote_batches, 1);
  const uint32_t most_kib = (uint32_t)(hz4_options.queue_bytes / HZ_KIB);
  if (hz_stash_push(&owner->queue, m, weight_kib(m), most_kib)) {
    struct hz_magazine *empty = hz_stash_take(&owner->returned);
    if (empty != NULL) hz4_magazine_give(heap, empty);
    return true;
  }
  // The owner does not come for it: who brings more than may wait puts it where it belongs, and
  // some of what is there, too.
  m->next = NULL;
  hz4_give_magazines(m);
  hz4_settle_some_waiting(owner);
  return true;
}

void hz4_send_all(struct hz4_heap *heap) {
  for (unsigned i = 0; i < HZ4_LANES; i++) send(heap, &heap->packets[i]);
}

// ---- Collecting ---------------------------------------------------------------------------------

bool hz4_count_wide(struct hz4_heap *heap, struct hz4_packet *packet, unsigned class_id) {
  const size_t bytes = hz_class_bytes(class_id);
  packet->wide_bytes += (uint32_t)bytes;
  heap->room -= (int64_t)bytes;
  if (hz_likely(heap->room >= 0)) return false;
  hz4_send_all(heap);
  return true;
}

// With more heaps than lanes some share one. It is kept for the owner that has it until more blocks
// of others were refused than its packet holds.
static bool lane_refuses(struct hz4_packet *packet, const struct hz4_heap *owner) {
  return packet->blocks != NULL && packet->owner != owner && packet->refused++ < packet->count;
}

// Opens a packet with its first block. False: no memory for it.
static bool open_packet(struct hz4_heap *heap, struct hz4_packet *packet, struct hz4_heap *owner,
                        void *p) {
  struct hz_magazine *blocks = hz4_magazine_take(heap, heap->packet_blocks);
  if (blocks == NULL) return false;
  blocks->slots[1] = p;
  *packet = (struct hz4_packet){.owner = owner,
                                .blocks = blocks,
                                .count = HZ4_NO_PACKET,
                                .class_id = (uint8_t)hz4_class(hz4_page_at(p))};
  atomic_signal_fence(memory_order_release); // a fork must not find a count without its block
  packet->count = 1;
  return true;
}

HZ_SLOW bool hz4_release_remote(struct hz4_heap *heap, struct hz4_heap *owner, void *p) {
  struct hz4_packet *packet = &heap->packets[owner->index % HZ4_LANES];
  const bool refused = lane_refuses(packet, owner);
  const bool sent = !refused && send(heap, packet);
  if (refused || hz_unlikely(!open_packet(heap, packet, owner, p))) {
    hz_count(HZ_COUNT_remote_frees, 1);
    hz4_pages_give(&p, 1, NULL); // a block can always go down
    return sent;
  }
  const bool wide = packet->class_id >= HZ4_WIDE_CLASS;
  return (wide && hz4_count_wide(heap, packet, packet->class_id)) || sent;
}
