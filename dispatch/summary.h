// The state of the heap, gathered for whoever asks: the report at exit, interval reports,
// malloc_stats, malloc_info, mallinfo, mallinfo2.
#ifndef HZ_DISPATCH_SUMMARY_H
#define HZ_DISPATCH_SUMMARY_H

#include "core/base.h"

// Sends a report in the form and to the place that the option `stats` names; nothing if it is off,
// or if the library stepped aside. reason: "exit", "interval". Any thread; does not allocate.
void hz_summary_send(const char *reason);

// Sends a report every stats.interval_s, from slow paths of whichever thread comes by.
void hz_summary_start_interval(void);

#endif
