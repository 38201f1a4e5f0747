// What a measurement was taken on.
#ifndef HZ_TOOLS_BENCH_MACHINE_H
#define HZ_TOOLS_BENCH_MACHINE_H

#include "tools/bench/result.h"

// Fills the header of a result: this library's version, the machine, the time, and the command line
// (NULL-terminated words; the first is the command's name).
void hz_machine_describe(struct hz_result *result, char *const argv[]);

#endif
