// Segments, slabs and runs: see core/arena.h.
//
// Invariants (hz_arena_check):
//   free & ~dirty reads as zero; dirty is a subset of free
//   a segment is in the bucket of the longest run of its free word, or in none when that is empty
//   a segment is in the purge queue exactly if it has dirty slabs
#include "core/arena.h"

#include <string.h>

#include "core/counter.h"
#include "core/lock.h"
#include "core/meta.h"
#include "core/misuse.h"
#include "core/os.h"

enum {
  BUCKETS = 7,      // longest free run of 1, 2, 4 .. 64 slabs
  BUCKET_TRIES = 8, // segments of a bucket that may, but need not, have room: look at this many
};

// What a segment is: one byte each, so that a foreign address is refused by one load.
enum segment_kind {
  KIND_NONE,
  KIND_LINE = HZ_SEGMENT_OF_RUNS,
  KIND_LARGE,
  KIND_LARGE_REST,
  KIND_LEAVING, // of runs until now; its memory is being given back
  KIND_LOST
};

struct hz_segment {
  struct hz_segment *next, *prev;             // of its bucket
  struct hz_segment *purge_next, *purge_prev; // of the queue, oldest first
  uint64_t free, dirty;                       // a bit per slab
  uint64_t dirty_since_ms;
  uint64_t purging; // slabs held back while their pages are being given back
  void *purger;     // by this thread (its thread pointer), the latest if by several
  uint32_t index;
  int8_t bucket; // -1: nothing free
  bool queued;
};
enum { SEGMENT_RUNS_BYTES = HZ_SEGMENT_SLABS * sizeof(struct hz_run) };

struct hz_arena_range hz_arena;

static struct {
  struct hz_lock lock;
  _Atomic bool reserved; // the whole range is ours; otherwise segments are claimed one by one
  size_t segment_count;
  size_t first_free; // no free segment below
  size_t top;        // none in use from here on
  uint64_t whole;    // the slabs of a segment that are handed out: all, or all but the head
  size_t table_bytes;
  uint8_t *kind; // tables over all segments: read freely, written under the lock
  void **record; // KIND_LINE: its hz_segment; KIND_LARGE: the block's record
  size_t kind_committed, record_committed, runs_committed; // segments whose rows are writable
  struct hz_segment *buckets[BUCKETS];
  struct hz_segment *purge_oldest, *purge_newest;
  struct hz_segment *spare; // records of given-back segments
  uint64_t segments_in_use, large_segments, run_slabs, dirty_slabs;
} arena;

// ---- Bits --------------------------------------------------------------------------------------

// The low bits of a run: n ones. n: 1..64.
static uint64_t ones(unsigned n) {
  return n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

// Bits from which n set bits follow one another.
static uint64_t starts_of(uint64_t word, unsigned n) {
  for (unsigned have = 1; have < n;) {
    const unsigned step = have < n - have ? have : n - have;
    word &= word >> step;
    have += step;
  }
  return word;
}

static uint64_t aligned_starts(uint64_t word, unsigned n, unsigned align_slabs) {
  uint64_t mask = 0;
  if (align_slabs == 1) mask = ~UINT64_C(0);
  else
    for (unsigned i = 0; i < HZ_SEGMENT_SLABS; i += align_slabs) mask |= UINT64_C(1) << i;
  return starts_of(word, n) & mask;
}

// log2 of the longest run of set bits; -1 for none.
static int bucket_of(uint64_t word) {
  if (word == 0) return -1;
  int bucket = 0;
  for (unsigned n = 1; n < 64; n *= 2) {
    word &= word >> n;
    if (word == 0) break;
    bucket++;
  }
  return bucket;
}

// ---- Lists (all under the lock) ----------------------------------------------------------------

static void bucket_remove(struct hz_segment *s) {
  if (s->bucket < 0) return;
  if (s->prev != NULL) s->prev->next = s->next;
  else arena.buckets[s->bucket] = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  s->bucket = -1;
}

static void bucket_update(struct hz_segment *s) {
  const int bucket = bucket_of(s->free);
  if (bucket == s->bucket) return;
  bucket_remove(s);
  if (bucket < 0) return;
  s->prev = NULL;
  s->next = arena.buckets[bucket];
  if (s->next != NULL) s->next->prev = s;
  arena.buckets[bucket] = s;
  s->bucket = (int8_t)bucket;
}

static void purge_remove(struct hz_segment *s) {
  if (!s->queued) return;
  if (s->purge_prev != NULL) s->purge_prev->purge_next = s->purge_next;
  else arena.purge_oldest = s->purge_next;
  if (s->purge_next != NULL) s->purge_next->purge_prev = s->purge_prev;
  else arena.purge_newest = s->purge_prev;
  s->queued = false;
}

static void purge_append(struct hz_segment *s) {
  if (s->queued) return;
  s->purge_next = NULL;
  s->purge_prev = arena.purge_newest;
  if (s->purge_prev != NULL) s->purge_prev->purge_next = s;
  else arena.purge_oldest = s;
  arena.purge_newest = s;
  s->queued = true;
  s->dirty_since_ms = hz_os.now_ms();
}

// Back to the front of the queue, as old as it was.
static void purge_return(struct hz_segment *s, uint64_t dirty_since_ms) {
  purge_remove(s);
  s->purge_prev = NULL;
  s->purge_next = arena.purge_oldest;
  if (s->purge_next != NULL) s->purge_next->purge_prev = s;
  else arena.purge_newest = s;
  arena.purge_oldest = s;
  s->queued = true;
  s->dirty_since_ms = dirty_since_ms;
}

static void set_dirty(struct hz_segment *s, uint64_t dirty) {
  arena.dirty_slabs += (uint64_t)__builtin_popcountll(dirty);
  arena.dirty_slabs -= (uint64_t)__builtin_popcountll(s->dirty);
  s->dirty = dirty;
  if (dirty != 0) purge_append(s);
  else purge_remove(s);
}

// ---- Segments (all under the lock) -------------------------------------------------------------

static void *segment_base(size_t index) {
  return (void *)(hz_arena.base + (index << HZ_SEGMENT_SHIFT));
}

// Makes the rows of segments below `count` writable in a table of rows of `row_bytes`.
static bool table_commit(void *table, size_t row_bytes, size_t *committed, size_t count) {
  if (count <= *committed) return true;
  char *const start = table;
  const size_t from = hz_align_down(*committed * row_bytes, hz_page_bytes);
  const size_t to = hz_align_up(count * row_bytes, hz_page_bytes);
  if (!hz_os.commit(start + from, to - from)) return false;
  *committed = hz_min(to / row_bytes, arena.segment_count);
  return true;
}

static bool tables_commit(size_t count) {
  return table_commit(arena.kind, sizeof *arena.kind, &arena.kind_committed, count) &&
         table_commit(arena.record, sizeof *arena.record, &arena.record_committed, count) &&
         table_commit(hz_arena.runs, SEGMENT_RUNS_BYTES, &arena.runs_committed, count);
}

static void set_kind(size_t index, size_t count, enum segment_kind kind) {
  for (size_t i = index; i < index + count; i++) {
    // A large block's rest says nothing of its own: only the first segment has a record.
    __atomic_store_n(&arena.kind[i], i == index || kind != KIND_LARGE ? kind : KIND_LARGE_REST,
                     __ATOMIC_RELEASE);
  }
  if (kind == KIND_NONE) arena.first_free = hz_min(arena.first_free, index);
  else __atomic_store_n(&arena.top, hz_max(arena.top, index + count), __ATOMIC_RELAXED);
}

static uint8_t kind_of(size_t index) {
  return __atomic_load_n(&arena.kind[index], __ATOMIC_ACQUIRE);
}

// The address space of free segments becomes ours, where the range is not reserved as a whole.
static bool claim_segments(size_t index, size_t count) {
  return arena.reserved || hz_os.claim(segment_base(index), count << HZ_SEGMENT_SHIFT);
}

// Takes the memory of segments, and the address space too where it is not reserved as a whole.
// Without the lock: the segments are still marked as taken. *still_reserved: their addresses are
// ours yet; if the reservation has ended once the lock is taken again, they must be abandoned too.
// False: the kernel keeps them as they are.
static bool release_segments(size_t index, size_t count, bool *still_reserved) {
  const size_t bytes = count << HZ_SEGMENT_SHIFT;
  *still_reserved = arena.reserved;
  return *still_reserved ? hz_os.decommit(segment_base(index), bytes)
                         : hz_os.abandon(segment_base(index), bytes);
}

static void abandon_segments(size_t index, size_t count) {
  if (!arena.reserved) hz_os.abandon(segment_base(index), count << HZ_SEGMENT_SHIFT);
}

// The first of `count` free segments in a row at or after `from`; segment_count: none.
static size_t find_segments(size_t from, size_t count) {
  size_t start = from;
  for (size_t i = start; start + count <= arena.segment_count;) {
    if (i == start + count || i >= arena.top) return start;
    if (kind_of(i) != KIND_NONE) i = start = i + 1;
    else i++;
  }
  return arena.segment_count;
}

// Free segments that are now ours, not committed, kind not yet set; segment_count: none.
static size_t take_segments_locked(size_t count) {
  while (arena.first_free < arena.top && kind_of(arena.first_free) != KIND_NONE) arena.first_free++;
  size_t index = arena.first_free;
  // A claim fails where somebody else has mapped something, or because the limit is reached:
  // growing steps get past the one and end soon in the other.
  for (size_t step = count;; step *= 2) {
    index = find_segments(index, count);
    if (index >= arena.segment_count || !tables_commit(index + count)) return arena.segment_count;
    if (claim_segments(index, count)) return index;
    index += step;
  }
}

static struct hz_segment *segment_record(void) {
  struct hz_segment *s = arena.spare;
  if (s != NULL) arena.spare = s->next;
  else s = hz_meta_take(sizeof *s);
  if (s != NULL) memset(s, 0, sizeof *s);
  return s;
}

static struct hz_segment *segment_open(void) {
  struct hz_segment *s = segment_record();
  if (s == NULL) return NULL;
  const size_t index = take_segments_locked(1);
  if (index >= arena.segment_count || !hz_os.commit(segment_base(index), HZ_SEGMENT_BYTES)) {
    if (index < arena.segment_count) abandon_segments(index, 1);
    s->next = arena.spare;
    arena.spare = s;
    hz_count(HZ_COUNT_os_failures, 1);
    return NULL;
  }
  hz_count(HZ_COUNT_committed, HZ_SEGMENT_BYTES);
  s->index = (uint32_t)index;
  s->bucket = -1;
  s->free = arena.whole;
  __atomic_store_n(&arena.record[index], s, __ATOMIC_RELEASE);
  set_kind(index, 1, KIND_LINE);
  arena.segments_in_use++;
  bucket_update(s);
  return s;
}

// ---- Runs --------------------------------------------------------------------------------------

static struct hz_run *runs_of(const struct hz_segment *s) {
  return &hz_arena.runs[(size_t)s->index * HZ_SEGMENT_SLABS];
}

static struct hz_run *run_in(struct hz_segment *s, unsigned slabs, unsigned align_slabs) {
  // Slabs that have pages already come first: they cost no fault, and others stay untouched.
  uint64_t starts = aligned_starts(s->dirty, slabs, align_slabs);
  if (starts == 0) starts = aligned_starts(s->free, slabs, align_slabs);
  if (starts == 0) return NULL;
  const unsigned first = (unsigned)__builtin_ctzll(starts);
  const uint64_t bits = ones(slabs) << first;
  struct hz_run *run = &runs_of(s)[first];
  run->zero = (s->dirty & bits) == 0;
  run->slabs = (uint8_t)slabs;
  for (unsigned i = 0; i < slabs; i++) run[i].lead = (uint8_t)first;
  s->free &= ~bits;
  set_dirty(s, s->dirty & ~bits);
  bucket_update(s);
  arena.run_slabs += slabs;
  return run;
}

static struct hz_run *take_locked(unsigned slabs, unsigned align_slabs) {
  const unsigned lowest = hz_log2_floor(slabs);
  for (unsigned b = lowest; b < BUCKETS; b++) {
    int tries = BUCKET_TRIES;
    for (struct hz_segment *s = arena.buckets[b]; s != NULL && tries-- > 0; s = s->next) {
      struct hz_run *run = run_in(s, slabs, align_slabs);
      if (run != NULL) return run;
    }
  }
  struct hz_segment *s = segment_open();
  return s == NULL ? NULL : run_in(s, slabs, align_slabs);
}

struct hz_run *hz_arena_take_list(unsigned slabs, size_t align, unsigned count) {
  HZ_ASSERT(slabs >= 1 && hz_arena_run_fits((size_t)slabs << HZ_SLAB_SHIFT, align));
  const unsigned align_slabs = align <= HZ_SLAB_BYTES ? 1 : (unsigned)(align >> HZ_SLAB_SHIFT);
  struct hz_run *list = NULL, **end = &list;
  hz_lock(&arena.lock);
  for (; count != 0 && (*end = take_locked(slabs, align_slabs)) != NULL; count--)
    end = &(*end)->next;
  hz_unlock(&arena.lock);
  *end = NULL;
  return list;
}

struct hz_run *hz_arena_take(unsigned slabs, size_t align) {
  return hz_arena_take_list(slabs, align, 1);
}

static struct hz_segment *segment_of_run(const struct hz_run *run) {
  return arena.record[(size_t)(run - hz_arena.runs) / HZ_SEGMENT_SLABS];
}

static void give_bits(struct hz_segment *s, uint64_t bits) {
  s->free |= bits;
  set_dirty(s, s->dirty | bits);
  bucket_update(s);
  arena.run_slabs -= (uint64_t)__builtin_popcountll(bits);
}

static void give_locked(struct hz_run *run) {
  struct hz_segment *s = segment_of_run(run);
  const uint64_t bits = ones(run->slabs) << run->lead;
  HZ_CHECK((s->free & bits) == 0);
  atomic_store_explicit(&run->state, HZ_RUN_NONE, memory_order_relaxed);
  give_bits(s, bits);
}

void hz_arena_give(struct hz_run *run) {
  hz_lock(&arena.lock);
  give_locked(run);
  hz_unlock(&arena.lock);
}

void hz_arena_give_list(struct hz_run *list) {
  if (list == NULL) return;
  hz_lock(&arena.lock);
  while (list != NULL) {
    struct hz_run *next = list->next;
    give_locked(list);
    list = next;
  }
  hz_unlock(&arena.lock);
}

bool hz_arena_resize(struct hz_run *run, unsigned slabs) {
  bool done = true;
  hz_lock(&arena.lock);
  struct hz_segment *s = segment_of_run(run);
  const unsigned old = run->slabs, first = run->lead;
  if (slabs < old) {
    give_bits(s, ones(old - slabs) << (first + slabs));
  } else if (slabs > old) {
    const bool inside = first + slabs <= HZ_SEGMENT_SLABS;
    const uint64_t bits = inside ? ones(slabs - old) << (first + old) : 0;
    done = inside && (s->free & bits) == bits;
    if (done) {
      for (unsigned i = old; i < slabs; i++) run[i].lead = (uint8_t)first;
      s->free &= ~bits;
      set_dirty(s, s->dirty & ~bits);
      bucket_update(s);
      arena.run_slabs += slabs - old;
    }
  }
  if (done) run->slabs = (uint8_t)slabs;
  hz_unlock(&arena.lock);
  return done;
}

struct hz_run *hz_run_of(const void *p) {
  const size_t slab = hz_slab_of(p);
  if (slab >= hz_arena.slab_count || kind_of(slab / HZ_SEGMENT_SLABS) != KIND_LINE) return NULL;
  const size_t index = slab % HZ_SEGMENT_SLABS, lead = hz_arena.runs[slab].lead;
  struct hz_run *run = &hz_arena.runs[slab - index + lead];
  // A free slab names whichever run held it last.
  if (index < lead || index - lead >= run->slabs) return NULL;
  return atomic_load_explicit(&run->state, memory_order_relaxed) == HZ_RUN_NONE ? NULL : run;
}

bool hz_arena_run_began(const void *p) {
  const size_t slab = hz_slab_of(p);
  if (slab >= hz_arena.slab_count || kind_of(slab / HZ_SEGMENT_SLABS) != KIND_LINE) return false;
  const struct hz_run *run = &hz_arena.runs[slab];
  return p == hz_run_base(run) && run->slabs != 0 && run->lead == slab % HZ_SEGMENT_SLABS &&
         atomic_load_explicit(&run->state, memory_order_relaxed) == HZ_RUN_NONE;
}

// ---- Large blocks ------------------------------------------------------------------------------

void *hz_arena_take_segments(size_t count, size_t align, void *record) {
  const size_t align_segments = hz_max(align >> HZ_SEGMENT_SHIFT, 1);
  // The base of the range is aligned to a segment, not to more: align addresses, not indices.
  const size_t slack = align_segments == 1 ? 0 : align_segments;
  void *base = NULL;
  hz_lock(&arena.lock);
  const size_t index = take_segments_locked(count + slack);
  if (index < arena.segment_count) {
    const uintptr_t at = hz_align_up((uintptr_t)segment_base(index), hz_max(align, 1));
    const size_t first = (at - hz_arena.base) >> HZ_SEGMENT_SHIFT;
    if (first != index) abandon_segments(index, first - index);
    if (first + count != index + count + slack)
      abandon_segments(first + count, index + slack - first);
    __atomic_store_n(&arena.record[first], record, __ATOMIC_RELEASE);
    set_kind(first, count, KIND_LARGE);
    arena.large_segments += count;
    base = (void *)at;
  }
  hz_unlock(&arena.lock);
  return base;
}

static size_t segment_index(const void *base) {
  return ((uintptr_t)base - hz_arena.base) >> HZ_SEGMENT_SHIFT;
}

bool hz_arena_extend_segments(void *base, size_t old_count, size_t new_count) {
  const size_t from = segment_index(base) + old_count, count = new_count - old_count;
  hz_lock(&arena.lock);
  bool done = from + count <= arena.segment_count && tables_commit(from + count) &&
              find_segments(from, count) == from && claim_segments(from, count);
  if (done) {
    for (size_t i = from; i < from + count; i++) set_kind(i, 1, KIND_LARGE_REST);
    arena.large_segments += count;
  }
  hz_unlock(&arena.lock);
  return done;
}

void hz_arena_give_segments(void *base, size_t count, bool lost) {
  const size_t index = segment_index(base);
  bool reserved = false;
  const bool gone = lost || release_segments(index, count, &reserved);
  // No map count left for the split: the pages go, the address space stays ours and committed.
  const bool clean = gone || hz_os.purge(base, count << HZ_SEGMENT_SHIFT);
  if (!gone) hz_count(HZ_COUNT_os_failures, 1);
  const bool reusable = !lost && clean && (gone || arena.reserved);
  hz_lock(&arena.lock);
  if (gone && reserved) abandon_segments(index, count);
  for (size_t i = index; i < index + count; i++) set_kind(i, 1, reusable ? KIND_NONE : KIND_LOST);
  arena.large_segments -= count;
  hz_unlock(&arena.lock);
}

void *hz_arena_large_of(const void *p, void **base) {
  const size_t slab = hz_slab_of(p);
  if (slab >= hz_arena.slab_count) return NULL;
  size_t index = slab / HZ_SEGMENT_SLABS;
  while (index > 0 && kind_of(index) == KIND_LARGE_REST) index--;
  if (kind_of(index) != KIND_LARGE) return NULL;
  *base = segment_base(index);
  return __atomic_load_n(&arena.record[index], __ATOMIC_ACQUIRE);
}

// ---- Giving back -------------------------------------------------------------------------------

// The segment's record and its place are free again.
static void segment_close(struct hz_segment *s, enum segment_kind kind) {
  arena.segments_in_use--;
  set_kind(s->index, 1, kind);
  s->next = arena.spare;
  arena.spare = s;
}

// What one purge may still do and has done.
struct purge_work {
  unsigned budget; // in calls that give back up to 256 KiB
  unsigned calls;
  uint64_t slabs;
};

// A call that gives much back takes long: the kernel frees page by page.
static void work_spend(struct purge_work *work, unsigned slabs) {
  const unsigned cost = 1 + slabs / 4;
  work->budget -= cost < work->budget ? cost : work->budget;
  work->calls++;
}

// A segment with nothing in it leaves whole: one call, and its commit charge goes too.
static void retire_locked(struct hz_segment *s, struct purge_work *work) {
  const unsigned dirty = (unsigned)__builtin_popcountll(s->dirty);
  work_spend(work, dirty);
  bucket_remove(s);
  s->free = 0;
  s->purger = __builtin_thread_pointer();
  s->purging = arena.whole;
  set_dirty(s, 0);
  // Whoever asks for the kind first reads no head that is about to go. All the blocks here are
  // free: only a bad free can ask.
  set_kind(s->index, 1, KIND_LEAVING);
  hz_unlock(&arena.lock);
  bool reserved;
  const bool gone = release_segments(s->index, 1, &reserved);
  const bool clean = gone || hz_os.purge(segment_base(s->index), HZ_SEGMENT_BYTES);
  hz_lock(&arena.lock);
  s->purging = 0;
  if (gone) {
    if (reserved) abandon_segments(s->index, 1);
    segment_close(s, KIND_NONE);
  } else { // the map count is used up: keep the segment
    set_kind(s->index, 1, KIND_LINE);
    s->free = arena.whole;
    if (!clean) set_dirty(s, arena.whole);
    bucket_update(s);
  }
  if (clean) work->slabs += dirty;
}

// The slabs of the first range of set bits.
static uint64_t first_range(uint64_t bits) {
  const unsigned first = (unsigned)__builtin_ctzll(bits);
  const uint64_t tail = ~(bits >> first);
  return ones(tail == 0 ? 64 : (unsigned)__builtin_ctzll(tail)) << first;
}

// Gives the pages of `bits` back, range by range, as far as the budget goes. Returns what the
// kernel took. Without the lock.
static uint64_t purge_ranges(const struct hz_segment *s, uint64_t bits, struct purge_work *work) {
  char *base = segment_base(s->index);
  uint64_t done = 0;
  while (bits != 0 && work->budget != 0) {
    const uint64_t range = first_range(bits);
    const unsigned slabs = (unsigned)__builtin_popcountll(range);
    bits &= ~range;
    work_spend(work, slabs);
    if (!hz_os.purge(base + ((size_t)__builtin_ctzll(range) << HZ_SLAB_SHIFT),
                     (size_t)slabs << HZ_SLAB_SHIFT))
      continue;
    done |= range;
    work->slabs += slabs;
  }
  return done;
}

// The dirty slabs of one segment that is in use.
static void purge_locked(struct hz_segment *s, struct purge_work *work) {
  const uint64_t bits = s->dirty, since_ms = s->dirty_since_ms;
  s->purger = __builtin_thread_pointer();
  s->purging |= bits; // nobody may take them meanwhile
  s->free &= ~bits;
  set_dirty(s, 0);
  bucket_update(s);
  hz_unlock(&arena.lock);
  const uint64_t done = purge_ranges(s, bits, work);
  hz_lock(&arena.lock);
  s->purging &= ~bits;
  s->free |= bits;
  // Locked memory waits for another turn; what the budget did not suffice for is next.
  if (done != bits) set_dirty(s, s->dirty | (bits & ~done));
  if (done != bits && work->budget == 0) purge_return(s, since_ms);
  bucket_update(s);
  // Meanwhile the last run came back, and its slabs went by another thread's purge.
  if (s->free == arena.whole && s->dirty == 0) retire_locked(s, work);
}

size_t hz_arena_purge(uint64_t now_ms, uint64_t idle_ms, unsigned max_calls, bool *more) {
  struct purge_work work = {.budget = max_calls};
  hz_lock(&arena.lock);
  // A segment whose pages the kernel will not take comes back to the queue: once round is enough.
  for (uint64_t n = arena.segments_in_use; n > 0 && work.budget > 0; n--) {
    struct hz_segment *s = arena.purge_oldest;
    if (s == NULL || s->dirty_since_ms + idle_ms > now_ms) break;
    if (s->free == arena.whole) retire_locked(s, &work);
    else purge_locked(s, &work);
  }
  const struct hz_segment *next = arena.purge_oldest;
  *more = next != NULL && (work.budget == 0 || next->dirty_since_ms + idle_ms <= now_ms);
  hz_unlock(&arena.lock);
  if (work.calls == 0) return 0;
  hz_count(HZ_COUNT_purged, work.slabs << HZ_SLAB_SHIFT);
  hz_count(HZ_COUNT_purge_calls, work.calls);
  return work.slabs << HZ_SLAB_SHIFT;
}

// The thread that was giving these slabs back does not exist in the child. Whether its system call
// came before the fork is unknown; committing again is right in both cases, but for a segment whose
// addresses may be somebody else's by now.
static void finish_purge_in_child(struct hz_segment *s) {
  const bool gone = !arena.reserved && s->purging == arena.whole;
  if (gone || !hz_os.commit(segment_base(s->index), HZ_SEGMENT_BYTES)) {
    if (s->purging == arena.whole) segment_close(s, KIND_LOST);
    return;
  }
  set_kind(s->index, 1, KIND_LINE);
  s->free |= s->purging;
  set_dirty(s, s->dirty | s->purging);
  s->purging = 0;
  bucket_update(s);
}

void hz_arena_fork_child(void) {
  for (size_t i = 0; i < arena.top; i++) {
    if (kind_of(i) != KIND_LINE && kind_of(i) != KIND_LEAVING) continue;
    struct hz_segment *s = arena.record[i];
    // A handler that forks out of our own system call returns to it.
    if (s->purging != 0 && s->purger != __builtin_thread_pointer()) finish_purge_in_child(s);
  }
}

void hz_arena_read_totals(struct hz_arena_totals *out) {
  hz_lock(&arena.lock);
  *out = (struct hz_arena_totals){
      .reserved_bytes = arena.reserved
                            ? arena.segment_count << HZ_SEGMENT_SHIFT
                            : (arena.segments_in_use + arena.large_segments) << HZ_SEGMENT_SHIFT,
      .committed_bytes = arena.segments_in_use << HZ_SEGMENT_SHIFT,
      .run_bytes = arena.run_slabs << HZ_SLAB_SHIFT,
      .dirty_bytes = arena.dirty_slabs << HZ_SLAB_SHIFT,
      .large_segments = arena.large_segments,
  };
  hz_unlock(&arena.lock);
}

// ---- Start and check ---------------------------------------------------------------------------

// Under RLIMIT_AS: a range of addresses, not a mapping. A page is mapped to learn where the kernel
// puts things, and the range begins far enough below that it is in nobody's way.
static void *unreserved_base(size_t bytes) {
  char *probe = hz_os.reserve(hz_page_bytes, hz_page_bytes);
  if (probe == NULL) return NULL;
  hz_os.abandon(probe, hz_page_bytes);
  const uintptr_t distance = bytes + 64 * HZ_GIB;
  if ((uintptr_t)probe <= distance) return NULL;
  return (void *)hz_align_down((uintptr_t)probe - distance, HZ_SEGMENT_BYTES);
}

static void *reserve_range(size_t *bytes) {
  const size_t limit = hz_os.address_limit();
  if (limit != 0 && limit < *bytes * 2) {
    // Large blocks round up to segments: twice the limit, and more, keeps room for that.
    *bytes = hz_min(*bytes, hz_max(hz_pow2_ceil(limit) * 4, 64 * HZ_MIB));
    return unreserved_base(*bytes);
  }
  arena.reserved = true;
  for (; *bytes >= 64 * HZ_MIB; *bytes /= 2) {
    void *base = hz_os.reserve(*bytes, HZ_SEGMENT_BYTES);
    if (base != NULL) return base;
  }
  return NULL;
}

bool hz_arena_start(size_t reserve_bytes) {
  size_t bytes = hz_align_up(hz_max(reserve_bytes, 64 * HZ_MIB), HZ_SEGMENT_BYTES);
  void *base = reserve_range(&bytes);
  if (base == NULL) return false;
  arena.segment_count = bytes >> HZ_SEGMENT_SHIFT;
  arena.whole = ~UINT64_C(0);
  const size_t kind_bytes = hz_align_up(arena.segment_count, hz_page_bytes);
  char *tables = hz_os.reserve_table(kind_bytes + arena.segment_count * sizeof *arena.record);
  hz_arena.runs = hz_os.reserve_table(arena.segment_count * SEGMENT_RUNS_BYTES);
  if (tables == NULL || hz_arena.runs == NULL) return false;
  hz_arena.kind = arena.kind = (uint8_t *)tables;
  arena.record = (void **)(tables + kind_bytes);
  hz_arena.base = (uintptr_t)base;
  hz_arena.slab_count = bytes >> HZ_SLAB_SHIFT;
  hz_arena.segment_count = arena.segment_count;
  hz_locks_register(HZ_RANK_ARENA, &arena.lock, 1, sizeof arena.lock);
  return true;
}

void hz_arena_keep_heads(void) {
  HZ_CHECK(arena.segments_in_use == 0);
  arena.whole = ~UINT64_C(1);
}

bool hz_arena_run_fits(size_t bytes, size_t align) {
  if (bytes > HZ_SEGMENT_BYTES || align > HZ_SEGMENT_BYTES) return false;
  const size_t first = (size_t)__builtin_ctzll(arena.whole) << HZ_SLAB_SHIFT;
  return hz_align_up(first, hz_max(align, 1)) + hz_max(bytes, 1) <= HZ_SEGMENT_BYTES;
}

size_t hz_arena_top(void) {
  return __atomic_load_n(&arena.top, __ATOMIC_RELAXED) * HZ_SEGMENT_SLABS;
}

// A limit below what is reserved shows in this: not even a page can be mapped.
static bool address_space_is_used_up(void) {
  void *probe = hz_os.reserve(hz_page_bytes, hz_page_bytes);
  if (probe != NULL) hz_os.abandon(probe, hz_page_bytes);
  return probe == NULL;
}

// Segments that could ever be in use from here on under the limit: it is not worth while to hold
// tables for more. Others may have mapped some of the places in between.
static size_t reachable_segments(void) {
  enum { OCCUPIED = 1024 };
  const size_t limit = hz_os.address_limit();
  if (limit == 0) return arena.segment_count;
  return hz_min(arena.segment_count, arena.top + (limit >> HZ_SEGMENT_SHIFT) + OCCUPIED);
}

// Only shrinks; what is cut off was never in use, so who still reads the old end is none the worse.
// Of the tables, that of the runs is worth giving back.
static void set_reach(size_t segments) {
  const size_t keep = hz_max(segments, arena.runs_committed);
  const size_t from = hz_align_up(keep * SEGMENT_RUNS_BYTES, hz_page_bytes);
  const size_t to = hz_align_down(arena.segment_count * SEGMENT_RUNS_BYTES, hz_page_bytes);
  if (from < to) hz_os.abandon((char *)hz_arena.runs + from, to - from);
  arena.segment_count = segments;
  __atomic_store_n(&hz_arena.segment_count, segments, __ATOMIC_RELAXED);
  __atomic_store_n(&hz_arena.slab_count, segments * HZ_SEGMENT_SLABS, __ATOMIC_RELAXED);
}

// Neighbours in one call: there may be many where a large block was asked for in vain.
static void abandon_unused(void) {
  for (size_t i = 0; i < arena.segment_count; i++) {
    size_t end = i;
    while (end < arena.segment_count && (end >= arena.top || kind_of(end) == KIND_NONE)) end++;
    if (end > i) abandon_segments(i, end - i);
    i = end;
  }
}

bool hz_arena_concede(void) {
  if (!arena.reserved || !address_space_is_used_up()) return false;
  hz_lock(&arena.lock);
  const bool concede = arena.reserved;
  if (concede) {
    arena.reserved = false;
    abandon_unused();
    set_reach(reachable_segments());
  }
  hz_unlock(&arena.lock);
  return concede;
}

void *hz_arena_base(void) {
  return (void *)hz_arena.base;
}
size_t hz_arena_bytes(void) {
  return hz_arena.slab_count << HZ_SLAB_SHIFT;
}

static const char *check_segment(const struct hz_segment *s, uint64_t *dirty) {
  if ((s->free & ~arena.whole) != 0) return "arena: a segment's head is free";
  if ((s->dirty & ~s->free) != 0) return "arena: a slab is dirty and not free";
  if (s->bucket != bucket_of(s->free)) return "arena: a segment is in the wrong bucket";
  if (s->queued != (s->dirty != 0)) return "arena: the purge queue disagrees with the dirty word";
  *dirty += (uint64_t)__builtin_popcountll(s->dirty);
  for (unsigned i = 0; i < HZ_SEGMENT_SLABS;) {
    const struct hz_run *run = &runs_of(s)[i];
    if ((arena.whole >> i & 1) == 0) { // the head
      i++;
      continue;
    }
    const bool taken = ((s->free | s->purging) >> i & 1) == 0;
    if (!taken) {
      if (run->state != HZ_RUN_NONE) return "arena: a free slab has a run's state";
      i++;
      continue;
    }
    if (run->lead != i || run->slabs == 0 || i + run->slabs > HZ_SEGMENT_SLABS)
      return "arena: a taken slab does not begin a run";
    if (((s->free | s->purging) & (ones(run->slabs) << i)) != 0)
      return "arena: a run holds a free slab";
    for (unsigned k = 1; k < run->slabs; k++)
      if (run[k].lead != i) return "arena: a slab of a run names another lead";
    i += run->slabs;
  }
  return NULL;
}

const char *hz_arena_check(void) {
  const char *broken = NULL;
  uint64_t dirty = 0, segments = 0;
  hz_lock(&arena.lock);
  for (size_t i = 0; i < arena.top && broken == NULL; i++) {
    if (kind_of(i) != KIND_LINE && kind_of(i) != KIND_LEAVING) continue;
    segments++;
    broken = check_segment(arena.record[i], &dirty);
  }
  if (broken == NULL && dirty != arena.dirty_slabs) broken = "arena: dirty slabs are miscounted";
  if (broken == NULL && segments != arena.segments_in_use)
    broken = "arena: segments are miscounted";
  hz_unlock(&arena.lock);
  return broken;
}
