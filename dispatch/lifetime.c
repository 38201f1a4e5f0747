// What happens to the library around main: the constructor, fork, and the report at exit.
//
// The first malloc usually comes before the constructor and has started everything; what needs a
// working libc waits for the constructor. Fork handlers registered early run late before a fork, so
// those of other libraries may still allocate. _exit and a deadly signal pass the report by.
#include <pthread.h>

#include "config/options.h"
#include "core/counter.h"
#include "core/log.h"
#include "core/thread.h"
#include "dispatch/boot.h"
#include "dispatch/exact.h"
#include "dispatch/start.h"
#include "dispatch/summary.h"

static _Atomic bool reported;

// The child counts from zero and reports as itself.
static void fork_child(void) {
  hz_fork_child();
  hz_counters_reset();
  hz_exact_reset();
  hz_process.start_ns = hz_now_ns();
  atomic_store(&reported, false);
}

// A duplicate of fd 2 keeps a pipe open that a daemon means to close: only for those who asked for a
// report.
__attribute__((constructor)) static void begin(void) {
  hz_boot();
  if (hz_process.line == NULL) return;
  if (hz_common.stats != HZ_STATS_OFF) hz_log_start();
  hz_summary_start_interval();
  if (pthread_atfork(hz_fork_prepare, hz_fork_parent, fork_child) != 0)
    hz_log("no memory for fork handlers in %s: a forked child may hang in malloc",
           hz_process.program);
}

__attribute__((destructor)) static void end(void) {
  if (!atomic_exchange(&reported, true)) hz_summary_send("exit");
}
