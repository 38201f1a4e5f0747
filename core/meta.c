// Records of the allocator's own: see core/meta.h.
#include "core/meta.h"

#include "core/lock.h"
#include "core/misuse.h"
#include "core/os.h"

enum {
  CHUNK_BYTES = 256 * 1024, // only touched pages cost memory; one mmap per some 100 magazines
  UNIT = 16,
  SMALL_LISTS = 1025, // one list per multiple of 16 up to 16 KiB: no magazine is larger
};

struct free_record {
  struct free_record *next;
};

static struct {
  struct hz_lock lock;
  char *next, *end; // the unused rest of the newest chunk
  size_t mapped_bytes;
  struct free_record *free[SMALL_LISTS];
} meta;

static void *bump_locked(size_t bytes) {
  const size_t align = bytes >= HZ_CACHE_LINE ? HZ_CACHE_LINE : UNIT;
  char *p = (char *)hz_align_up((uintptr_t)meta.next, align);
  if (meta.next == NULL || p + bytes > meta.end) {
    const size_t chunk = hz_max(CHUNK_BYTES, hz_align_up(bytes, hz_page_bytes));
    p = hz_os.map(chunk);
    if (p == NULL) return NULL;
    meta.mapped_bytes += chunk;
    if (chunk > CHUNK_BYTES) return p; // a chunk of its own; the current one goes on
    meta.end = p + chunk;
  }
  meta.next = p + bytes;
  return p;
}

void *hz_meta_take(size_t bytes) {
  bytes = hz_align_up(bytes, UNIT);
  const size_t list = bytes / UNIT;
  hz_lock(&meta.lock);
  void *record;
  if (list < SMALL_LISTS && meta.free[list] != NULL) {
    record = meta.free[list];
    meta.free[list] = meta.free[list]->next;
  } else {
    record = bump_locked(bytes);
  }
  hz_unlock(&meta.lock);
  return record;
}

void hz_meta_give(void *record, size_t bytes) {
  const size_t list = hz_align_up(bytes, UNIT) / UNIT;
  HZ_CHECK(list < SMALL_LISTS);
  hz_lock(&meta.lock);
  ((struct free_record *)record)->next = meta.free[list];
  meta.free[list] = record;
  hz_unlock(&meta.lock);
}

size_t hz_meta_bytes(void) {
  hz_lock(&meta.lock);
  const size_t bytes = meta.mapped_bytes;
  hz_unlock(&meta.lock);
  return bytes;
}

void hz_meta_start(void) {
  hz_locks_register(HZ_RANK_META, &meta.lock, 1, sizeof meta.lock);
}
