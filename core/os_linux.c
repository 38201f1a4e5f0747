// Linux behind core/os.h. After start it makes these system calls and no others: mmap, munmap,
// mprotect, madvise, mremap, futex (core/lock.c), write (core/log.c), clock_gettime (vDSO).
#include "core/os.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "core/misuse.h"

size_t hz_page_bytes = 4096;

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 // linux/mman.h since 4.17; older kernels take it as a hint
#endif

static void *map_at(void *at, size_t bytes, int protection, int flags) {
  const int saved = errno;
  void *p = mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  errno = saved;
  return p == MAP_FAILED ? NULL : p;
}

static bool unmap(void *at, size_t bytes) {
  const int saved = errno;
  const bool done = munmap(at, bytes) == 0;
  errno = saved;
  return done;
}

static void *linux_reserve(size_t bytes, size_t align) {
  if (bytes + align < bytes) return NULL;
  char *p = map_at(NULL, bytes + align, PROT_NONE, 0);
  if (p == NULL) return NULL;
  const size_t front = hz_align_up((uintptr_t)p, align) - (uintptr_t)p;
  if (front != 0) unmap(p, front);
  if (front != align) unmap(p + front + bytes, align - front);
  return p + front;
}

static bool linux_claim(void *at, size_t bytes) {
  void *p = map_at(at, bytes, PROT_NONE, MAP_FIXED_NOREPLACE);
  if (p == at) return true;
  if (p != NULL) unmap(p, bytes); // an old kernel went elsewhere
  return false;
}

static void *linux_reserve_table(size_t bytes) {
  return map_at(NULL, bytes, PROT_READ, 0);
}

static bool linux_commit(void *at, size_t bytes) {
  const int saved = errno;
  const bool done = mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
  errno = saved;
  return done;
}

static bool linux_decommit(void *at, size_t bytes) {
  return map_at(at, bytes, PROT_NONE, MAP_FIXED) != NULL;
}

static bool linux_purge(void *at, size_t bytes) {
  const int saved = errno;
  const bool done = madvise(at, bytes, MADV_DONTNEED) == 0;
  errno = saved;
  return done;
}

// In two steps, because a refused MREMAP_FIXED may have unmapped its target (before Linux 6.17).
// The first goes where the kernel likes and changes nothing when it is refused; from there on it is
// one mapping of the right length, and moving that is refused for no reason but the number of
// mappings.
static bool linux_move(void *from, size_t from_bytes, void *to, size_t to_bytes) {
  const int saved = errno;
  void *between = mremap(from, from_bytes, to_bytes, MREMAP_MAYMOVE);
  bool done = between != MAP_FAILED;
  if (done && mremap(between, to_bytes, to_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
    const void *back = mremap(between, to_bytes, from_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from);
    HZ_CHECK(back == from);
    done = false;
  }
  errno = saved;
  return done;
}

static void *linux_map(size_t bytes) {
  return map_at(NULL, bytes, PROT_READ | PROT_WRITE, 0);
}

static uint64_t linux_now_ms(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static size_t linux_address_limit(void) {
  struct rlimit limit;
  const int saved = errno;
  const bool finite = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  errno = saved;
  return finite ? (size_t)limit.rlim_cur : 0;
}

struct hz_os hz_os = {
    .reserve = linux_reserve,
    .claim = linux_claim,
    .abandon = unmap,
    .reserve_table = linux_reserve_table,
    .commit = linux_commit,
    .decommit = linux_decommit,
    .purge = linux_purge,
    .move = linux_move,
    .map = linux_map,
    .now_ms = linux_now_ms,
    .address_limit = linux_address_limit,
};

void hz_os_start(void) {
  const unsigned long page = getauxval(AT_PAGESZ);
  if (hz_is_pow2(page)) hz_page_bytes = page;
}
