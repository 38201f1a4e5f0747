// hz3, the lookup-first line: its words, its structures, its invariants.
//
//   tag       32 bits per slab in one flat table (PTAG32): class in the low byte, owning shard + 1
//             above it; 0 = no slab of blocks. free() learns all it needs from one load, and never
//             reads the block's own page.
//   heap      one per thread: per class the loaded magazine's top (core/magazine.h)
//   shard     a group of threads (usually one) that owns slabs: a stash and a depot per class
//   packet    a magazine that a thread fills with another shard's blocks of one class
//   stash     packets that wait for their shard: pushed by one compare and swap, taken all at once
//   depot     full magazines of the shard (core/depot.h)
//   central   the bitmaps of all runs (core/central.h); a run's home is a shard
//
// Threads without a heap (after their exit callback, or out of memory) exchange single blocks with
// the runs, and so do all when hz3.verify asks for exact checks.
//
//   malloc:  magazine -> own stash -> own depot -> own runs -> what ended threads left -> new run
//   free:    own shard's: magazine -> depot -> central
//            another's:   packet -> that shard's stash, or central when nobody lives there
//
// The tag's shard is advice on where to send a block, nothing more: any thread may use any block.
// That is why sharing a shard is harmless, and why a run may change its home while its blocks are
// out.
//
// Invariants (hz3_check.c; those of arena and central hold too):
//   the tags of a run's slabs name its class as long as any of its blocks is out
//   a magazine in a depot or stash holds 1..capacity blocks of that class
//   depot->count is the length of its list
#ifndef HZ_LINES_HZ3_MODEL_H
#define HZ_LINES_HZ3_MODEL_H

#include "core/arena.h"
#include "core/central.h"
#include "core/depot.h"
#include "core/lock.h"
#include "core/magazine.h"
#include "core/run_block.h"
#include "core/size_class.h"
#include "core/thread.h"
#include "lines/hz3/hz3_options.h"
#include "lines/line.h"

enum { HZ3_TAG_CLASS_BITS = 8, HZ3_TAG_CLASS_MASK = (1 << HZ3_TAG_CLASS_BITS) - 1 };

struct hz3_packet {
  uint32_t tag; // whose blocks, which class; 0 = unused
  struct hz_magazine *blocks;
};

struct hz3_heap {
  // Read and written by the hot paths.
  void **top[HZ_CLASS_COUNT];
  uint8_t class_by_16[HZ_CLASS_BY_16_MAX / 16 + 1]; // a copy at hand saves malloc an instruction
  uint32_t tag; // (shard + 1) << 8: xor with a slab's tag leaves the class if the slab is ours
  // Slow paths of the owner.
  uint32_t shard;
  bool in_shard; // counted there as living
  uint32_t trims_seen;
  struct hz_thread thread;
  struct hz_magazine *loaded[HZ_CLASS_COUNT]; // what top points into; NULL: the static empty one
  struct hz_magazine *spare[HZ_CLASS_COUNT];  // an empty one kept back, or NULL
  struct hz_run_cache runs;
  struct hz3_packet packets[HZ3_MAX_STASH_SLOTS]; // the first stash_slots are in use
};

struct hz3_shard {
  struct hz_lock lock;   // of the depots
  _Atomic uint32_t live; // threads in this shard
  struct hz_depot depots[HZ_CLASS_COUNT];
  _Atomic(struct hz_magazine *) stash[HZ_CLASS_COUNT]; // any thread pushes
  struct hz_magazine *stash_seen[HZ_CLASS_COUNT];      // at the last decay; under the lock
};

// What the options mean for one class, worked out at start.
struct hz3_limits {
  uint16_t capacity;        // of a magazine
  uint16_t refill;          // blocks taken from runs at once
  uint16_t packet;          // blocks that make a packet full
  uint32_t depot_magazines; // full magazines kept per shard
  uint32_t stash_packets;   // packets that may wait per shard
};

extern struct hz3_shard hz3_shards[HZ3_MAX_SHARDS];
extern struct hz3_limits hz3_limits[HZ_CLASS_COUNT];
extern HZ_HIDDEN _Atomic uint32_t *hz3_tags; // one per slab of the arena
extern HZ_HIDDEN const struct hz3_heap
    hz3_empty_heap; // of threads that have not allocated yet: read-only
extern HZ_HIDDEN const struct hz3_heap hz3_dead_heap; // of threads that have ended: read-only
extern HZ_HIDDEN __thread const struct hz3_heap *hz3_heap
    __attribute__((tls_model("initial-exec")));

HZ_FAST uint32_t hz3_tag(unsigned shard, unsigned class_id) {
  return (shard + 1) << HZ3_TAG_CLASS_BITS | class_id;
}
HZ_FAST unsigned hz3_tag_class(uint32_t tag) {
  return tag & HZ3_TAG_CLASS_MASK;
}
HZ_FAST unsigned hz3_tag_shard(uint32_t tag) {
  return (tag >> HZ3_TAG_CLASS_BITS) - 1;
}
// 0 for an address outside the arena, a run block, a large block or a free slab.
HZ_FAST uint32_t hz3_tag_of(const void *p) {
  const size_t slab = hz_slab_of(p);
  if (hz_unlikely(slab >= hz_arena.slab_count)) return 0;
  return atomic_load_explicit(&hz3_tags[slab], memory_order_relaxed);
}

// hz3.c: the hot pair, also called directly by the benchmarks.
void *hz3_alloc(size_t bytes);
void hz3_release(void *p);

// hz3_tags.c: the table. Reserved readable; its pages become writable when the arena reaches them.
bool hz3_tags_start(void);
// Makes the tags of a run's slabs writable. False: no memory.
bool hz3_tags_commit(const struct hz_run *run);
void hz3_tags_write(const struct hz_run *run, uint32_t tag);

// hz3_heap.c: threads come and go.
// The calling thread's heap, made if it has none yet. NULL: it cannot have one.
struct hz3_heap *hz3_heap_get(void);
bool hz3_heaps_start(void);
// Gives everything that a heap holds to its shard and below; the heap stays usable.
void hz3_heap_flush(struct hz3_heap *heap);
// Empties heaps of threads that a fork left behind. True: there was one.
bool hz3_adopt_orphans(void);

// hz3_refill.c: the way down. NULL: no memory (errno is not set).
void *hz3_refill(struct hz3_heap *heap, unsigned class_id);
// One block for a thread without a heap. NULL: no memory.
void *hz3_take_single(unsigned class_id);
// A full magazine on the way down; afterwards p has been taken in.
void hz3_overflow(struct hz3_heap *heap, unsigned class_id, void *p);
// Puts blocks into the bitmaps, and the runs that become empty back into the arena.
void hz3_give_central(unsigned class_id, void *const *blocks, uint32_t count);
// A magazine (not loaded) into its shard's depot, or into the runs when that is full.
void hz3_give_magazine(struct hz3_shard *shard, unsigned class_id, struct hz_magazine *m);
// An empty magazine into the heap's spare place, or away.
void hz3_keep_empty(struct hz3_heap *heap, unsigned class_id, struct hz_magazine *m);
struct hz_magazine *hz3_take_empty(struct hz3_heap *heap, unsigned class_id);

// hz3_remote.c: blocks of other shards.
void hz3_release_remote(struct hz3_heap *heap, uint32_t tag, void *p);
void hz3_flush_packets(struct hz3_heap *heap);

// hz3_decay.c: memory that nobody needs goes down, and out.
// heap: NULL for a thread without one.
void hz3_slow_path_done(struct hz3_heap *heap);
// Moves everything that can be reached without other threads' help down to the runs, and every free
// page to the kernel. False: there was nothing.
bool hz3_reclaim(void);
// The kernel has refused: the same, and address space that is held for later goes too.
bool hz3_last_resort(void);
// The same for malloc_trim.
bool hz3_trim(size_t keep_bytes);

// hz3_check.c
const char *hz3_check(void);

#endif
