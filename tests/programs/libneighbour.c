// Another allocator, as far as a replacement needs to know it: malloc and its family over memory
// that it maps itself, mallocx beside them. For neighbours_test.
//
// Its blocks are recognised by a mark in front of them; a block without one ends the process.
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/check.h"

enum { POOL_BYTES = 64 << 20, HEADER_BYTES = 16 };
static const uint64_t MARK = 0x6e65696768626f72;

struct header {
  uint64_t mark;
  size_t bytes;
};

static unsigned char *_Atomic pool;
static _Atomic size_t used;

int neighbour_has(const void *p) {
  const unsigned char *start = pool, *at = p;
  return start != NULL && at >= start && at < start + POOL_BYTES;
}

static unsigned char *get_pool(void) {
  unsigned char *have = pool;
  if (have != NULL) return have;
  const int protection = PROT_READ | PROT_WRITE;
  void *mapped = mmap(NULL, POOL_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  if (atomic_compare_exchange_strong(&pool, &have, mapped)) return mapped;
  munmap(mapped, POOL_BYTES);
  return have;
}

// Blocks are never used again: the pool is larger than what a test needs.
void *memalign(size_t align, size_t bytes) {
  if (align < HEADER_BYTES) align = HEADER_BYTES;
  unsigned char *start = get_pool();
  size_t whole = bytes + HEADER_BYTES + align;
  size_t at = bytes < POOL_BYTES && start != NULL ? atomic_fetch_add(&used, whole) : POOL_BYTES;
  if (at + whole > POOL_BYTES) {
    errno = ENOMEM;
    return NULL;
  }
  uintptr_t p = ((uintptr_t)start + at + HEADER_BYTES + align - 1) & ~(uintptr_t)(align - 1);
  ((struct header *)p)[-1] = (struct header){MARK, bytes};
  return (void *)p;
}

void *malloc(size_t bytes) {
  return memalign(HEADER_BYTES, bytes);
}
void *mallocx(size_t bytes, int flags) {
  (void)flags;
  return malloc(bytes);
}

void free(void *p) {
  if (p == NULL) return;
  struct header *header = (struct header *)p - 1;
  CHECK(neighbour_has(p) && header->mark == MARK, "free(%p): not a block of libneighbour", p);
}

size_t malloc_usable_size(void *p) {
  return p != NULL ? ((struct header *)p)[-1].bytes : 0;
}

void *calloc(size_t n, size_t bytes) {
  size_t whole;
  if (__builtin_mul_overflow(n, bytes, &whole)) return NULL;
  return malloc(whole);
}

void *realloc(void *p, size_t bytes) {
  void *moved = malloc(bytes);
  if (p == NULL || moved == NULL) return moved;
  size_t was = malloc_usable_size(p);
  memcpy(moved, p, was < bytes ? was : bytes);
  free(p);
  return moved;
}
