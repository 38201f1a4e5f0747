// The allocation functions of libc, one edge case per test: man pages, C23 and glibc 2.36 are the
// specification. The same tests hold for glibc itself and for whatever replaces its allocator.
//
// With CONTRACT_ALL=1 a function that glibc 2.36 lacks (C23's) is a failure instead of a skip.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/check.h"
#include "tests/support/memory.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define REQUIRE(condition, ...)                                                                    \
  do {                                                                                             \
    if (!(condition)) fail_msg(__VA_ARGS__);                                                       \
  } while (0)

enum { UNTOUCHED = 4711 }; // an errno that no function sets

static const size_t sizes[] = {
    0,      1,       7,       15,      16,      17,      24,      31,      32,    33,     63,
    64,     65,      100,     127,     128,     129,     255,     256,     257,   1000,   1023,
    1024,   1025,    2047,    2048,    2049,    4095,    4096,    4097,    8192,  12345,  16384,
    16385,  32767,   32768,   32769,   65535,   65536,   65537,   98304,   98305, 131072, 131073,
    262145, 1048576, 1048577, 4194303, 4194304, 4194305, 8388608, 33554433};

// Sizes that no machine can serve: most of them above PTRDIFF_MAX.
static const size_t impossible[] = {
    PTRDIFF_MAX,     (size_t)PTRDIFF_MAX + 1, SIZE_MAX / 2 + 4097, SIZE_MAX - 8192, SIZE_MAX - 4096,
    SIZE_MAX - 4095, SIZE_MAX - 64,           SIZE_MAX - 16,       SIZE_MAX - 15,   SIZE_MAX - 1,
    SIZE_MAX};

static bool aligned_to(void *p, size_t align) {
  return ((uintptr_t)opaque(p) & (align - 1)) == 0; // opaque: the compiler believes in malloc
}

// errno as memory has it: the compiler may assume that free leaves it alone.
static int errno_now(void) {
  return *(volatile int *)&errno;
}
static void errno_mark(void) {
  *(volatile int *)&errno = UNTOUCHED;
}

// A function that glibc 2.36 may lack, or NULL.
static void *function_named(const char *name) {
  void *function = dlsym(RTLD_DEFAULT, name);
  if (function == NULL && getenv("CONTRACT_ALL") != NULL) fail_msg("%s is not defined", name);
  return function;
}

static void *filled(size_t bytes, unsigned tag) {
  void *p = malloc(bytes);
  REQUIRE(p != NULL, "malloc(%zu) gave NULL", bytes);
  pattern_fill(p, bytes, tag);
  return p;
}

static void require_intact(const char *what, const void *p, size_t was, size_t kept, unsigned tag) {
  size_t intact = pattern_intact(p, was, kept, tag);
  REQUIRE(intact == kept, "%s: byte %zu of %zu kept ones has changed (block was %zu bytes)", what,
          intact, kept, was);
}

static void require_no_memory(const char *what, size_t bytes, void *p) {
  REQUIRE(p == NULL, "%s of %zu bytes gave %p, expected NULL", what, bytes, p);
  REQUIRE(errno_now() == ENOMEM, "%s of %zu bytes set errno %d, expected ENOMEM", what, bytes,
          errno_now());
  errno_mark();
}

// ---- malloc, calloc, free

static void malloc_gives_distinct_aligned_writable_blocks(void **state) {
  (void)state;
  void *blocks[COUNT_OF(sizes)];
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    blocks[i] = filled(sizes[i], i);
    REQUIRE(aligned_to(blocks[i], 16), "malloc(%zu) gave %p, not 16-aligned", sizes[i], blocks[i]);
  }
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    require_intact("malloc", blocks[i], sizes[i], sizes[i], i);
    free(blocks[i]);
  }
}

static void every_small_size_is_aligned_to_sixteen(void **state) {
  (void)state;
  void *blocks[4][1100];
  for (unsigned round = 0; round < 4; round++) {
    for (size_t bytes = 0; bytes < 1100; bytes++) {
      blocks[round][bytes] = malloc(bytes);
      REQUIRE(blocks[round][bytes] != NULL, "malloc(%zu) gave NULL", bytes);
      REQUIRE(aligned_to(blocks[round][bytes], 16), "malloc(%zu) is not 16-aligned", bytes);
    }
  }
  for (unsigned round = 0; round < 4; round++) {
    for (size_t bytes = 0; bytes < 1100; bytes++) free(blocks[round][bytes]);
  }
}

static void requests_of_zero_bytes_give_distinct_blocks(void **state) {
  (void)state;
  void *blocks[] = {malloc(0), malloc(0),       calloc(0, 8), calloc(8, 0), realloc(NULL, 0),
                    valloc(0), memalign(64, 0), pvalloc(0),   NULL,         aligned_alloc(32, 0)};
  assert_int_equal(posix_memalign(&blocks[8], 64, 0), 0);
  for (unsigned i = 0; i < COUNT_OF(blocks); i++) {
    REQUIRE(blocks[i] != NULL, "request %u of 0 bytes gave NULL", i);
    for (unsigned j = 0; j < i; j++) {
      REQUIRE(blocks[i] != blocks[j], "requests %u and %u of 0 bytes gave the same block", j, i);
    }
  }
  for (unsigned i = 0; i < COUNT_OF(blocks); i++) free(blocks[i]);
}

static void impossible_sizes_give_null_and_enomem(void **state) {
  (void)state;
  errno_mark();
  for (unsigned i = 0; i < COUNT_OF(impossible); i++) {
    size_t n = opaque_size(impossible[i]);
    require_no_memory("malloc", n, malloc(n));
    require_no_memory("calloc(1, n)", n, calloc(1, n));
    require_no_memory("calloc(n, 1)", n, calloc(n, 1));
    require_no_memory("realloc(NULL)", n, realloc(NULL, n));
    require_no_memory("reallocarray(NULL)", n, reallocarray(NULL, n, 1));
    require_no_memory("valloc", n, valloc(n));
    require_no_memory("pvalloc", n, pvalloc(n));
    for (size_t align = 1; align <= 8 * MIB; align *= 8) {
      require_no_memory("memalign", n, memalign(align, n));
      require_no_memory("aligned_alloc", n, aligned_alloc(align, n));
    }
  }
}

static void products_that_overflow_give_null_and_enomem(void **state) {
  (void)state;
  static const size_t factors[][2] = {{SIZE_MAX, 2},
                                      {2, SIZE_MAX},
                                      {SIZE_MAX, SIZE_MAX},
                                      {SIZE_MAX / 2 + 1, 2},
                                      {(size_t)1 << 32, (size_t)1 << 32},
                                      {((size_t)1 << 32) + 1, (size_t)1 << 32},
                                      {SIZE_MAX / 16 + 1, 16}};
  void *kept = filled(100, 9);
  errno_mark();
  for (unsigned i = 0; i < COUNT_OF(factors); i++) {
    size_t n = opaque_size(factors[i][0]), m = opaque_size(factors[i][1]);
    require_no_memory("calloc", n, calloc(n, m));
    require_no_memory("reallocarray(NULL)", n, reallocarray(NULL, n, m));
    require_no_memory("reallocarray", n, reallocarray(opaque(kept), n, m));
    require_intact("reallocarray that failed", kept, 100, 100, 9);
  }
  free(kept);
}

static void require_zero(const unsigned char *p, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    REQUIRE(p[i] == 0, "calloc of %zu bytes: byte %zu is %u, expected 0", bytes, i, p[i]);
  }
}

static void calloc_zeroes_memory_that_was_used_before(void **state) {
  (void)state;
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    for (unsigned round = 0; round < 3; round++) {
      unsigned char *dirty = malloc(sizes[i]);
      assert_non_null(dirty);
      memset(opaque(dirty), 0xa5, sizes[i]);
      free(opaque(dirty));
      unsigned char *clean = opaque(calloc(round == 1 ? sizes[i] : 1, round == 1 ? 1 : sizes[i]));
      assert_non_null(clean);
      require_zero(clean, sizes[i]);
      memset(clean, 0x5a, sizes[i]);
      free(opaque(clean));
    }
  }
}

static void calloc_zeroes_many_reused_small_blocks(void **state) {
  (void)state;
  enum { MANY = 5000 };
  static unsigned char *blocks[MANY];
  for (size_t bytes = 16; bytes <= 2048; bytes *= 2) {
    for (unsigned i = 0; i < MANY; i++) {
      blocks[i] = malloc(bytes);
      assert_non_null(blocks[i]);
      memset(blocks[i], 0xff, bytes);
    }
    for (unsigned i = 0; i < MANY; i++) free(blocks[i]);
    for (unsigned i = 0; i < MANY; i++) {
      blocks[i] = opaque(calloc(1, bytes));
      assert_non_null(blocks[i]);
      require_zero(blocks[i], bytes);
    }
    for (unsigned i = 0; i < MANY; i++) free(blocks[i]);
  }
}

static void free_keeps_errno(void **state) {
  (void)state;
  static void *blocks[64];
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    unsigned many = sizes[i] > MIB ? 4 : COUNT_OF(blocks);
    for (unsigned j = 0; j < many; j++) blocks[j] = filled(sizes[i], j);
    for (unsigned j = 0; j < many; j++) {
      errno_mark();
      free(blocks[j]);
      REQUIRE(errno_now() == UNTOUCHED, "free of %zu bytes set errno %d", sizes[i], errno_now());
    }
  }
  free(NULL);
  assert_int_equal(errno_now(), UNTOUCHED);
  void *aligned = memalign(2 * MIB, 3 * MIB);
  assert_non_null(aligned);
  errno_mark();
  free(aligned);
  assert_int_equal(errno_now(), UNTOUCHED);
}

// ---- realloc

static void realloc_follows_glibc_for_null_and_zero(void **state) {
  (void)state;
  void *p = realloc(NULL, 100);
  assert_non_null(p);
  pattern_fill(p, 100, 3);
  p = reallocarray(p, 10, 30);
  assert_non_null(p);
  require_intact("reallocarray", p, 100, 100, 3);
  assert_null(realloc(p, opaque_size(0)));
  p = reallocarray(NULL, 7, 11);
  assert_non_null(p);
  assert_null(reallocarray(p, opaque_size(0), 8));
}

static void realloc_to_zero_bytes_frees_the_block(void **state) {
  (void)state;
  size_t before = memory_resident();
  for (unsigned i = 0; i < 50000; i++) {
    char *p = malloc(8000);
    assert_non_null(p);
    memset(p, 1, 8000);
    assert_null(realloc(opaque(p), opaque_size(0)));
  }
  size_t after = memory_resident();
  REQUIRE(after < before + 64 * MIB, "400 MB of blocks given to realloc(p, 0) added %zu KiB",
          (after - before) / KIB);
}

static void realloc_that_fails_keeps_the_block(void **state) {
  (void)state;
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    void *p = filled(sizes[i], i);
    errno_mark();
    for (unsigned j = 0; j < COUNT_OF(impossible); j++) {
      require_no_memory("realloc", impossible[j], realloc(opaque(p), opaque_size(impossible[j])));
    }
    require_intact("realloc that failed", p, sizes[i], sizes[i], i);
    free(p);
  }
}

// One block led through `steps`, its contents verified after each.
static void realloc_through(size_t first, const size_t *steps, unsigned count) {
  void *p = filled(first, 1);
  size_t was = first;
  for (unsigned i = 0; i < count; i++) {
    void *moved = realloc(p, steps[i]);
    REQUIRE(moved != NULL, "realloc from %zu to %zu gave NULL", was, steps[i]);
    REQUIRE(aligned_to(moved, 16), "realloc to %zu gave %p, not 16-aligned", steps[i], moved);
    require_intact("realloc", moved, was, was < steps[i] ? was : steps[i], i + 1);
    REQUIRE(malloc_usable_size(moved) >= steps[i], "realloc to %zu: usable_size is %zu", steps[i],
            malloc_usable_size(moved));
    p = moved;
    was = steps[i];
    pattern_fill(p, was, i + 2);
  }
  free(p);
}

static void realloc_across(size_t border) {
  size_t steps[] = {border,     border + 1, border * 2,     border * 2 + 1, border + 1,  border,
                    border - 1, border / 2, border / 2 + 1, border / 4 + 1, border + 16, 1};
  realloc_through(border - 1, steps, COUNT_OF(steps));
}

static void realloc_keeps_contents_across_every_small_size(void **state) {
  (void)state;
  for (size_t border = 2; border <= 1040; border++) realloc_across(border);
}

// Eight steps per doubling contain the borders of every geometry with up to eight classes.
static void realloc_keeps_contents_across_class_borders(void **state) {
  (void)state;
  for (size_t power = KIB; power <= MIB; power *= 2) {
    for (size_t eighth = 0; eighth < 8; eighth++) realloc_across(power + power / 8 * eighth);
  }
}

static void realloc_keeps_contents_across_large_borders(void **state) {
  (void)state;
  for (size_t border = 2 * MIB; border <= 64 * MIB; border += border < 8 * MIB ? MIB : 8 * MIB) {
    realloc_across(border);
  }
}

static void realloc_grows_byte_by_byte_and_in_doublings(void **state) {
  (void)state;
  char *p = NULL;
  for (size_t bytes = 1; bytes <= 20000; bytes++) {
    p = realloc(p, bytes);
    assert_non_null(p);
    p[bytes - 1] = (char)(bytes * 7);
  }
  for (size_t i = 1; i <= 20000; i++) {
    REQUIRE(p[i - 1] == (char)(i * 7), "growing byte by byte lost byte %zu", i - 1);
  }
  free(p);
  size_t steps[60];
  unsigned count = 0;
  for (size_t bytes = 1; bytes <= 128 * MIB; bytes *= 2) steps[count++] = bytes;
  for (size_t bytes = 96 * MIB; bytes > 0; bytes /= 2) steps[count++] = bytes;
  realloc_through(1, steps, count);
}

// ---- alignment

// The three ways to an aligned block of `bytes`, each checked and freed.
static void require_aligned(size_t align, size_t bytes) {
  void *blocks[3] = {memalign(align, bytes), aligned_alloc(align, bytes), NULL};
  int error = posix_memalign(&blocks[2], align < sizeof(void *) ? sizeof(void *) : align, bytes);
  REQUIRE(error == 0, "posix_memalign(%zu, %zu) gave error %d", align, bytes, error);
  for (unsigned i = 0; i < 3; i++) {
    REQUIRE(blocks[i] != NULL, "way %u to align %zu bytes to %zu gave NULL", i, bytes, align);
    REQUIRE(aligned_to(blocks[i], align), "way %u: %p is not aligned to %zu (%zu bytes)", i,
            blocks[i], align, bytes);
    REQUIRE(aligned_to(blocks[i], 16), "way %u: %p is not 16-aligned", i, blocks[i]);
    REQUIRE(malloc_usable_size(blocks[i]) >= bytes, "way %u: usable_size %zu below %zu bytes", i,
            malloc_usable_size(blocks[i]), bytes);
    pattern_fill(blocks[i], bytes, i);
  }
  for (unsigned i = 0; i < 3; i++) {
    require_intact("aligned block", blocks[i], bytes, bytes, i);
    void *grown = realloc(blocks[i], bytes + bytes / 2 + 100);
    REQUIRE(grown != NULL, "realloc of a block aligned to %zu gave NULL", align);
    require_intact("realloc of an aligned block", grown, bytes, bytes, i);
    free(grown);
  }
}

static void alignments_from_one_to_eight_mebibytes(void **state) {
  (void)state;
  for (size_t align = 1; align <= 8 * MIB; align *= 2) {
    size_t around[] = {0, 1, 10, align - 1, align, align + 1, 3 * align, 100000, 5 * MIB};
    for (unsigned i = 0; i < COUNT_OF(around); i++) require_aligned(align, around[i]);
  }
}

static void many_aligned_blocks_live_side_by_side(void **state) {
  (void)state;
  enum { MANY = 300 };
  void *blocks[MANY];
  for (size_t align = 32; align <= 256 * KIB; align *= 2) {
    size_t bytes = align / 2 + 40;
    for (unsigned i = 0; i < MANY; i++) {
      blocks[i] = memalign(align, bytes);
      REQUIRE(blocks[i] != NULL, "memalign(%zu, %zu) gave NULL", align, bytes);
      REQUIRE(aligned_to(blocks[i], align), "%p is not aligned to %zu", blocks[i], align);
      pattern_fill(blocks[i], bytes, i);
    }
    for (unsigned i = 0; i < MANY; i++) {
      require_intact("aligned block among many", blocks[i], bytes, bytes, i);
      free(blocks[i]);
    }
  }
}

static void odd_alignments_are_rounded_up_as_glibc_does(void **state) {
  (void)state;
  static const size_t asked[][2] = {{0, 16},      {1, 16},      {3, 16},        {17, 32},
                                    {24, 32},     {48, 64},     {65, 128},      {100, 128},
                                    {1000, 1024}, {4097, 8192}, {70000, 131072}};
  for (unsigned i = 0; i < COUNT_OF(asked); i++) {
    size_t align = opaque_size(asked[i][0]);
    void *p = memalign(align, 10), *q = aligned_alloc(align, 10);
    REQUIRE(p != NULL && q != NULL, "alignment %zu gave %p and %p", align, p, q);
    REQUIRE(aligned_to(p, asked[i][1]), "memalign(%zu) gave %p, expected alignment %zu", align, p,
            asked[i][1]);
    REQUIRE(aligned_to(q, asked[i][1]), "aligned_alloc(%zu) gave %p, expected alignment %zu", align,
            q, asked[i][1]);
    free(p);
    free(q);
  }
}

static void aligned_alloc_takes_sizes_that_are_no_multiple(void **state) {
  (void)state;
  for (size_t align = 1; align <= 64 * KIB; align *= 2) {
    for (size_t bytes = 1; bytes <= 100; bytes += 9) {
      void *p = aligned_alloc(align, bytes);
      REQUIRE(p != NULL, "aligned_alloc(%zu, %zu) gave NULL", align, bytes);
      free(p);
    }
  }
}

static void absurd_alignments_fail_cleanly(void **state) {
  (void)state;
  errno_mark();
  size_t top = opaque_size(SIZE_MAX / 2 + 1);
  require_no_memory("memalign(2^62)", 1, memalign(top / 2, 1));
  require_no_memory("memalign(2^63)", 1, memalign(top, 1));
  assert_null(memalign(top + 1, 1));
  assert_int_equal(errno_now(), EINVAL);
  errno_mark();
  require_no_memory("memalign", SIZE_MAX - MIB, memalign(MIB, opaque_size(SIZE_MAX - MIB)));
  require_no_memory("aligned_alloc", 1, aligned_alloc(top, 1));
}

static void posix_memalign_refuses_without_side_effects(void **state) {
  (void)state;
  static const size_t wrong[] = {0, 1, 2, 4, 7, 9, 12, 24, 48, 100, SIZE_MAX, SIZE_MAX / 2};
  int marker;
  void *p = &marker;
  for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
    errno_mark();
    int error = posix_memalign(&p, opaque_size(wrong[i]), 64);
    REQUIRE(error == EINVAL, "posix_memalign(%zu) gave %d, expected EINVAL", wrong[i], error);
    REQUIRE(errno_now() == UNTOUCHED, "posix_memalign(%zu) set errno %d", wrong[i], errno_now());
    REQUIRE(p == &marker, "posix_memalign(%zu) changed *memptr", wrong[i]);
  }
  for (unsigned i = 0; i < COUNT_OF(impossible); i++) {
    int error = posix_memalign(&p, 64, opaque_size(impossible[i]));
    REQUIRE(error == ENOMEM, "posix_memalign of %zu bytes gave %d", impossible[i], error);
    REQUIRE(p == &marker, "posix_memalign of %zu bytes changed *memptr", impossible[i]);
  }
}

static void valloc_and_pvalloc_give_pages(void **state) {
  (void)state;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    void *p = valloc(sizes[i]), *q = pvalloc(sizes[i]);
    assert_non_null(p);
    assert_non_null(q);
    REQUIRE(aligned_to(p, page), "valloc(%zu) gave %p, not on a page", sizes[i], p);
    REQUIRE(aligned_to(q, page), "pvalloc(%zu) gave %p, not on a page", sizes[i], q);
    size_t rounded = (sizes[i] + page - 1) / page * page;
    REQUIRE(malloc_usable_size(q) >= rounded, "pvalloc(%zu): usable_size is %zu, expected %zu",
            sizes[i], malloc_usable_size(q), rounded);
    pattern_fill(q, rounded, i);
    pattern_fill(p, sizes[i], i);
    require_intact("pvalloc", q, rounded, rounded, i);
    free(p);
    free(q);
  }
}

// ---- malloc_usable_size

static void usable_size_is_all_writable_and_constant(void **state) {
  (void)state;
  void *blocks[COUNT_OF(sizes)];
  size_t usable[COUNT_OF(sizes)];
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    blocks[i] = malloc(sizes[i]);
    assert_non_null(blocks[i]);
    usable[i] = malloc_usable_size(blocks[i]);
    REQUIRE(usable[i] >= sizes[i], "malloc(%zu): usable_size is %zu", sizes[i], usable[i]);
    pattern_fill(blocks[i], usable[i], i);
  }
  for (unsigned round = 0; round < 1000; round++) free(opaque(malloc(round * 7)));
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    require_intact("usable space", blocks[i], usable[i], usable[i], i);
    REQUIRE(malloc_usable_size(blocks[i]) == usable[i], "usable_size changed from %zu to %zu",
            usable[i], malloc_usable_size(blocks[i]));
    free(blocks[i]);
  }
  assert_int_equal(malloc_usable_size(NULL), 0);
}

static void realloc_within_the_usable_size_keeps_all_of_it(void **state) {
  (void)state;
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    void *p = malloc(sizes[i]);
    assert_non_null(p);
    size_t usable = malloc_usable_size(p);
    pattern_fill(p, usable, i);
    p = realloc(p, usable);
    assert_non_null(p);
    require_intact("realloc to the usable size", p, usable, usable, i);
    free(p);
  }
}

// ---- the rest of the family

static void cfree_frees(void **state) {
  (void)state;
  void (*cfree_function)(void *) = (void (*)(void *))function_named("cfree");
  if (cfree_function == NULL) skip();
  for (unsigned i = 0; i < 1000; i++) cfree_function(filled(i * 100, i));
  cfree_function(NULL);
}

static void sized_frees_take_any_hint(void **state) {
  (void)state;
  typedef void sized(void *, size_t);
  typedef void aligned_sized(void *, size_t, size_t);
  sized *free_sized_function = (sized *)function_named("free_sized");
  aligned_sized *free_aligned = (aligned_sized *)function_named("free_aligned_sized");
  if (free_sized_function == NULL || free_aligned == NULL) skip();
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    errno_mark();
    free_sized_function(filled(sizes[i], i), sizes[i]);
    free_sized_function(filled(sizes[i], i), sizes[i] / 2);
    free_aligned(aligned_alloc(256, sizes[i]), 256, sizes[i]);
    free_aligned(filled(sizes[i], i), 16, 0);
    assert_int_equal(errno_now(), UNTOUCHED);
  }
  free_sized_function(NULL, 100);
  free_aligned(NULL, 64, 100);
}

static void mallopt_accepts_the_documented_parameters(void **state) {
  (void)state;
  static const int parameters[][2] = {{M_TRIM_THRESHOLD, 128 * 1024},
                                      {M_TOP_PAD, 0},
                                      {M_MMAP_THRESHOLD, 128 * 1024},
                                      {M_MMAP_MAX, 65536},
                                      {M_ARENA_MAX, 8}};
  for (unsigned i = 0; i < COUNT_OF(parameters); i++) {
    int answer = mallopt(parameters[i][0], parameters[i][1]);
    REQUIRE(answer == 1, "mallopt(%d) gave %d, expected 1", parameters[i][0], answer);
  }
}

static void mallinfo_sees_what_was_allocated(void **state) {
  (void)state;
  enum { MANY = 20000 };
  static void *blocks[MANY];
  struct mallinfo2 before = mallinfo2();
  for (unsigned i = 0; i < MANY; i++) blocks[i] = filled(1000, i);
  struct mallinfo2 during = mallinfo2();
  for (unsigned i = 0; i < MANY; i++) free(blocks[i]);
  REQUIRE(during.uordblks > before.uordblks + 15 * MIB,
          "20 MB of blocks moved mallinfo2.uordblks from %zu to %zu", before.uordblks,
          during.uordblks);
  REQUIRE(during.uordblks + during.hblkhd >= 20 * 1000 * 1000,
          "mallinfo2 counts less than is live");
  REQUIRE(during.arena + during.hblkhd >= during.uordblks,
          "mallinfo2: arena %zu below uordblks %zu", during.arena, during.uordblks);
  void *large = filled(64 * MIB, 1);
  struct mallinfo2 with_large = mallinfo2();
  REQUIRE(with_large.hblkhd + with_large.uordblks >= 64 * MIB,
          "mallinfo2 misses a block of 64 MiB");
  free(large);
  (void)malloc_trim(0);
  struct mallinfo2 after = mallinfo2();
  REQUIRE(after.uordblks < during.uordblks - 15 * MIB, "uordblks stays at %zu (was %zu) after free",
          after.uordblks, during.uordblks);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // mallinfo is what is tested here
static void mallinfo_with_int_fields_agrees(void **state) {
  (void)state;
  void *p = filled(3 * MIB, 1);
  struct mallinfo narrow = mallinfo();
  struct mallinfo2 wide = mallinfo2();
  assert_true(narrow.uordblks + narrow.hblkhd > 0);
  assert_int_equal((unsigned)narrow.hblks, (unsigned)wide.hblks);
  free(p);
}
#pragma GCC diagnostic pop

static void malloc_info_writes_an_xml_document(void **state) {
  (void)state;
  static char text[256 * 1024];
  FILE *stream = fmemopen(text, sizeof text, "w");
  assert_non_null(stream);
  assert_int_equal(malloc_info(0, stream), 0);
  fclose(stream);
  REQUIRE(strncmp(text, "<malloc version=", 16) == 0, "malloc_info begins with '%.40s'", text);
  REQUIRE(strstr(text, "</malloc>") != NULL, "malloc_info does not end its document");
  // An unknown option is EINVAL, as a return value or through errno.
  errno = 0;
  int answer = malloc_info(1, stdout);
  REQUIRE(answer == EINVAL || (answer == -1 && errno == EINVAL), "malloc_info(1) gave %d", answer);
}

static void malloc_trim_may_be_called_at_any_time(void **state) {
  (void)state;
  void *kept = filled(5000, 7), *large = filled(10 * MIB, 8);
  for (size_t pad = 0; pad <= 64 * MIB; pad = pad * 8 + KIB) {
    for (unsigned i = 0; i < 100; i++) free(filled(i * 999, i));
    int answer = malloc_trim(pad);
    REQUIRE(answer == 0 || answer == 1, "malloc_trim(%zu) gave %d", pad, answer);
  }
  require_intact("block across malloc_trim", kept, 5000, 5000, 7);
  require_intact("large block across malloc_trim", large, 10 * MIB, 10 * MIB, 8);
  free(kept);
  free(large);
}

// ---- everything at once

struct live {
  unsigned char *p;
  size_t bytes;
  unsigned tag;
};

static void require_live(const struct live *block) {
  require_intact("random block", block->p, block->bytes, block->bytes, block->tag);
}

static size_t random_size(struct random_state *random) {
  static const size_t tops[] = {16, 64, 128, 512, 1024, 4096, 16384, 65536, 300000, 6000000};
  size_t pick = random_between(random, 0, 199); // big blocks are rare
  return random_between(random, 0, tops[pick < 1 ? 9 : pick < 4 ? 8 : pick % 8]);
}

static void *random_allocation(struct random_state *random, size_t bytes) {
  switch (random_between(random, 0, 5)) {
  case 0:
    return calloc(1, bytes);
  case 1:
    return memalign((size_t)16 << random_between(random, 0, 12), bytes);
  default:
    return malloc(bytes);
  }
}

static void random_calls_never_make_blocks_overlap(void **state) {
  (void)state;
  enum { SLOTS = 2000, CALLS = 200000 };
  static struct live slots[SLOTS];
  uint64_t seed = random_seed(NULL);
  printf("seed %llu (repeat with TEST_SEED)\n", (unsigned long long)seed);
  struct random_state random = random_start(seed);
  for (unsigned call = 0; call < CALLS; call++) {
    struct live *slot = &slots[random_between(&random, 0, SLOTS - 1)];
    size_t bytes = random_size(&random);
    if (slot->p != NULL) require_live(slot);
    if (slot->p == NULL) {
      slot->p = random_allocation(&random, bytes);
    } else if (random_between(&random, 0, 3) == 0 && bytes > 0) {
      size_t kept = bytes < slot->bytes ? bytes : slot->bytes;
      slot->p = realloc(slot->p, bytes);
      assert_non_null(slot->p);
      require_intact("random realloc", slot->p, slot->bytes, kept, slot->tag);
    } else {
      free(slot->p);
      slot->p = NULL;
      continue;
    }
    REQUIRE(slot->p != NULL, "a random allocation of %zu bytes gave NULL", bytes);
    slot->bytes = bytes;
    slot->tag = call;
    pattern_fill(slot->p, bytes, call);
  }
  for (unsigned i = 0; i < SLOTS; i++) {
    if (slots[i].p != NULL) require_live(&slots[i]);
    free(slots[i].p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(malloc_gives_distinct_aligned_writable_blocks),
      cmocka_unit_test(every_small_size_is_aligned_to_sixteen),
      cmocka_unit_test(requests_of_zero_bytes_give_distinct_blocks),
      cmocka_unit_test(impossible_sizes_give_null_and_enomem),
      cmocka_unit_test(products_that_overflow_give_null_and_enomem),
      cmocka_unit_test(calloc_zeroes_memory_that_was_used_before),
      cmocka_unit_test(calloc_zeroes_many_reused_small_blocks),
      cmocka_unit_test(free_keeps_errno),
      cmocka_unit_test(realloc_follows_glibc_for_null_and_zero),
      cmocka_unit_test(realloc_to_zero_bytes_frees_the_block),
      cmocka_unit_test(realloc_that_fails_keeps_the_block),
      cmocka_unit_test(realloc_keeps_contents_across_every_small_size),
      cmocka_unit_test(realloc_keeps_contents_across_class_borders),
      cmocka_unit_test(realloc_keeps_contents_across_large_borders),
      cmocka_unit_test(realloc_grows_byte_by_byte_and_in_doublings),
      cmocka_unit_test(alignments_from_one_to_eight_mebibytes),
      cmocka_unit_test(many_aligned_blocks_live_side_by_side),
      cmocka_unit_test(odd_alignments_are_rounded_up_as_glibc_does),
      cmocka_unit_test(aligned_alloc_takes_sizes_that_are_no_multiple),
      cmocka_unit_test(absurd_alignments_fail_cleanly),
      cmocka_unit_test(posix_memalign_refuses_without_side_effects),
      cmocka_unit_test(valloc_and_pvalloc_give_pages),
      cmocka_unit_test(usable_size_is_all_writable_and_constant),
      cmocka_unit_test(realloc_within_the_usable_size_keeps_all_of_it),
      cmocka_unit_test(cfree_frees),
      cmocka_unit_test(sized_frees_take_any_hint),
      cmocka_unit_test(mallopt_accepts_the_documented_parameters),
      cmocka_unit_test(mallinfo_sees_what_was_allocated),
      cmocka_unit_test(mallinfo_with_int_fields_agrees),
      cmocka_unit_test(malloc_info_writes_an_xml_document),
      cmocka_unit_test(malloc_trim_may_be_called_at_any_time),
      cmocka_unit_test(random_calls_never_make_blocks_overlap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
