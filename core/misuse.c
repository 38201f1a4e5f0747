// Bad frees, memory's end and our own broken invariants: what is said, and what happens then.
//
// Nothing here allocates or takes a lock. A second problem of the same thread while it is dying
// (a damaged stack can upset the unwinder) ends it at once.
#include "core/misuse.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/backtrace.h"
#include "core/counter.h"
#include "core/lock.h"
#include "core/log.h"

int hz_misuse_action = HZ_MISUSE_ABORT;

static const char *profile_name = "";

static const struct {
  const char *what, *explained;
  enum hz_counter counter;
} kinds[] = {
    [HZ_MISUSE_FOREIGN] = {"foreign free", "no live block of this allocator is there",
                           HZ_COUNT_misuse_foreign},
    [HZ_MISUSE_INTERIOR] = {"interior free", "it points into a block, not at its start",
                            HZ_COUNT_misuse_interior},
    [HZ_MISUSE_DOUBLE] = {"double free", "the block is free already", HZ_COUNT_misuse_double},
};

void hz_misuse_profile(const char *name) {
  profile_name = name;
}

// Call sites that have been reported, by address; 0 is an empty place.
enum { SITE_BITS = 8, SITES = 1 << SITE_BITS };
static _Atomic uintptr_t sites[SITES];

// True for the first caller with this site. A full table answers false: 256 reports are enough.
static bool site_is_new(uintptr_t site) {
  size_t hash = (size_t)((uint64_t)site * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SITE_BITS));
  for (size_t step = 0; step < SITES; step++) {
    _Atomic uintptr_t *place = &sites[(hash + step) % SITES];
    uintptr_t found = 0;
    if (atomic_compare_exchange_strong_explicit(place, &found, site, memory_order_relaxed,
                                                memory_order_relaxed)) {
      return true;
    }
    if (found == site) return false;
  }
  return false;
}

// The first frame outside of this library. Linked into the executable there is no telling, and the
// whole path, folded into one number, takes its place.
static uintptr_t site_of(const struct hz_backtrace *trace) {
  if (trace->first_outside < trace->count) return trace->frames[trace->first_outside];
  uintptr_t folded = 1;
  for (size_t i = 0; i < trace->count; i++) folded = folded * 31 + trace->frames[i];
  return folded != 0 ? folded : 1;
}

static void log_misuse(enum hz_misuse_kind kind, const void *p, const char *knows,
                       const char *then) {
  bool known = knows != NULL && knows[0] != '\0', named = profile_name[0] != '\0';
  hz_log("%s of %p: %s%s%s%s%s%s. %s", kinds[kind].what, p, kinds[kind].explained,
         known ? "; " : "", known ? knows : "", named ? " (profile " : "", profile_name,
         named ? ")" : "", then);
}

static void report(enum hz_misuse_kind kind, const void *p, const char *knows) {
  struct hz_backtrace trace;
  hz_backtrace_take(&trace);
  if (!site_is_new(site_of(&trace))) return;
  log_misuse(kind, p, knows,
             "The call is dropped and its place in the program not reported again.");
  hz_backtrace_log(&trace);
}

// The program's own handler of SIGABRT may be what got us here again, so it is not asked twice.
static void leave_if_dying(void) {
  static _Atomic uintptr_t dying;
  uintptr_t self = (uintptr_t)pthread_self();
  if (atomic_exchange_explicit(&dying, self, memory_order_relaxed) != self) return;
  signal(SIGABRT, SIG_DFL);
  abort();
}

_Noreturn static void die_with_backtrace(void) {
  struct hz_backtrace trace;
  hz_backtrace_take(&trace);
  hz_backtrace_log(&trace);
  abort();
}

void hz_misuse(enum hz_misuse_kind kind, const void *p, const char *knows) {
  int saved = errno;
  hz_count(kinds[kind].counter, 1);
  if (hz_misuse_action == HZ_MISUSE_ABORT) {
    leave_if_dying();
    log_misuse(kind, p, knows,
               "The program is stopped here; HAKOZUNA_ON_MISUSE=report drops such calls instead.");
    die_with_backtrace();
  }
  if (hz_misuse_action == HZ_MISUSE_REPORT) report(kind, p, knows);
  errno = saved;
}

void *hz_no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

void hz_broken(const char *file, int line, const char *condition) {
  leave_if_dying();
  // Whatever locks are held: the backtrace, or the program's handler of SIGABRT, may allocate.
  atomic_store_explicit(&hz_lock_fork_thread, __builtin_thread_pointer(), memory_order_relaxed);
  hz_log(
      "%s:%d: `%s` does not hold, so the heap cannot be trusted and the program is stopped. This "
      "is damage done by the program or a mistake in hakozuna.",
      file, line, condition);
  die_with_backtrace();
}
