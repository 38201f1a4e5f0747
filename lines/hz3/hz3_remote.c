// Frees of other shards' blocks: collected in packets by (shard, class), handed over whole.
//
// The freeing thread fills a packet per owner and class in a small table ("sparse": only owners
// that really occur). A full one is pushed to the owner's stash. Where nobody lives, or where too
// much waits already, the blocks go to the runs directly and serve everybody.
#include "lines/hz3/hz3_model.h"

#include "core/counter.h"

static struct hz3_packet *packet_slot(struct hz3_heap *heap, uint32_t tag) {
  // Classes are dense in the low byte; an odd factor spreads the owners over the table.
  const uint32_t hash = hz3_tag_class(tag) + 11 * (tag >> HZ3_TAG_CLASS_BITS);
  return &heap->packets[hash % (uint32_t)hz3_options.stash_slots];
}

static void publish(struct hz3_heap *heap, struct hz3_packet *slot) {
  const unsigned class_id = hz3_tag_class(slot->tag);
  struct hz3_shard *owner = &hz3_shards[hz3_tag_shard(slot->tag)];
  struct hz_magazine *m = slot->blocks;
  slot->blocks = NULL;
  hz_count(HZ_COUNT_remote_frees, m->count);
  hz_count(HZ_COUNT_remote_batches, 1);
  if (atomic_load_explicit(&owner->live, memory_order_relaxed) != 0 &&
      hz_stash_push(&owner->stash[class_id], m, 1, hz3_limits[class_id].stash_packets))
    return;
  hz3_give_central(class_id, m->slots + 1, m->count);
  hz3_keep_empty(heap, class_id, m);
}

// The slot with an open packet for this tag; NULL: no memory for one.
static struct hz3_packet *open_packet(struct hz3_heap *heap, uint32_t tag) {
  struct hz3_packet *slot = packet_slot(heap, tag);
  if (slot->tag != tag) {
    if (slot->blocks != NULL) publish(heap, slot);
    slot->tag = tag;
  }
  if (slot->blocks == NULL) slot->blocks = hz3_take_empty(heap, hz3_tag_class(tag));
  return slot->blocks != NULL ? slot : NULL;
}

void hz3_release_remote(struct hz3_heap *heap, uint32_t tag, void *p) {
  const unsigned class_id = hz3_tag_class(tag);
  struct hz3_packet *slot = packet_slot(heap, tag);
  if (hz_unlikely(slot->tag != tag || slot->blocks == NULL)) slot = open_packet(heap, tag);
  if (hz_unlikely(slot == NULL)) {
    hz3_give_central(class_id, &p, 1);
    return;
  }
  struct hz_magazine *m = slot->blocks;
  m->slots[m->count + 1] = p;
  atomic_signal_fence(memory_order_release); // a fork must not find a count without its block
  if (++m->count < hz3_limits[class_id].packet) return;
  publish(heap, slot);
  hz3_slow_path_done(heap);
}

void hz3_flush_packets(struct hz3_heap *heap) {
  for (unsigned i = 0; i < hz3_options.stash_slots; i++)
    if (heap->packets[i].blocks != NULL) {
      if (heap->packets[i].blocks->count != 0) publish(heap, &heap->packets[i]);
      else hz_magazine_drop(heap->packets[i].blocks);
      heap->packets[i].blocks = NULL;
    }
}
