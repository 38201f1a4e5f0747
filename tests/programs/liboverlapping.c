// A broken allocator, to be preloaded: about every 1000th block begins within another live one, by
// turns in its last 16 bytes and, if it has at least 256, in its middle. In all else it is right,
// so that nothing but the contents tells. What libc keeps per thread (arrays from calloc) is
// spared, so that the program lives to tell.
//
// Blocks are cut from one large range of addresses, exactly as long as asked for (in granules of 16
// bytes), and reused by exact size; those with an alignment are powers of two. What is known of a
// block stands in tables beside the range, not in it: broken blocks do not break the allocator.
#define _GNU_SOURCE 1
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_BYTES ((size_t)32 << 30)

enum {
  GRANULE = 16,
  LISTED_MOST = 1 << 16,        // granules; larger blocks have one size per power of two
  LISTS = LISTED_MOST + 1 + 64, // exact sizes, then powers of two
  BROKEN_EVERY = 1000,          // calls
  HALVED_LEAST = 256,           // bytes of a block in whose middle another one may begin
};

// By granule: bytes of a live block (0: none begins there), its list, the next free block.
struct record {
  size_t bytes;
  uint32_t list, next;
};

static atomic_flag lock = ATOMIC_FLAG_INIT;
static char *range;
static struct record *records;
static size_t top;                 // granules cut from the range; guarded by lock, like all below
static uint32_t free_first[LISTS]; // granule of the first free block; 0: none
static size_t calls;               // since the last broken block
static size_t last;                // granule of the block cut last
static bool halves;                // the next broken block begins in the middle, not at the end

static void enter(void) {
  while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) sched_yield();
}
static void leave(void) {
  atomic_flag_clear_explicit(&lock, memory_order_release);
}

static void *map(size_t bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
              0);
}

static bool start_locked(void) {
  if (range != NULL) return true;
  char *memory = map(RANGE_BYTES);
  void *table = map(RANGE_BYTES / GRANULE * sizeof(struct record));
  if (memory == MAP_FAILED || table == MAP_FAILED) return false;
  records = table;
  // From 4 MiB on, so that granule 0 stands for none and alignments are those of the addresses.
  size_t step = (size_t)4 << 20;
  range = memory + (step - (uintptr_t)memory % step);
  top = step / GRANULE;
  return true;
}

static size_t in_granules(size_t bytes) {
  return bytes == 0 ? 1 : (bytes + GRANULE - 1) / GRANULE;
}

static unsigned log2_up(size_t n) {
  return n <= 1 ? 0 : 64 - (unsigned)__builtin_clzl(n - 1);
}

// Where a broken block begins: in the block cut last, which is live.
static size_t choose_broken_locked(void) {
  bool halved = halves && records[last].bytes >= HALVED_LEAST;
  halves = !halves;
  calls = 0;
  return halved ? last + in_granules(records[last].bytes) / 2 : top - 1;
}

// Cuts a block at the top; with `broken` in the block cut last, if that is live. `spared`: no later
// block may reach into it.
static size_t cut_locked(size_t granules, size_t alignment, bool broken, bool spared) {
  size_t begin = (top + alignment - 1) & ~(alignment - 1);
  bool neighbour_lives =
      last != 0 && records[last].bytes > GRANULE && last + in_granules(records[last].bytes) == top;
  if (broken && neighbour_lives) begin = choose_broken_locked();
  if ((begin + granules) * GRANULE > RANGE_BYTES - ((size_t)8 << 20)) return 0;
  if (begin + granules > top) top = begin + granules; // it may end within the other one
  last = spared ? 0 : begin;
  return begin;
}

// alignment: in granules. Returns the block's first granule, 0 if there is no memory.
static size_t take_locked(size_t bytes, size_t alignment, bool spared) {
  size_t granules = in_granules(bytes);
  if (!start_locked() || bytes > RANGE_BYTES / 2) return 0;
  bool plain = alignment == 1 && !spared;
  uint32_t list = (uint32_t)granules;
  if (alignment > 1 || granules > LISTED_MOST) {
    unsigned power = log2_up(granules > alignment ? granules : alignment);
    list = LISTED_MOST + 1 + power;
    granules = alignment = (size_t)1 << power;
  }
  calls++;
  // The block before a broken one is cut too. Reused blocks may be broken ones.
  bool cut = spared || (plain && calls + 1 >= BROKEN_EVERY);
  size_t found = free_first[list];
  if (found != 0 && !cut) {
    free_first[list] = records[found].next;
  } else {
    found = cut_locked(granules, alignment, plain && calls >= BROKEN_EVERY, spared);
  }
  if (found == 0) return 0;
  records[found] = (struct record){.bytes = bytes == 0 ? 1 : bytes, .list = list};
  return found;
}

static void *take(size_t bytes, size_t alignment, bool spared) {
  enter();
  size_t found = take_locked(bytes, alignment <= GRANULE ? 1 : alignment / GRANULE, spared);
  leave();
  if (found != 0) return range + found * GRANULE;
  errno = ENOMEM;
  return NULL;
}

static struct record *record_of(const void *p) {
  return &records[(size_t)((const char *)p - range) / GRANULE];
}

void *malloc(size_t bytes) {
  return take(bytes, GRANULE, false);
}

void free(void *p) {
  if (p == NULL) return;
  enter();
  struct record *r = record_of(p);
  if (r->bytes != 0) {
    r->bytes = 0;
    r->next = free_first[r->list];
    free_first[r->list] = (uint32_t)(r - records);
  }
  leave();
}

void *calloc(size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return NULL;
  }
  void *p = take(all, GRANULE, count > 1);
  return p == NULL ? NULL : memset(p, 0, all);
}

size_t malloc_usable_size(void *p) {
  return p == NULL ? 0 : record_of(p)->bytes;
}

void *realloc(void *p, size_t bytes) {
  size_t old = malloc_usable_size(p);
  void *fresh = take(bytes, GRANULE, false);
  if (fresh == NULL || p == NULL) return fresh;
  memcpy(fresh, p, old < bytes ? old : bytes);
  free(p);
  return fresh;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return take(bytes, alignment, false);
}

void *memalign(size_t alignment, size_t bytes) {
  return take(bytes, alignment, false);
}

int posix_memalign(void **result, size_t alignment, size_t bytes) {
  void *p = take(bytes, alignment, false);
  if (p == NULL) return ENOMEM;
  *result = p;
  return 0;
}
