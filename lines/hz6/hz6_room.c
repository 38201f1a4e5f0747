// Room for what grows (Policy's growth_room): fewer copies by realloc, for some memory.
//
// A block that realloc makes larger will grow again, as strings and vectors do: its new place has
// room for two and a half times as much, which is two more growths by half. What is not touched of
// it costs addresses, and memory only within pages. And while blocks of 4 KiB or 8 KiB, the sizes
// that programs begin buffers with, are seen to grow, such requests are served from the next class,
// so that the first growth by a quarter needs no copy at all.
#include "lines/hz6/hz6_model.h"

#include <errno.h>
#include <string.h>

#include "core/above.h"

enum {
  BOUNDARIES = 2,
  GROWN_TO_ARM = 4, // growths in one period of core/tick.h that make requests of the size roomier
};

static struct boundary {
  unsigned class_id;      // that requests of the size have
  _Atomic uint32_t grown; // blocks of that class, or of the next one, that grew
} boundaries[BOUNDARIES];

static void arm(const struct boundary *b, bool armed) {
  _Atomic uint8_t *mark = &hz6_mark_by_256[hz_class_bytes(b->class_id) / 256];
  atomic_store_explicit(mark, (uint8_t)(b->class_id + 1 + armed), memory_order_relaxed);
}

void hz6_room_start(void) {
  boundaries[0].class_id = hz_class_of(4 * HZ_KIB);
  boundaries[1].class_id = hz_class_of(8 * HZ_KIB);
}

void hz6_room_period(void) {
  if (!hz6_policy.growth_room) return;
  for (unsigned i = 0; i < BOUNDARIES; i++)
    arm(&boundaries[i],
        atomic_exchange_explicit(&boundaries[i].grown, 0, memory_order_relaxed) >= GROWN_TO_ARM);
}

// A block of the class has been resized to so many bytes: it had to be moved, or fitted because its
// request was given room.
static void note_growth(unsigned class_id, size_t bytes) {
  for (unsigned i = 0; i < BOUNDARIES; i++) {
    struct boundary *b = &boundaries[i];
    if (class_id != b->class_id && class_id != b->class_id + 1) continue;
    if (bytes <= hz_class_bytes(b->class_id)) continue;
    const uint32_t before = atomic_fetch_add_explicit(&b->grown, 1, memory_order_relaxed);
    if (before + 1 == GROWN_TO_ARM) arm(b, true);
  }
}

// Moves a block that has become too small to where it has room. NULL: nothing has changed.
static void *grow(void *p, size_t usable, size_t bytes) {
  const struct hz_table *table = hz6_table();
  const int saved = errno;
  void *roomy = table->alloc(bytes * 2 + bytes / 2);
  errno = saved;
  if (roomy == NULL) return NULL; // perhaps there is memory for less
  memcpy(roomy, p, usable);
  table->release(p);
  return roomy;
}

void *hz6_room_resize(void *p, size_t usable, size_t bytes) {
  if (usable == 0) return NULL; // a bad pointer: reported by now
  if (usable <= HZ_CLASS_MAX_BYTES) note_growth(hz_class_of(usable), bytes);
  // Room that is not used yet is no waste: of 2.5 times as much, rounded up to a class.
  if (bytes <= usable && bytes >= usable / 4) return p;
  if (usable <= HZ_CLASS_MAX_BYTES) {
    if (bytes <= usable) return hz_class_fits(hz_class_of(usable), bytes) ? p : NULL;
  } else {
    void *resized = hz_above_resize(p, bytes);
    if (resized != NULL || bytes <= usable) return resized;
  }
  return bytes <= HZ_RUN_BLOCK_MAX_BYTES / 2 ? grow(p, usable, bytes) : NULL;
}
