// hz5, the ownership-first line: its words, its structures, its invariants.
//
//   run       slabs cut into blocks of one class
//   table     a descriptor of 64 bytes per slab, found from an address by one subtraction and two
//             shifts (struct hz5_slab), in the arena's own table. It lies outside of the memory
//             that it describes, and so do the bits of its blocks: nothing is ever written into a
//             block, free or not
//   bits      two per block, in two words side by side for 64 blocks: `idle`, clear = in the
//             program's hands, which only the owner writes; `kept`, clear = another thread has freed
//             it, and the owner does not know yet. Live is what is not idle, and kept. Runs of up to
//             64 blocks have theirs in the descriptor
//   token     {slot, generation} of the heap that owns a run. A heap that another thread takes over
//             has a new generation, so its old token owns nothing
//   current   the run of a class that a heap allocates from, word by word
//   listed    a run with free blocks that its owner comes back to, or leaves to the pool if it does
//             not for long
//   full      a run without a free block: it belongs to nobody, and to the next thread that frees a
//             block of it
//   orphan    a run with free blocks whose thread has ended or does not need it: in the pool of its
//             class, for the next thread that frees a block of it, or needs one
//   vacant    a run without a live block: in the pool, for the next thread that needs one, until it
//             has been idle for long
//   queue     owned runs with blocks that others have freed wait for their owner, each once,
//             however many blocks it has
//
//   malloc:  lowest free block of the current word -> next words of the current run -> what others
//            have freed -> the heap's other runs -> orphans -> vacant runs -> new run
//   free:    of an own run:   the idle bit is set; that is all
//            of nobody's run: the run is ours from now on; then the same
//            of another's:    the kept bit is cleared; the first one puts the run into the queue
//
// There are no caches above the bits. So each free is checked exactly and at once: p is where a
// block begins, its idle bit is clear, its kept bit is set. What is refused changes nothing.
//
// A listed run counts how many frees are left until it is empty (`until`); a current one never gets
// there.
//
// Invariants (hz5_check.c):
//   every slab of a run names its owner, class and bits; a slab of no run names nobody
//   a block whose kept bit is clear is not idle, or two threads have freed it at once
//   what stands for no block is neither free nor live: both bits clear
//   a listed run or orphan has idle blocks and others, and `until` is the number of the latter; a
//   current run is in no list; a full run has no idle block, a vacant one only such
//   a run with cleared kept bits waits in a queue, or a thread is about to put it there
#ifndef HZ_LINES_HZ5_MODEL_H
#define HZ_LINES_HZ5_MODEL_H

#include "core/arena.h"
#include "core/lock.h"
#include "core/misuse.h"
#include "core/run_block.h"
#include "core/size_class.h"
#include "core/thread.h"
#include "lines/hz5/hz5_options.h"
#include "lines/line.h"

enum {
  HZ5_HEAPS = 65535, // slots of tokens; 0 is nobody's
  HZ5_GENERATION_BITS = 16,
};

// Owners that are no heap's token. Those are never below HZ5_TOKENS.
enum {
  HZ5_NOBODY, // the slab is of no run of a class
  HZ5_VACANT, // no block of it is live: in the pool of its class
  HZ5_FULL,   // full: owned by who frees a block of it next
  HZ5_ORPHAN, // in the pool of its class
  HZ5_TOKENS = 1 << HZ5_GENERATION_BITS,
};
#define HZ5_NO_HEAP UINT32_MAX // the token of threads that have no heap: owns nothing

// `until` of a current run, set anew when it comes to 0 all the same.
#define HZ5_NEVER INT32_MAX

// Of 64 blocks.
struct hz5_bits {
  _Atomic uint64_t idle; // clear: in the program's hands, as far as the owner knows
  _Atomic uint64_t kept; // clear: freed by a thread that is not the owner
};

// What is known of a slab: the arena's record of it (struct hz_run), used in our way. `owner` to
// `bits` and class_id are the same in all slabs of a run but for `at`; the rest is in use in the
// first slab only.
struct hz5_slab {
  uint8_t arena[4];
  // Read by every free.
  _Atomic uint32_t owner; // token, or HZ5_NOBODY, HZ5_VACANT, HZ5_FULL, HZ5_ORPHAN
  uint32_t at;            // offset of the slab in its run
  int32_t until_seen;     // first slab: `until` when its idle memory was last looked for
  struct hz5_bits *bits;  // `until` lies before them: hz5_until_of
  // The owner's; of a run in a pool, under its lock.
  uint32_t next, prev;          // neighbours in its list
  _Atomic uint32_t next_queued; // neighbour in a queue
  _Atomic uint32_t queued;      // hz5_forks: in a queue, or about to be. Outlives the run
  uint8_t class_id;
  uint8_t words;         // pairs of words in bits
  uint8_t idle_ticks;    // ticks since a block was taken or given
  _Atomic uint8_t state; // enum hz5_state
  int32_t until;         // with own_bits: frees left until the run is empty
  struct hz5_bits own_bits;
} __attribute__((may_alias));
static_assert(sizeof(struct hz5_slab) == sizeof(struct hz_run) &&
                  offsetof(struct hz5_slab, owner) >= offsetof(struct hz_run, free) &&
                  offsetof(struct hz5_slab, next) == offsetof(struct hz_run, next) &&
                  offsetof(struct hz5_slab, next_queued) == offsetof(struct hz_run, prev),
              "what the arena writes is `arena`, and of a run that is given back, next and prev");

enum hz5_state {
  HZ5_NONE,    // not the first slab of a run of ours
  HZ5_CURRENT, // a heap allocates from it, or has it in its hands; full; vacant
  HZ5_LISTED,  // in a list of its owner, or of orphans
};

// The bits of runs of more than 64 blocks.
struct hz5_record {
  uint64_t unused;
  uint32_t unused_too;
  int32_t until;
  struct hz5_bits bits[];
};
static_assert(offsetof(struct hz5_slab, own_bits) - offsetof(struct hz5_slab, until) ==
                  offsetof(struct hz5_record, bits) - offsetof(struct hz5_record, until),
              "hz5_until_of finds `until` from the bits");

// Where a class's next block comes from.
struct hz5_cursor {
  struct hz5_bits *bits; // the current word's; never NULL
  char *base;            // block of their lowest bit
  uint32_t bytes;        // of a block
  uint32_t run;          // the current run; 0: none
};

// Runs that have come last first, linked both ways.
struct hz5_list {
  uint32_t first, last; // 0: none
  uint32_t count;
};

// Runs for one owner's queue, linked by next_queued.
struct hz5_chain {
  uint32_t token; // the owner's, when the first came
  uint32_t first, last;
  uint16_t runs, slabs; // how many; 0: none
};

enum {
  HZ5_CHAINS = 8,       // owners that a thread collects runs for, by slot
  HZ5_CHAIN_SLABS = 16, // a chain is sent when its runs have so many: 1 MiB
  HZ5_UNUSED_RUNS = 16, // of a class that a thread does not allocate, but frees: listed at most
};

struct hz5_heap {
  // Hot paths.
  uint32_t token;
  uint16_t cursor_by_16[HZ_CLASS_BY_16_MAX / 16 + 1]; // where in the heap a size's cursor is
  struct hz5_cursor cursor[HZ_CLASS_COUNT];
  // Slow paths of its thread.
  struct hz5_list listed[HZ_CLASS_COUNT];
  struct hz5_chain chains[HZ5_CHAINS];
  struct hz_run_cache above;
  struct hz_thread thread;
  uint32_t slot;
  uint32_t trims_seen, periods_seen; // hz5_decay.c
  struct hz5_heap *next_idle;
  // Pushed to by any thread: the newest of the runs that wait, linked by next_queued; HZ5_CLOSED.
  _Alignas(HZ_CACHE_LINE) _Atomic uint32_t queue;
};

#define HZ5_CLOSED UINT32_MAX // nobody will look into this queue

extern HZ_HIDDEN const struct hz5_heap hz5_empty_heap; // of threads that have not allocated yet
extern HZ_HIDDEN const struct hz5_heap hz5_dead_heap;  // of threads that have ended
extern HZ_HIDDEN __thread const struct hz5_heap *hz5_heap
    __attribute__((tls_model("initial-exec")));

extern HZ_HIDDEN uint64_t hz5_reciprocals[HZ_CLASS_COUNT]; // 2^64 / bytes, rounded up

// By slab.
HZ_FAST struct hz5_slab *hz5_table(void) {
  return (struct hz5_slab *)hz_arena.runs;
}
// p: in the arena.
HZ_FAST struct hz5_slab *hz5_slab_of(const void *p) {
  return &hz5_table()[hz_slab_of(p)];
}

// One more than the forks behind this process: what is marked as queued with another number was
// lost in a fork.
extern HZ_HIDDEN uint32_t hz5_forks;

// Runs are named by the index of their first slab, plus one, wherever 0 must mean none.
HZ_FAST uint32_t hz5_name(const struct hz5_slab *run) {
  return (uint32_t)(run - hz5_table()) + 1;
}
HZ_FAST struct hz5_slab *hz5_named(uint32_t name) {
  return name == 0 ? NULL : &hz5_table()[name - 1];
}
// Frees by the owner until a listed run is empty.
HZ_FAST int32_t *hz5_until_of(struct hz5_bits *bits) {
  return (int32_t *)bits - 1;
}
HZ_FAST int32_t *hz5_until(const struct hz5_slab *run) {
  return hz5_until_of(run->bits);
}
HZ_FAST uint32_t hz5_owner(const struct hz5_slab *slab) {
  return atomic_load_explicit(&slab->owner, memory_order_relaxed);
}
HZ_FAST enum hz5_state hz5_state(const struct hz5_slab *run) {
  return atomic_load_explicit(&run->state, memory_order_relaxed);
}
HZ_FAST char *hz5_base(const struct hz5_slab *run) {
  return hz_run_base((const struct hz_run *)run);
}
HZ_FAST const struct hz_size_class *hz5_class(const struct hz5_slab *slab) {
  return &hz_size_classes[slab->class_id];
}
// The bits of word w that stand for blocks.
HZ_FAST uint64_t hz5_blocks_of(const struct hz5_slab *run, uint32_t w) {
  const uint32_t left = hz5_class(run)->blocks - w * 64;
  return left >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
}

// Which block of its run an address is in, and whether it is that block's beginning. By a
// reciprocal that is less than 1 too large: of the product, the upper half is the quotient, and the
// lower half is below the reciprocal only without a remainder, as long as the offset is below the
// reciprocal itself, which is at least 2^48.
HZ_FAST bool hz5_begins(const struct hz5_slab *slab, const void *p, uint32_t *index) {
  const uint32_t offset = (uint16_t)(uintptr_t)p + slab->at;
  const uint64_t reciprocal = hz5_reciprocals[slab->class_id];
  const unsigned __int128 product = (unsigned __int128)reciprocal * offset;
  *index = (uint32_t)(product >> 64);
  return (uint64_t)product < reciprocal;
}
static_assert(HZ_SLAB_BYTES == 1 << 16, "hz5_begins cuts off what 16 bits hold");

// Whether a block begins at p that is in the program's hands. *index: its number, in any case.
HZ_FAST bool hz5_is_live(const struct hz5_slab *slab, const void *p, uint32_t *index) {
  if (!hz5_begins(slab, p, index)) return false;
  const struct hz5_bits *bits = &slab->bits[*index / 64];
  const uint64_t idle = atomic_load_explicit(&bits->idle, memory_order_relaxed);
  const uint64_t kept = atomic_load_explicit(&bits->kept, memory_order_relaxed);
  return ((~idle & kept) >> *index % 64 & 1) != 0;
}

// A word's blocks that may be taken, and the word as it was read for that.
struct hz5_free {
  uint64_t blocks, idle;
};
HZ_FAST struct hz5_free hz5_free_of(struct hz5_bits *bits) {
  const uint64_t idle = atomic_load_explicit(&bits->idle, memory_order_relaxed);
  const uint64_t kept = atomic_load_explicit(&bits->kept, memory_order_relaxed);
  return (struct hz5_free){idle & kept, idle};
}
// Takes the lowest of them. free: of the current word; there is one.
HZ_FAST void *hz5_take_lowest(const struct hz5_cursor *cursor, struct hz5_free free) {
  const uint32_t bit = (uint32_t)__builtin_ctzll(free.blocks);
  atomic_store_explicit(&cursor->bits->idle, free.idle & ~(UINT64_C(1) << bit),
                        memory_order_relaxed);
  return cursor->base + bit * cursor->bytes;
}
// A block of a run that is the calling thread's is taken, or comes back.
HZ_FAST void hz5_take(struct hz5_slab *run, uint32_t index) {
  atomic_fetch_and_explicit(&run->bits[index / 64].idle, ~(UINT64_C(1) << index % 64),
                            memory_order_relaxed);
}
HZ_FAST void hz5_give(struct hz5_slab *run, uint32_t index) {
  atomic_fetch_or_explicit(&run->bits[index / 64].idle, UINT64_C(1) << index % 64,
                           memory_order_relaxed);
}

// hz5.c: the hot pair, also called directly by the benchmarks.
void *hz5_alloc(size_t bytes);
void hz5_release(void *p);

// hz5_run.c: runs come and go.
void hz5_runs_start(void);
// The slab that p lies in, if it is of a run of a class. NULL: it is not.
struct hz5_slab *hz5_find(const void *p);
// The first slab of its run.
struct hz5_slab *hz5_first(struct hz5_slab *slab);
// A new run, in no list, of the heap with this token. NULL: no memory.
struct hz5_slab *hz5_run_open(unsigned class_id, uint32_t token);
// Vacant runs, linked by next, from no pool go back to the arena.
void hz5_runs_close(uint32_t first);
// Another owner for a run of the calling thread's, or under the lock of its pool.
void hz5_run_own(struct hz5_slab *run, uint32_t token);
// Takes a full run, which belongs to nobody. False: it has an owner.
bool hz5_run_adopt(struct hz5_slab *run, uint32_t token);
// A run of the calling thread's, in no list, with `live` live blocks, some but not all: into a
// list.
void hz5_run_link(struct hz5_list *list, struct hz5_slab *run, uint32_t live);
// The same with any number of them: if it is full it is nobody's, and empty it goes to the pool.
void hz5_run_leave(struct hz5_list *list, struct hz5_slab *run, uint32_t live);
void hz5_run_unlist(struct hz5_list *list, struct hz5_slab *run);
// Blocks that the program has, and those of them that others have freed meanwhile.
uint32_t hz5_run_live(const struct hz5_slab *run);
uint32_t hz5_run_freed(const struct hz5_slab *run);
// `until` is 0.
void hz5_run_emptied(struct hz5_list *list, struct hz5_slab *run);
// Takes in what others have freed: the bits alone. Returns how many blocks. *stray: a block that
// two threads have freed at once, for hz5_tell_stray, when no lock is held; else unchanged.
uint32_t hz5_run_absorb(struct hz5_slab *run, const void **stray);
// The same for a run of the calling thread's, current or in `list`, with what follows from it.
uint32_t hz5_run_take_in(struct hz5_list *list, struct hz5_slab *run);
// What is free in all runs, and what of the rest others have freed. Any thread.
struct hz5_sums {
  uint64_t free_bytes, freed_bytes;
};
struct hz5_sums hz5_runs_sum(void);
// Every run from the arena's start on; NULL first, NULL at the end. Those of other threads may go
// meanwhile.
struct hz5_slab *hz5_run_next(struct hz5_slab *run);

// hz5_refill.c: the way down.
// A block of the class, or NULL: no memory (errno is not set).
void *hz5_refill(struct hz5_heap *heap, unsigned class_id);
// The same for a thread without a heap.
void *hz5_take_single(unsigned class_id);
// The heap allocates from no run any more.
void hz5_retire_current(struct hz5_heap *heap, unsigned class_id);

// hz5_remote.c: frees of what the calling thread does not own, and what others have freed of ours.
// heap: NULL for threads without one.
void hz5_release_foreign(struct hz5_heap *heap, struct hz5_slab *slab, void *p);
void hz5_tell_stray(const void *p);
// Why p is refused that lies in a run of a class.
void hz5_refuse(const struct hz5_slab *slab, const void *p);

// hz5_queue.c: the way of runs with such blocks to their owners.
// A block of the run has been freed. heap: the calling thread's, or NULL.
void hz5_queue(struct hz5_heap *heap, struct hz5_slab *run);
// Sends what the heap's chains hold.
void hz5_send(struct hz5_heap *heap);
// Takes in what waits in the heap's queue.
void hz5_collect(struct hz5_heap *heap);
// Nobody will come for the queue any more: what waits is taken in, what is held is sent.
void hz5_queue_close(struct hz5_heap *heap);
// The same for the heap of a thread that a fork left behind: nothing in it is believed.
void hz5_queue_leave(struct hz5_heap *heap);
// Once in a forked child: brings to their owners what was on its way in the parent.
void hz5_after_fork(void);
// The run waits in no queue any more: who frees a block of it puts it into one again.
void hz5_unqueue(struct hz5_slab *run);

// hz5_pool.c: runs that no thread owns, full ones excepted.
void hz5_pools_start(void);
// A run of the calling thread's, in no list, is left to nobody; an empty one.
void hz5_pool_give(struct hz5_slab *run);
void hz5_pool_vacate(struct hz5_slab *run);
// An orphan or a vacant run, owned by `token` from now on; NULL: there is none of the class.
struct hz5_slab *hz5_pool_take(unsigned class_id, uint32_t token);
// The same for a certain orphan. False: it is none any more.
bool hz5_pool_adopt(struct hz5_slab *run, uint32_t token);
// A block of such a run, for a thread without a heap. NULL: there is none.
void *hz5_pool_block(unsigned class_id);
// Frees a block of a run without an owner, for a thread without a heap. False: it has one, look
// again.
bool hz5_pool_release(struct hz5_slab *slab, void *p);
// The run is marked as queued, and `owner`, whose it was, looks into no queue. Takes in what was
// freed, or leaves that to hz5_pool_give, which is to come. False: it has another owner.
bool hz5_pool_absorb(struct hz5_slab *run, uint32_t owner);
// Slabs of vacant runs, as far as can be seen without locks.
uint64_t hz5_pools_vacant_slabs(void);
// All vacant runs go to the arena. False: there were none.
bool hz5_pools_empty(void);
// Idle memory of orphans goes back to the kernel, and, with a tick, idle vacant runs to the arena.
size_t hz5_pools_decay(bool all, bool tick, unsigned *calls);

// hz5_heap.c: heaps come and go with threads.
bool hz5_heaps_start(void);
// The calling thread's heap, if it may have one. NULL: it cannot.
struct hz5_heap *hz5_heap_get(void);
// The heap whose slot a token names, whatever generation; NULL: there is none.
struct hz5_heap *hz5_heap_of(uint32_t token);
// A current run, or none, for a class.
void hz5_cursor_reset(struct hz5_heap *heap, unsigned class_id);
// Runs of threads that a fork left behind become orphans. True: there was one.
bool hz5_adopt_vanished(void);

// hz5_decay.c: memory that nobody needs goes down, and out.
// heap: NULL for a thread without one.
void hz5_slow_path_done(struct hz5_heap *heap);
bool hz5_trim(size_t keep_bytes);
// The kernel has refused: the same, and address space that is held for later goes too.
bool hz5_last_resort(void);
size_t hz5_run_decay(struct hz5_slab *run, bool all, bool tick, unsigned *calls);

// hz5_check.c: NULL, or the first broken invariant.
const char *hz5_check(void);
const char *hz5_check_list(const struct hz5_list *list, uint32_t token, unsigned class_id);
const char *hz5_pools_check(void); // hz5_pool.c

#endif
