// Counting calls: see dispatch/exact.h.
//
// A block counts in the class of its usable size, so that what is allocated in a class is freed in
// it. Who allocated a block stands in a shadow of the arena: a thread number for each 16 bytes, of
// which only those at the start of blocks are used. It is reserved whole and made writable piece by
// piece, one piece per segment, so it costs what the program's own blocks make of it.
#include "dispatch/exact.h"

#include "core/arena.h"
#include "core/os.h"

enum {
  STRIPES = 16, // threads count apart, so that counting does not make them wait for each other
  SHADOW_PIECE_BYTES = HZ_SEGMENT_BYTES / HZ_MIN_ALIGN * sizeof(uint32_t),
};

struct counts {
  _Atomic uint64_t allocs, frees, remote_frees;
};

static alignas(HZ_CACHE_LINE) struct counts counts[STRIPES][HZ_EXACT_ROWS];

static struct hz_table inner; // the line's

static _Atomic uint32_t last_thread;
static _Thread_local uint32_t thread_number __attribute__((tls_model("initial-exec")));

static uint32_t this_thread(void) {
  if (hz_unlikely(thread_number == 0)) thread_number = atomic_fetch_add(&last_thread, 1) + 1;
  return thread_number;
}

static unsigned row_of(size_t usable) {
  if (usable <= HZ_CLASS_MAX_BYTES) return hz_class_of(usable);
  return usable <= HZ_SEGMENT_BYTES ? HZ_EXACT_RUN : HZ_EXACT_LARGE;
}

static struct counts *counts_of(size_t usable) {
  return &counts[this_thread() % STRIPES][row_of(usable)];
}

static void add_one(_Atomic uint64_t *count) {
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

// ---- The shadow ---------------------------------------------------------------------------------

static _Atomic uint32_t *shadow;      // NULL: none
static _Atomic uint8_t *shadow_ready; // per piece: writable
static _Atomic bool shadow_failed;

static void shadow_start(void) {
  const size_t bytes = hz_arena_bytes();
  shadow = hz_os.reserve_table(bytes / HZ_MIN_ALIGN * sizeof(uint32_t));
  shadow_ready = hz_os.map(bytes / HZ_SEGMENT_BYTES + 1);
  if (shadow == NULL || shadow_ready == NULL) atomic_store(&shadow_failed, true);
}

// Who allocated p. NULL: not in the arena, or no memory for its piece.
static _Atomic uint32_t *owner_of(const void *p) {
  if (atomic_load_explicit(&shadow_failed, memory_order_relaxed)) return NULL;
  const size_t offset = (uintptr_t)p - (uintptr_t)hz_arena_base();
  if (offset >= hz_arena_bytes()) return NULL;
  const size_t piece = offset / HZ_SEGMENT_BYTES;
  if (hz_unlikely(shadow_ready[piece] == 0)) {
    // Two threads may both do this: what is written stays.
    if (!hz_os.commit((char *)shadow + piece * SHADOW_PIECE_BYTES, SHADOW_PIECE_BYTES)) {
      atomic_store(&shadow_failed, true);
      return NULL;
    }
    shadow_ready[piece] = 1;
  }
  return &shadow[offset / HZ_MIN_ALIGN];
}

// ---- The table ----------------------------------------------------------------------------------

static void *note_alloc(void *p) {
  if (hz_unlikely(p == NULL)) return NULL;
  add_one(&counts_of(inner.usable_size(p))->allocs);
  _Atomic uint32_t *owner = owner_of(p);
  if (owner != NULL) atomic_store_explicit(owner, this_thread(), memory_order_relaxed);
  return p;
}

static bool is_remote(const void *p) {
  const _Atomic uint32_t *owner = owner_of(p);
  return owner != NULL && *owner != 0 && *owner != this_thread();
}

static void note_free(size_t usable, bool remote) {
  struct counts *count = counts_of(usable);
  add_one(&count->frees);
  if (remote) add_one(&count->remote_frees);
}

static void *exact_alloc(size_t bytes) {
  return note_alloc(inner.alloc(bytes));
}

static void *exact_alloc_zeroed(size_t bytes) {
  return note_alloc(inner.alloc_zeroed(bytes));
}

static void *exact_alloc_aligned(size_t align, size_t bytes) {
  return note_alloc(inner.alloc_aligned(align, bytes));
}

static void exact_release(void *p) {
  if (p == NULL) return;
  const size_t usable = inner.usable_size(p);
  if (usable == 0) return; // no block of ours: reported by now
  note_free(usable, is_remote(p));
  inner.release(p);
}

static size_t exact_usable_size(void *p) {
  return inner.usable_size(p);
}

// A block that moved, or whose usable size changed, was freed and allocated again.
static void *exact_resize(void *p, size_t bytes) {
  const size_t old = inner.usable_size(p);
  const bool remote = is_remote(p); // afterwards its place may be another thread's
  void *q = inner.resize(p, bytes);
  if (q == NULL || (q == p && inner.usable_size(q) == old)) return q;
  note_free(old, remote);
  return note_alloc(q);
}

const struct hz_table *hz_exact_start(const struct hz_table *line) {
  static const struct hz_table wrapped = {
      .alloc = exact_alloc,
      .alloc_zeroed = exact_alloc_zeroed,
      .alloc_aligned = exact_alloc_aligned,
      .release = exact_release,
      .usable_size = exact_usable_size,
      .resize = exact_resize,
  };
  inner = *line;
  shadow_start();
  return &wrapped;
}

// ---- Reading ------------------------------------------------------------------------------------

void hz_exact_read(struct hz_exact_class rows[HZ_EXACT_ROWS]) {
  for (unsigned row = 0; row < HZ_EXACT_ROWS; row++) {
    rows[row] = (struct hz_exact_class){.bytes = row < HZ_CLASS_COUNT  ? hz_class_bytes(row)
                                                 : row == HZ_EXACT_RUN ? (size_t)HZ_SEGMENT_BYTES
                                                                       : UINT64_MAX};
    for (unsigned stripe = 0; stripe < STRIPES; stripe++) {
      rows[row].allocs += counts[stripe][row].allocs;
      rows[row].frees += counts[stripe][row].frees;
      rows[row].remote_frees += counts[stripe][row].remote_frees;
    }
  }
}

bool hz_exact_knows_remote(void) {
  return !atomic_load(&shadow_failed);
}

void hz_exact_reset(void) {
  for (unsigned stripe = 0; stripe < STRIPES; stripe++)
    for (unsigned row = 0; row < HZ_EXACT_ROWS; row++)
      counts[stripe][row] = (struct counts){0, 0, 0};
}
