// Publishing the active table: see dispatch/active.h.
#include "dispatch/active.h"

#include <errno.h>
#include <sys/mman.h>

#include "core/os.h"

static_assert(sizeof(struct hz_active) == HZ_ACTIVE_ALIGN, "the active table is one small page");
static_assert(sizeof(struct hz_table) <= HZ_CACHE_LINE, "the hot entries share a cache line");

// Pointer by pointer: another thread sees either the boot entry, which waits for the start to end,
// or the final one. Release makes what the start wrote visible before the pointers to it.
static void store_pointers(void *to, const void *from, size_t bytes) {
  void **target = to;
  void *const *source = from;
  for (size_t i = 0; i < bytes / sizeof(void *); i++)
    __atomic_store_n(&target[i], source[i], __ATOMIC_RELEASE);
}

void hz_active_publish(const struct hz_table *table, const struct hz_family *family) {
  store_pointers(&hz_active.family, family, sizeof *family);
  store_pointers(&hz_active.table, table, sizeof *table);
  if (hz_page_bytes > HZ_ACTIVE_ALIGN) return;
  const int saved = errno;
  if (mprotect(&hz_active, sizeof hz_active, PROT_READ) != 0) errno = saved;
}
