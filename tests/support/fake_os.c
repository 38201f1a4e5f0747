// The machine of tests/support/fake_os.h: a byte of state per page, in two levels, over the real
// kernel.
#include "tests/support/fake_os.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/os.h"
#include "tests/support/check.h"

enum page_state { PAGE_NONE, PAGE_RESERVED, PAGE_TABLE, PAGE_COMMITTED };

enum {
  PAGE_SHIFT = 12, // states are kept per 4 KiB, whatever the page size
  LEAF_SHIFT = 30, // one leaf of states per GiB
  LEAF_PAGES = 1 << (LEAF_SHIFT - PAGE_SHIFT),
  LEAVES = 1 << (47 - LEAF_SHIFT),
};

static struct hz_os real;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *leaves[LEAVES];
static size_t committed_bytes, mapped_bytes, address_bytes;
static size_t address_limit, commit_limit;
static const char *refused_at; // the last range that decommit refused: it may be purged instead
static size_t refused_bytes;
static _Atomic uint64_t clock_ms;
static void (*interrupt)(enum fake_call, void *, size_t);
static __thread bool interrupted;

static struct { uint64_t calls, fail_at, fail_from; } plan[FAKE_CALL_KINDS];

// ---- The map of pages (under the mutex) --------------------------------------------------------

static uint8_t *state_of(const void *at) {
  const uintptr_t address = (uintptr_t)at;
  uint8_t **leaf = &leaves[address >> LEAF_SHIFT];
  if (*leaf == NULL) {
    *leaf = mmap(NULL, LEAF_PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(*leaf != MAP_FAILED, "fake_os: no memory for its map of pages");
  }
  return &(*leaf)[address >> PAGE_SHIFT & (LEAF_PAGES - 1)];
}

static unsigned allowed(enum page_state state) {
  return 1u << state;
}

static void expect(const char *call, const char *at, size_t bytes, unsigned states) {
  CHECK(bytes != 0, "fake_os: %s of no bytes at %p", call, (const void *)at);
  CHECK((uintptr_t)at % hz_page_bytes == 0 && bytes % hz_page_bytes == 0,
        "fake_os: %s of %p, %zu bytes: not whole pages", call, (const void *)at, bytes);
  for (size_t i = 0; i < bytes; i += (size_t)1 << PAGE_SHIFT)
    CHECK((states >> *state_of(at + i) & 1) != 0,
          "fake_os: %s of %p, %zu bytes: the page at offset %zu is in state %u", call,
          (const void *)at, bytes, i, *state_of(at + i));
}

static void mark(const char *at, size_t bytes, enum page_state state) {
  for (size_t i = 0; i < bytes; i += (size_t)1 << PAGE_SHIFT) {
    uint8_t *page = state_of(at + i);
    if (*page == PAGE_COMMITTED) committed_bytes -= (size_t)1 << PAGE_SHIFT;
    if (state == PAGE_COMMITTED) committed_bytes += (size_t)1 << PAGE_SHIFT;
    *page = (uint8_t)state;
  }
}

static size_t not_committed(const char *at, size_t bytes) {
  size_t count = 0;
  for (size_t i = 0; i < bytes; i += (size_t)1 << PAGE_SHIFT)
    count += *state_of(at + i) != PAGE_COMMITTED;
  return count << PAGE_SHIFT;
}

// ---- What every call begins with ---------------------------------------------------------------

// Takes the mutex. False: this call is to fail.
static bool begin(enum fake_call call, void *at, size_t bytes) {
  if (interrupt != NULL && !interrupted) {
    interrupted = true;
    interrupt(call, at, bytes);
    interrupted = false;
  }
  pthread_mutex_lock(&mutex);
  const uint64_t n = ++plan[call].calls;
  return n != plan[call].fail_at && (plan[call].fail_from == 0 || n < plan[call].fail_from);
}

static bool end(bool done) {
  pthread_mutex_unlock(&mutex);
  return done;
}

static void *end_with(void *p) {
  pthread_mutex_unlock(&mutex);
  return p;
}

static bool address_room(size_t bytes) {
  return address_limit == 0 || address_bytes + bytes <= address_limit;
}

static bool commit_room(size_t bytes) {
  return commit_limit == 0 || committed_bytes + mapped_bytes + bytes <= commit_limit;
}

// ---- The calls ---------------------------------------------------------------------------------

static void *fake_reserve(size_t bytes, size_t align) {
  CHECK(hz_is_pow2(align) && align >= hz_page_bytes, "fake_os: reserve aligned to %zu", align);
  void *p =
      begin(FAKE_RESERVE, NULL, bytes) && address_room(bytes) ? real.reserve(bytes, align) : NULL;
  if (p == NULL) return end_with(NULL);
  CHECK((uintptr_t)p % align == 0, "the kernel's half: reserve of %zu bytes is not aligned", bytes);
  mark(p, bytes, PAGE_RESERVED);
  address_bytes += bytes;
  return end_with(p);
}

static bool fake_claim(void *at, size_t bytes) {
  bool done = begin(FAKE_CLAIM, at, bytes);
  // Only after a refused move may somebody not know whether a place is still ours.
  const bool unsure = at == refused_at && bytes == refused_bytes;
  const unsigned ours = allowed(PAGE_RESERVED) | allowed(PAGE_COMMITTED);
  expect("claim", at, bytes, allowed(PAGE_NONE) | (unsure ? ours : 0));
  done = done && address_room(bytes) && real.claim(at, bytes);
  if (!done) return end(false);
  mark(at, bytes, PAGE_RESERVED);
  address_bytes += bytes;
  return end(true);
}

static bool fake_abandon(void *at, size_t bytes) {
  bool done = begin(FAKE_ABANDON, at, bytes);
  expect("abandon", at, bytes,
         allowed(PAGE_RESERVED) | allowed(PAGE_COMMITTED) | allowed(PAGE_TABLE));
  done = done && real.abandon(at, bytes);
  if (!done) return end(false);
  mark(at, bytes, PAGE_NONE);
  address_bytes -= bytes;
  return end(true);
}

static void *fake_reserve_table(size_t bytes) {
  void *p = begin(FAKE_RESERVE_TABLE, NULL, bytes) && address_room(bytes)
                ? real.reserve_table(bytes)
                : NULL;
  if (p == NULL) return end_with(NULL);
  bytes = hz_align_up(bytes, hz_page_bytes);
  mark(p, bytes, PAGE_TABLE);
  address_bytes += bytes;
  return end_with(p);
}

static bool fake_commit(void *at, size_t bytes) {
  bool done = begin(FAKE_COMMIT, at, bytes);
  expect("commit", at, bytes,
         allowed(PAGE_RESERVED) | allowed(PAGE_TABLE) | allowed(PAGE_COMMITTED));
  done = done && commit_room(not_committed(at, bytes)) && real.commit(at, bytes);
  if (done) mark(at, bytes, PAGE_COMMITTED);
  return end(done);
}

static bool fake_decommit(void *at, size_t bytes) {
  bool done = begin(FAKE_DECOMMIT, at, bytes);
  expect("decommit", at, bytes, allowed(PAGE_RESERVED) | allowed(PAGE_COMMITTED));
  done = done && real.decommit(at, bytes);
  if (done) {
    mark(at, bytes, PAGE_RESERVED);
  } else {
    refused_at = at;
    refused_bytes = bytes;
  }
  return end(done);
}

static bool fake_purge(void *at, size_t bytes) {
  const bool done = begin(FAKE_PURGE, at, bytes);
  const bool instead = at == refused_at && bytes == refused_bytes;
  expect("purge", at, bytes, allowed(PAGE_COMMITTED) | (instead ? allowed(PAGE_RESERVED) : 0));
  return end(done && real.purge(at, bytes));
}

static bool fake_move(void *from, size_t from_bytes, void *to, size_t to_bytes) {
  bool done = begin(FAKE_MOVE, from, from_bytes);
  expect("move from", from, from_bytes, allowed(PAGE_COMMITTED));
  // What is committed there belongs to nobody: a decommit that was refused. It is replaced.
  expect("move to", to, to_bytes, allowed(PAGE_RESERVED) | allowed(PAGE_COMMITTED));
  done = done && commit_room(to_bytes - from_bytes) && real.move(from, from_bytes, to, to_bytes);
  if (!done) return end(false);
  mark(from, from_bytes, PAGE_NONE);
  mark(to, to_bytes, PAGE_COMMITTED);
  address_bytes -= from_bytes;
  return end(true);
}

static void *fake_map(size_t bytes) {
  void *p = begin(FAKE_MAP, NULL, bytes) && address_room(bytes) && commit_room(bytes)
                ? real.map(bytes)
                : NULL;
  if (p != NULL) {
    address_bytes += bytes;
    mapped_bytes += bytes;
  }
  return end_with(p);
}

static uint64_t fake_now_ms(void) {
  return atomic_load_explicit(&clock_ms, memory_order_relaxed);
}

static size_t fake_address_limit(void) {
  return address_limit;
}

// ---- The test's side ---------------------------------------------------------------------------

static void lock_for_fork(void) {
  pthread_mutex_lock(&mutex);
}
static void unlock_after_fork(void) {
  pthread_mutex_unlock(&mutex);
}

void fake_os_install(void) {
  real = hz_os;
  CHECK(pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork) == 0, "no handlers");
  fake_os_clock(1000);
  hz_os = (struct hz_os){
      .reserve = fake_reserve,
      .claim = fake_claim,
      .abandon = fake_abandon,
      .reserve_table = fake_reserve_table,
      .commit = fake_commit,
      .decommit = fake_decommit,
      .purge = fake_purge,
      .move = fake_move,
      .map = fake_map,
      .now_ms = fake_now_ms,
      .address_limit = fake_address_limit,
  };
}

void fake_os_fail_nth(enum fake_call call, uint64_t n) {
  pthread_mutex_lock(&mutex);
  plan[call].fail_at = n == 0 ? 0 : plan[call].calls + n;
  pthread_mutex_unlock(&mutex);
}

void fake_os_fail_from(enum fake_call call, uint64_t n) {
  pthread_mutex_lock(&mutex);
  plan[call].fail_from = n == 0 ? 0 : plan[call].calls + n;
  pthread_mutex_unlock(&mutex);
}

bool fake_os_failed(enum fake_call call) {
  pthread_mutex_lock(&mutex);
  const bool failed = plan[call].fail_at != 0 && plan[call].calls >= plan[call].fail_at;
  pthread_mutex_unlock(&mutex);
  return failed;
}

uint64_t fake_os_calls(enum fake_call call) {
  pthread_mutex_lock(&mutex);
  const uint64_t calls = plan[call].calls;
  pthread_mutex_unlock(&mutex);
  return calls;
}

void fake_os_clock(uint64_t now_ms) {
  atomic_store_explicit(&clock_ms, now_ms, memory_order_relaxed);
}

void fake_os_clock_add(uint64_t ms) {
  atomic_fetch_add_explicit(&clock_ms, ms, memory_order_relaxed);
}

void fake_os_address_limit(size_t bytes) {
  address_limit = bytes;
}

void fake_os_commit_limit(size_t bytes) {
  pthread_mutex_lock(&mutex);
  commit_limit = bytes;
  pthread_mutex_unlock(&mutex);
}

size_t fake_os_committed(void) {
  pthread_mutex_lock(&mutex);
  const size_t bytes = committed_bytes;
  pthread_mutex_unlock(&mutex);
  return bytes;
}

size_t fake_os_address_bytes(void) {
  pthread_mutex_lock(&mutex);
  const size_t bytes = address_bytes;
  pthread_mutex_unlock(&mutex);
  return bytes;
}

void fake_os_interrupt(void (*hook)(enum fake_call, void *, size_t)) {
  interrupt = hook;
}
