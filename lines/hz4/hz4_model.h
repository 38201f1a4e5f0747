// hz4, the remote-free-first line: its words, its structures, its invariants.
//
//   page      a run of slabs cut into blocks of one class (core/class_run.h), owned by one heap
//   head      the first slab of each segment: 16 bytes for each of the other 63 (struct hz4_page)
//             say whose it is and of which class. free() masks the address down to the head: no
//             table, no second load, and the block's own memory is not read.
//   heap      one per thread: magazines (core/magazine.h), packets, pages, a queue. A heap outlives
//             its thread: the next thread takes it over as it lies there, pages and queue included.
//   packet    a magazine that a thread fills with the blocks of one other heap, of any class
//   lane      a packet's place in the table of those that a thread fills: owner's index modulo 64
//   queue     packets that wait for a heap: pushed by one compare and swap, taken all at once
//   inbox     packets taken from the queue together with others, to be taken one by one
//   idle heap a heap that no thread attends
//
//   malloc:  magazine -> inbox -> queue -> own pages -> pages of idle heaps -> new page
//   free:    own block:       magazine -> bitmap of its page
//            another heap's:  packet -> that heap's queue; in bulk, when the packet is full, when the
//                             thread has collected packets_bytes, or at its first slow path after a
//                             tick
//
// A heap's pages, queue and inbox are under its lock, so that any thread can take in what waits for
// one that sleeps; its magazines and packets belong to the attending thread alone, or, in an idle
// heap, to whoever holds the lock. Hot paths take no lock.
//
// The owner in the head is advice on where to send a block, nothing more: any thread may use any
// block. That is why pages may change hands while their blocks are out.
//
// Magazines and packets are records of one size: a full packet of one class becomes the owner's
// loaded magazine by exchange of pointers. A class that may keep fewer blocks has the upper sentinel
// further down.
//
// Invariants (hz4_check.c; those of arena and class runs hold too):
//   the head names a page's owner and class for each of its slabs as long as any block is out
//   a page is listed by its owner exactly if 0 < free < blocks
//   heap->listed has a bit per class whose list is not empty; heap->free_bytes is the sum of what
//   the listed pages have free
//   a packet in a queue holds 1..capacity blocks, all of the class that its note names, if any
//   a block in a magazine or packet is not free in its page's bitmap
#ifndef HZ_LINES_HZ4_MODEL_H
#define HZ_LINES_HZ4_MODEL_H

#include "core/arena.h"
#include "core/class_run.h"
#include "core/lock.h"
#include "core/magazine.h"
#include "core/run_block.h"
#include "core/size_class.h"
#include "core/thread.h"
#include "lines/hz4/hz4_options.h"
#include "lines/line.h"

enum {
  HZ4_LANES = 64,
  HZ4_LOCKS = 64,      // heaps share locks by index
  HZ4_WIDE_CLASS = 20, // the first above 1 KiB: narrower blocks are bounded by their number alone
  HZ4_MIXED = HZ_CLASS_COUNT, // a packet's note, if its blocks are not all of one class
  HZ4_NO_PACKET = INT32_MAX,  // more than any packet holds
};

// What the head knows of a slab. All zero: no block of a class begins or lies there.
struct hz4_page {
  _Atomic(struct hz4_heap *) owner;
  _Atomic uint8_t class_id;
  _Atomic uint8_t lane; // of the owner
};
static_assert(sizeof(struct hz4_page) == 16, "hz4_page_at multiplies by shifting");

// A block is stored without a look at what lies there: the record was last in the owner's hands, and
// a load would wait for its cache lines to come over. So there is a count, and no sentinel is read.
struct hz4_packet {
  _Alignas(32) struct hz4_heap *owner; // whose blocks; NULL: unused so far
  struct hz_magazine *blocks;
  uint32_t count;      // HZ4_NO_PACKET while blocks is NULL
  uint32_t wide_bytes; // of its blocks from HZ4_WIDE_CLASS up
  uint8_t class_id;    // of its first block
  uint8_t mixed;       // not 0: others are of other classes
  uint16_t refused;    // blocks of other owners that found the lane taken
};
static_assert(sizeof(struct hz4_packet) == 32, "release_foreign multiplies by shifting");

struct hz4_heap {
  // Hot paths of the attending thread.
  void **top[HZ_CLASS_COUNT];
  uint8_t class_by_16[HZ_CLASS_BY_16_MAX / 16 + 1]; // a copy at hand saves malloc an instruction
  uint32_t packet_blocks; // that a packet may hold; 0 in the read-only heaps
  int64_t room; // bytes of wide blocks that the packets may still take before all are sent
  struct hz4_packet packets[HZ4_LANES];
  // Its slow paths.
  struct hz_magazine *loaded[HZ_CLASS_COUNT]; // what top points into; NULL: the static empty one
  struct hz_magazine *spares;                 // empty magazines
  uint32_t spare_count;
  uint32_t trims_seen, periods_seen; // hz4_decay.c
  struct hz_run_cache runs;
  struct hz_thread thread;
  // Constant.
  uint32_t index; // in the order of creation
  struct hz_lock *lock;
  struct hz4_heap *next; // in the list of all
  // Under the lock.
  _Atomic bool attended; // a thread has it
  _Atomic bool stripped; // idle, and its magazines have been emptied into the pages
  _Atomic uint64_t listed;
  _Atomic uint64_t free_bytes;
  struct hz_run *pages[HZ_CLASS_COUNT];
  _Atomic(struct hz_magazine *) inbox;
  struct hz_magazine *queue_seen, *inbox_seen; // their tops at the last tick
  // Under the lock of the idle list.
  struct hz4_heap *next_idle;
  // Pushed to by any thread; taken from under the lock.
  _Alignas(HZ_CACHE_LINE) _Atomic(struct hz_magazine *) queue;
  // An empty magazine for whoever brings the next packet: it travels in the same cache line.
  _Atomic(struct hz_magazine *) returned;
};

// What the options mean for one class, worked out at start.
struct hz4_limits {
  uint16_t capacity; // of a magazine
  uint16_t refill;   // blocks taken from pages at once
};

extern HZ_HIDDEN struct hz4_limits hz4_limits[HZ_CLASS_COUNT];
extern HZ_HIDDEN const struct hz4_heap
    hz4_empty_heap; // of threads that have not allocated yet: read-only
extern HZ_HIDDEN const struct hz4_heap hz4_dead_heap; // of threads that have ended: read-only
extern HZ_HIDDEN __thread const struct hz4_heap *hz4_heap
    __attribute__((tls_model("initial-exec")));

// p: in a segment of runs.
HZ_FAST struct hz4_page *hz4_page_at(const void *p) {
  const uintptr_t head = (uintptr_t)p & ~(uintptr_t)(HZ_SEGMENT_BYTES - 1);
  const uintptr_t place = (uintptr_t)p >> (HZ_SLAB_SHIFT - 4) & (HZ_SEGMENT_SLABS - 1) << 4;
  return (struct hz4_page *)(head + place);
}
// Whether there is a head to ask: not outside the arena, and not in a large block.
HZ_FAST bool hz4_in_page(const void *p) {
  const size_t segment = ((uintptr_t)p - hz_arena.base) >> HZ_SEGMENT_SHIFT;
  return hz_likely(segment < hz_arena.segment_count) &&
         hz_likely(hz_arena.kind[segment] == HZ_SEGMENT_OF_RUNS);
}
HZ_FAST struct hz4_heap *hz4_owner(const struct hz4_page *page) {
  return atomic_load_explicit(&page->owner, memory_order_relaxed);
}
// Whose block p is; NULL: nobody's, as far as the head knows.
HZ_FAST struct hz4_heap *hz4_owner_of(const void *p) {
  return hz4_in_page(p) ? hz4_owner(hz4_page_at(p)) : NULL;
}
HZ_FAST unsigned hz4_class(const struct hz4_page *page) {
  return atomic_load_explicit(&page->class_id, memory_order_relaxed);
}
// The class of the block at p; HZ_CLASS_COUNT: none is there. After a bad free that is the case for
// addresses in magazines and packets, too.
HZ_FAST unsigned hz4_class_at(const void *p) {
  return hz_likely(hz4_owner_of(p) != NULL) ? hz4_class(hz4_page_at(p)) : HZ_CLASS_COUNT;
}

// hz4.c: the hot pair, also called directly by the benchmarks.
void *hz4_alloc(size_t bytes);
void hz4_release(void *p);

// hz4_heap.c: heaps come and go with threads.
bool hz4_heaps_start(void);
// The calling thread's heap, if it may have one. NULL: it cannot.
struct hz4_heap *hz4_heap_get(void);
// The newest of all heaps, linked by `next`; NULL: none yet.
struct hz4_heap *hz4_heaps_all(void);
// A round over all heaps, for who looks at some of them at a time: where it stands, NULL at first.
typedef _Atomic(struct hz4_heap *) hz4_round;
// The next heap of the round; after the oldest comes the newest. *first: NULL before the first call
// of a visit, kept between them. NULL: all heaps have been seen in this visit.
struct hz4_heap *hz4_heaps_next(hz4_round *round, struct hz4_heap **first);
// Some heap, for what a thread does that has none. NULL: no memory.
struct hz4_heap *hz4_heap_any(void);
// Whether there seems to be a heap that no thread attends.
bool hz4_heaps_idle(void);
// Takes everything out of the heap's magazines, inbox and queue and empties its run cache; the heap
// stays usable. For the attending thread, or under the lock if there is none. Returns magazines,
// linked by next.
struct hz_magazine *hz4_heap_strip(struct hz4_heap *heap);
// Brings all that the calling thread's heap holds down to pages and queues.
void hz4_heap_flush(struct hz4_heap *heap);
// An idle heap's blocks go to their pages. False: a thread attends it. Cheap if nothing is to do.
bool hz4_heap_settle(struct hz4_heap *heap);
// Heaps of threads that a fork left behind become idle. True: there was one.
bool hz4_adopt_orphans(void);

// hz4_page.c: pages, all under the owner's lock, which these functions take.
// Takes up to `want` blocks of the heap's own pages; 0: it has none.
uint32_t hz4_pages_take(struct hz4_heap *heap, unsigned class_id, void **out, uint32_t want);
// The same from a page cut for this; 0: no memory.
uint32_t hz4_pages_carve(struct hz4_heap *heap, unsigned class_id, void **out, uint32_t want);
// Puts blocks of any class and owner into the bitmaps of their pages, exactly; empty pages go back
// to the arena. What is no taken block goes to hz_misuse and is dropped; `when` is said there of the
// moment, NULL: it is the program's own call.
void hz4_pages_give(void *const *blocks, uint32_t count, const char *when);
// Moves some pages of a class from one heap to another, if no thread attends it (or in any case).
// True: at least one.
bool hz4_pages_move(struct hz4_heap *from, struct hz4_heap *to, unsigned class_id, bool any);
// Gives back pages of memory that only free blocks touch: core/class_run.h hz_class_run_decay.
size_t hz4_pages_decay(struct hz4_heap *heap, bool all, bool tick, unsigned *calls);

// hz4_refill.c: the way down. NULL: no memory (errno is not set).
void *hz4_refill(struct hz4_heap *heap, unsigned class_id);
// One block for a thread without a heap. NULL: no memory.
void *hz4_take_single(unsigned class_id);
// A full magazine: its older half goes to the pages; afterwards p has been taken in.
void hz4_overflow(struct hz4_heap *heap, unsigned class_id, void *p);

// hz4_magazine.c: records of one size.
// An empty one that takes `capacity` blocks; NULL: no memory.
struct hz_magazine *hz4_magazine_take(struct hz4_heap *heap, uint32_t capacity);
void hz4_magazine_give(struct hz4_heap *heap, struct hz_magazine *m);
// Lets a heap's spare ones go. list: linked by next.
void hz4_magazines_drop(struct hz_magazine *list);
void hz4_magazines_start(void);
void hz4_magazine_load(struct hz4_heap *heap, unsigned class_id, struct hz_magazine *m);

// hz4_remote.c: blocks of other heaps, collected and sent.
// The first block for an owner, or one too many. True: something was sent.
bool hz4_release_remote(struct hz4_heap *heap, struct hz4_heap *owner, void *p);
// The packet holds one block more, of a class from HZ4_WIDE_CLASS up. True: all have been sent.
bool hz4_count_wide(struct hz4_heap *heap, struct hz4_packet *packet, unsigned class_id);
// Sends all packets.
void hz4_send_all(struct hz4_heap *heap);

// hz4_collect.c: what other threads have freed of ours.
// Looks into some of what waits for the heap until the class's magazine holds a block. False: it
// does not.
bool hz4_collect(struct hz4_heap *heap, unsigned class_id);
// Whether there seems to be something, and about how much.
bool hz4_waiting(const struct hz4_heap *heap);
uint64_t hz4_waiting_kib(const struct hz4_heap *heap);
// Takes everything that waits, linked by next. Under the heap's lock.
struct hz_magazine *hz4_waiting_take(struct hz4_heap *heap);
// What waits for a heap goes to the pages: some of it; all; some of it, if the owner has not come for
// it since the last such call, which is made at each tick.
void hz4_settle_some_waiting(struct hz4_heap *heap);
void hz4_settle_all_waiting(struct hz4_heap *heap);
void hz4_settle_waiting(struct hz4_heap *heap);
// Blocks of some magazines go to the pages, the magazines away. list: linked by next.
void hz4_give_magazines(struct hz_magazine *list);

// hz4_decay.c: memory that nobody needs goes down, and out.
// heap: NULL for a thread without one.
void hz4_slow_path_done(struct hz4_heap *heap);
// Trims and ticks before now are none of this heap's.
void hz4_heap_up_to_date(struct hz4_heap *heap);
// Moves everything that can be reached without other threads' help down to the pages, and every
// free page to the kernel. False: there was nothing.
bool hz4_reclaim(void);
// The kernel has refused: the same, and address space that is held for later goes too.
bool hz4_last_resort(void);
// The same for malloc_trim.
bool hz4_trim(size_t keep_bytes);

// hz4_check.c: NULL, or the first broken invariant.
const char *hz4_check(void);
// Of one heap; its magazines and inbox too if the caller attends it, or no thread does.
const char *hz4_check_heap(struct hz4_heap *heap);

#endif
