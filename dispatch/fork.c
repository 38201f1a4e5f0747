// Fork handlers: see dispatch/fork.h.
//
// fork() itself takes libc's list of open streams after all handlers have run. A thread that holds
// the list may be waiting for a lock of ours (fflush(NULL) waits for a stream whose first read
// allocates its buffer), so the list comes before our locks here too. It counts how often one
// thread has taken it; libc sets it free again in the child, and only if there were other threads.
#include "dispatch/fork.h"

#include <pthread.h>

#include "core/counter.h"
#include "core/log.h"
#include "core/thread.h"
#include "dispatch/exact.h"
#include "dispatch/lifetime.h"
#include "dispatch/start.h"

// Of libc, in no header.
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

static bool holds_streams; // guarded by what it tells of

static bool streams_have_a_lock(void) {
  return _IO_list_lock != NULL && _IO_list_unlock != NULL && &__libc_single_threaded != NULL &&
         !__libc_single_threaded;
}

static void prepare(void) {
  const bool take = streams_have_a_lock();
  if (take) _IO_list_lock();
  holds_streams = take;
  hz_fork_prepare();
}

static void parent(void) {
  hz_fork_parent();
  if (!holds_streams) return;
  holds_streams = false;
  _IO_list_unlock();
}

static void child(void) {
  holds_streams = false;
  hz_fork_child();
  hz_counters_reset();
  hz_exact_reset();
  hz_process.start_ns = hz_now_ns();
  hz_report_again();
}

void hz_fork_start(void) {
  if (pthread_atfork(prepare, parent, child) != 0)
    hz_log("no memory for fork handlers in %s: a forked child may hang in malloc",
           hz_process.program);
}
