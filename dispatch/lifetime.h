// The report at exit: once per process.
#ifndef HZ_DISPATCH_LIFETIME_H
#define HZ_DISPATCH_LIFETIME_H

// A forked child owes a report of its own.
void hz_report_again(void);

#endif
