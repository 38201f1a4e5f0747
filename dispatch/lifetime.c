// What happens to the library around main: the constructor, and the report at exit.
//
// The first malloc usually comes before the constructor and has started everything; what needs a
// working libc waits for the constructor. _exit and a deadly signal pass the report by.
#include "dispatch/lifetime.h"

#include "config/options.h"
#include "core/log.h"
#include "dispatch/boot.h"
#include "dispatch/start.h"
#include "dispatch/summary.h"

static _Atomic bool reported;

void hz_report_again(void) {
  atomic_store(&reported, false);
}

// A duplicate of fd 2 keeps a pipe open that a daemon means to close: only for those who asked for
// a report.
__attribute__((constructor)) static void begin(void) {
  hz_boot();
  hz_process_begin();
  if (hz_process.line == NULL) return;
  if (hz_common.stats != HZ_STATS_OFF) hz_log_start();
  hz_summary_start_interval();
}

__attribute__((destructor)) static void end(void) {
  if (!atomic_exchange(&reported, true)) hz_summary_send("exit");
}
