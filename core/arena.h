// One range of addresses from which every block of the process comes.
//
//   arena      1 TiB reserved by default, less where limits forbid; "is it ours" is one subtraction
//              and one compare
//   segment    4 MiB, committed whole; a byte per segment says what it is
//   slab       64 KiB, 64 to a segment; free ones are the bits of one word
//   run        1 to 64 neighbouring slabs of one segment, with a descriptor outside of them
//   large      whole segments in a row, for one block above 4 MiB (core/large.h)
//   head       the first slab of a segment, where a line asks for one (hz_arena_keep_heads): for its
//              records about the others, found from any address in the segment by masking
//
// Under RLIMIT_AS nothing is reserved ahead: segments are claimed one by one at their places, so
// the process keeps the address space that it does not use.
//
// Free slabs that have been used keep their pages ("dirty") until they have been idle for
// purge.idle_ms; hz_arena_purge then gives them back, in batches, from slow paths.
#ifndef HZ_CORE_ARENA_H
#define HZ_CORE_ARENA_H

#include "core/base.h"

enum {
  HZ_SLAB_SHIFT = 16,
  HZ_SLAB_BYTES = 1 << HZ_SLAB_SHIFT,
  HZ_SEGMENT_SHIFT = 22,
  HZ_SEGMENT_BYTES = 1 << HZ_SEGMENT_SHIFT,
  HZ_SEGMENT_SLABS = 64,
};

enum hz_run_state {
  HZ_RUN_NONE,   // not the first slab of a run, or a free slab
  HZ_RUN_CLASS,  // cut into blocks of one class (core/class_run.h)
  HZ_RUN_LIVE,   // one block, in the program's hands
  HZ_RUN_CACHED, // one block, free, in a thread's run cache
};

// A run of slabs. One record per slab in a table outside of them (hz_arena.runs), the first slab's
// is in use. The arena itself needs the first four bytes, and `next` where it is given a list; of
// class runs the rest is core/class_run.c's, or a line's own, in another shape (lines/hz5).
struct hz_run {
  uint8_t lead;          // of every slab: index of its run's first slab in the segment
  uint8_t slabs;         // 1..64
  _Atomic uint8_t state; // enum hz_run_state
  bool zero;             // every byte was zero when the run was taken
  // Class runs.
  uint32_t free;       // free blocks, in the bitmap
  uint64_t *free_bits; // a bit per block, set = free
  uint64_t one_word;   // the bitmap of runs of up to 64 blocks
  struct hz_run *next; // in whichever list holds the run, of any kind
  struct hz_run *prev;
  uint32_t blocks;
  uint16_t home; // list that wants the run; the line's meaning
  uint8_t class_id;
  uint8_t first_word; // no free bit in a bitmap word below this one
  uint8_t idle_ticks; // ticks since a block was taken or given
  uint8_t unused[11];
  uint32_t generation; // the line's own: survives the run
};
static_assert(sizeof(struct hz_run) == 64, "a cache line; hz_run_base divides by shifting");

struct hz_segment;

// Read by hot paths; after hz_arena_start only hz_arena_concede changes it. In a cache line of its
// own.
struct hz_arena_range {
  _Alignas(HZ_CACHE_LINE) uintptr_t base;
  size_t slab_count, segment_count;
  const uint8_t *kind; // of each segment; HZ_SEGMENT_OF_RUNS or something else
  struct hz_run *runs; // by slab; writable below hz_arena_top
};
extern HZ_HIDDEN struct hz_arena_range hz_arena;

enum { HZ_SEGMENT_OF_RUNS = 1 };

// Takes the address space. reserve_bytes: wanted; halved until it fits. False: not even 64 MiB.
bool hz_arena_start(size_t reserve_bytes);

// From now on the first slab of every segment of runs is not handed out. It is zero when a segment
// opens, and lost when all other slabs have been free long enough. Before the first run is taken.
void hz_arena_keep_heads(void);

// Whether an empty segment has room for a run of so many bytes with a base that is a multiple of
// align (a power of two). Without heads: both up to 4 MiB. With heads, less by what lies before the
// first such base.
bool hz_arena_run_fits(size_t bytes, size_t align);

void *hz_arena_base(void);
size_t hz_arena_bytes(void);

// Address space that is reserved and not in use goes back, and segments are claimed one by one from
// then on: for when the kernel refuses, perhaps because RLIMIT_AS was lowered below the
// reservation. The arena then ends where the limit lets it: hz_arena.slab_count shrinks. True:
// something was given up.
bool hz_arena_concede(void);

// A number of slabs below which all runs lie; it never shrinks. Multiple of HZ_SEGMENT_SLABS.
size_t hz_arena_top(void);

// Which slab an address lies in; >= hz_arena.slab_count for addresses that are not ours.
HZ_FAST size_t hz_slab_of(const void *p) {
  return ((uintptr_t)p - hz_arena.base) >> HZ_SLAB_SHIFT;
}

// The first byte of a run.
HZ_FAST void *hz_run_base(const struct hz_run *run) {
  return (char *)hz_arena.base + ((size_t)(run - hz_arena.runs) << HZ_SLAB_SHIFT);
}

// A run of `slabs` whose base is a multiple of align (a power of two), as hz_arena_run_fits allows.
// state is HZ_RUN_NONE, to be set by the taker. NULL: no memory. Any thread.
struct hz_run *hz_arena_take(unsigned slabs, size_t align);

// Up to `count` of such runs, linked by next, under one lock. NULL: no memory for any.
struct hz_run *hz_arena_take_list(unsigned slabs, size_t align, unsigned count);

// Takes a run back.
void hz_arena_give(struct hz_run *run);

// Takes a list of runs back (linked by next) under one lock.
void hz_arena_give_list(struct hz_run *list);

// Lengthens or shortens a run at its end. False: the slabs behind it are not free.
bool hz_arena_resize(struct hz_run *run, unsigned slabs);

// The run that an address lies in; NULL: none (free slab, large block, not ours). The answer is
// meaningful to a caller who owns a block there; for others it is a guess for a message.
struct hz_run *hz_run_of(const void *p);

// Whether the latest run to hold the free slab that p lies in began at p: who frees p has freed it
// before.
bool hz_arena_run_began(const void *p);

// Whole segments in a row for a large block; nothing is committed. record: kept for the block.
// Returns the base, or NULL. align: a power of two.
void *hz_arena_take_segments(size_t count, size_t align, void *record);
// The same at a fixed place, behind a large block: true if those segments were free.
bool hz_arena_extend_segments(void *base, size_t old_count, size_t new_count);
// Gives segments back, contents and commit included. lost: their addresses were taken by others
// meanwhile and must never be used again.
void hz_arena_give_segments(void *base, size_t count, bool lost);
// The record of the large block whose segments hold p, and the block's base; NULL: none.
void *hz_arena_large_of(const void *p, void **base);

// Gives dirty slabs that have been idle for idle_ms back to the kernel, in at most max_calls system
// calls, fewer if these give back much (one counts as one per 256 KiB). Returns the bytes given
// back; *more: something due is left.
size_t hz_arena_purge(uint64_t now_ms, uint64_t idle_ms, unsigned max_calls, bool *more);

// In a forked child, before its locks are released: takes up what other threads were doing.
void hz_arena_fork_child(void);

struct hz_arena_totals {
  uint64_t reserved_bytes, committed_bytes, run_bytes, dirty_bytes, large_segments;
};
void hz_arena_read_totals(struct hz_arena_totals *out);

// Walks the segments: NULL, or the first broken invariant. Takes the lock.
const char *hz_arena_check(void);

#endif
