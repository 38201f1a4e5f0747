// What happens when a program frees what it must not, or when memory ends.
//
// Lines find out; this file decides: abort (default), report once per call site, or ignore.
#ifndef HZ_CORE_MISUSE_H
#define HZ_CORE_MISUSE_H

#include "core/base.h"

enum hz_misuse_kind {
  HZ_MISUSE_FOREIGN,  // no block of ours was ever there, or its memory has been given back since
  HZ_MISUSE_INTERIOR, // inside a block, not at its start
  HZ_MISUSE_DOUBLE,   // the block is already free
};

enum hz_misuse_action { HZ_MISUSE_ABORT, HZ_MISUSE_REPORT, HZ_MISUSE_IGNORE };

// Set by configuration (`on_misuse`), HZ_MISUSE_ABORT until then.
extern int hz_misuse_action;

// The profile that messages name; kept, not copied. Before it is called they name none.
void hz_misuse_profile(const char *name);

// Reports a bad free, realloc or usable_size of `p`. `knows`: what the line knows of the place, as
// a phrase ("a block of 64 bytes of hz3, 16 bytes after its start"), or NULL. With the action
// `abort` it prints one line and a backtrace and does not return; otherwise it counts, reports as
// configured, and returns: the caller then drops the block. Any thread, no lock of ours held.
HZ_SLOW void hz_misuse(enum hz_misuse_kind kind, const void *p, const char *knows);

// Sets errno to ENOMEM and returns NULL: the one place that does.
HZ_SLOW void *hz_no_memory(void);

// A broken invariant of our own: prints file, line and the condition, then aborts.
_Noreturn HZ_SLOW void hz_broken(const char *file, int line, const char *condition);

#define HZ_CHECK(condition)                                                                        \
  (hz_likely(condition) ? (void)0 : hz_broken(__FILE__, __LINE__, #condition))
#define HZ_ASSERT(condition) (HZ_DEBUG ? HZ_CHECK(condition) : (void)0)

#endif
