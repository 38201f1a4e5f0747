// The rules: see dispatch/rules.h. malloc_trim and the functions that tell of the heap are in
// summary.c, operator new and delete in operators.c.
#include "dispatch/rules.h"

#include <errno.h>
#include <string.h>

#include "core/misuse.h"
#include "core/os.h"
#include "dispatch/active.h"

const struct hz_family hz_rules = {
#define HZ_RULE_SLOT(name, result, parameters, arguments) .name = hz_rule_##name,
    HZ_FAMILY(HZ_RULE_SLOT)
#undef HZ_RULE_SLOT
};

void *hz_rule_calloc(size_t count, size_t bytes) {
  size_t total;
  if (hz_unlikely(__builtin_mul_overflow(count, bytes, &total))) return hz_no_memory();
  return hz_active.table.alloc_zeroed(total);
}

// ---- realloc ------------------------------------------------------------------------------------

// By copying. old: bytes usable at p. A shrink cannot fail: the old block has room enough.
static void *move_block(void *p, size_t old, size_t bytes) {
  const int saved = errno;
  void *fresh = hz_active.table.alloc(bytes);
  if (hz_unlikely(fresh == NULL)) {
    if (bytes > old) return NULL;
    errno = saved;
    return p;
  }
  memcpy(fresh, p, hz_min(old, bytes));
  hz_active.table.release(p);
  return fresh;
}

void *hz_rule_realloc(void *p, size_t bytes) {
  if (p == NULL) return hz_active.table.alloc(bytes);
  if (hz_unlikely(bytes == 0)) {
    hz_active.table.release(p);
    return NULL;
  }
  const size_t old = hz_active.table.usable_size(p);
  if (hz_unlikely(old == 0)) return hz_no_memory(); // no block of ours: reported by now
  void *resized = hz_active.table.resize(p, bytes);
  return resized != NULL ? resized : move_block(p, old, bytes);
}

void *hz_rule_reallocarray(void *p, size_t count, size_t bytes) {
  size_t total;
  if (hz_unlikely(__builtin_mul_overflow(count, bytes, &total))) return hz_no_memory();
  return hz_rule_realloc(p, total);
}

// ---- alignment ----------------------------------------------------------------------------------

// An alignment that is no power of two counts as the next one. EINVAL: there is no next one.
void *hz_rule_memalign(size_t align, size_t bytes) {
  if (align <= HZ_MIN_ALIGN) return hz_active.table.alloc(bytes);
  if (hz_unlikely(align > SIZE_MAX / 2 + 1)) {
    errno = EINVAL;
    return NULL;
  }
  return hz_active.table.alloc_aligned(hz_pow2_ceil(align), bytes);
}

// bytes need not be a multiple of the alignment (C17), as in glibc.
void *hz_rule_aligned_alloc(size_t align, size_t bytes) {
  return hz_rule_memalign(align, bytes);
}

// Answers by its result alone: errno is kept, and *out too unless there is a block.
int hz_rule_posix_memalign(void **out, size_t align, size_t bytes) {
  if (!hz_is_pow2(align) || align % sizeof(void *) != 0) return EINVAL;
  const int saved = errno;
  void *p = hz_rule_memalign(align, bytes);
  errno = saved;
  if (p == NULL) return ENOMEM;
  *out = p;
  return 0;
}

void *hz_rule_valloc(size_t bytes) {
  return hz_rule_memalign(hz_page_bytes, bytes);
}

// As valloc, in whole pages.
void *hz_rule_pvalloc(size_t bytes) {
  if (hz_unlikely(bytes > SIZE_MAX - hz_page_bytes)) return hz_no_memory();
  return hz_rule_memalign(hz_page_bytes, hz_align_up(bytes, hz_page_bytes));
}

// ---- other names of free ------------------------------------------------------------------------

// Sizes and alignments are hints: programs get them wrong, and a line knows better.

void hz_rule_cfree(void *p) {
  hz_active.table.release(p);
}

void hz_rule_free_sized(void *p, size_t bytes) {
  (void)bytes;
  hz_active.table.release(p);
}

void hz_rule_free_aligned_sized(void *p, size_t align, size_t bytes) {
  (void)align, (void)bytes;
  hz_active.table.release(p);
}
