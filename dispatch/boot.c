// The boot table: see dispatch/boot.h.
//
// Every entry first asks hz_boot(). Inside the start (the INI parser keeps its line in a block) a
// call is served from a static buffer: a bump allocator whose blocks carry their size in front.
// The start gives all of them back before it ends, and the last one given is the first one freed,
// so that the buffer is empty again.
#include "dispatch/boot.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/log.h"
#include "core/misuse.h"
#include "dispatch/active.h"
#include "dispatch/rules.h"
#include "dispatch/start.h"

// ---- Starting once ------------------------------------------------------------------------------

enum { NOT_STARTED, STARTING, STARTED };

static _Atomic int state = NOT_STARTED;
static pthread_t starter; // nobody (0) until the thread that starts has written itself down

bool hz_boot(void) {
  // Acquire pairs with the release below: who sees STARTED sees what the start has written.
  if (atomic_load_explicit(&state, memory_order_acquire) == STARTED) return true;
  int expected = NOT_STARTED;
  if (atomic_compare_exchange_strong(&state, &expected, STARTING)) {
    __atomic_store_n(&starter, pthread_self(), __ATOMIC_RELEASE);
    hz_start();
    atomic_store_explicit(&state, STARTED, memory_order_release);
    return true;
  }
  while (expected != STARTED) {
    if (__atomic_load_n(&starter, __ATOMIC_ACQUIRE) == pthread_self()) return false;
    sched_yield(); // a start takes microseconds, and hardly ever has a second thread to wait for it
    expected = atomic_load_explicit(&state, memory_order_acquire);
  }
  return true;
}

// ---- The boot buffer ----------------------------------------------------------------------------

enum { BUFFER_BYTES = 64 << 10, HEADER_BYTES = HZ_MIN_ALIGN };

static alignas(HZ_MIN_ALIGN) char buffer[BUFFER_BYTES];
static size_t used; // by the starting thread alone

static size_t *size_of(void *p) {
  return (size_t *)(void *)((char *)p - HEADER_BYTES);
}

static bool owns(const void *p) {
  return (uintptr_t)p - (uintptr_t)buffer < BUFFER_BYTES;
}

static void *bump(size_t bytes) {
  const size_t room = BUFFER_BYTES - used;
  if (bytes > room || hz_align_up(bytes, HZ_MIN_ALIGN) + HEADER_BYTES > room) {
    hz_log("the start needs more than %d KiB for its own blocks; is the INI file sane?",
           BUFFER_BYTES >> 10);
    return hz_no_memory();
  }
  char *p = buffer + used + HEADER_BYTES;
  *size_of(p) = hz_align_up(bytes, HZ_MIN_ALIGN);
  used += HEADER_BYTES + *size_of(p);
  return p;
}

static void unbump(void *p) {
  if (!owns(p)) return; // NULL, or a block of the loader's own
  if ((char *)p + *size_of(p) == buffer + used) used = (size_t)((char *)p - HEADER_BYTES - buffer);
}

// ---- The boot table -----------------------------------------------------------------------------

static void *boot_alloc(size_t bytes) {
  return hz_boot() ? hz_active.table.alloc(bytes) : bump(bytes);
}

static void *boot_alloc_zeroed(size_t bytes) {
  if (hz_boot()) return hz_active.table.alloc_zeroed(bytes);
  void *p = bump(bytes);
  return p != NULL ? memset(p, 0, bytes) : NULL;
}

static void *boot_alloc_aligned(size_t align, size_t bytes) {
  if (hz_boot()) return hz_active.table.alloc_aligned(align, bytes);
  return hz_no_memory(); // nothing in the start asks for it
}

static void boot_release(void *p) {
  if (hz_boot()) hz_active.table.release(p);
  else unbump(p);
}

static size_t boot_usable_size(void *p) {
  if (hz_boot()) return hz_active.table.usable_size(p);
  return owns(p) ? *size_of(p) : 0;
}

static void *boot_resize(void *p, size_t bytes) {
  if (hz_boot()) return hz_active.table.resize(p, bytes);
  return bytes <= *size_of(p) ? p : NULL;
}

// The rest of the family: inside the start by the rules, which end in the functions above.
#define HZ_BOOT_ENTRY(name, result, parameters, arguments)                                         \
  static result boot_##name parameters {                                                           \
    return hz_boot() ? hz_active.family.name arguments : hz_rule_##name arguments;                 \
  }
HZ_FAMILY(HZ_BOOT_ENTRY)
#undef HZ_BOOT_ENTRY

struct hz_active hz_active = {.table = {.alloc = boot_alloc,
                                        .alloc_zeroed = boot_alloc_zeroed,
                                        .alloc_aligned = boot_alloc_aligned,
                                        .release = boot_release,
                                        .usable_size = boot_usable_size,
                                        .resize = boot_resize},
                              .family = {
#define HZ_BOOT_SLOT(name, result, parameters, arguments) .name = boot_##name,
                                  HZ_FAMILY(HZ_BOOT_SLOT)
#undef HZ_BOOT_SLOT
                              }};
