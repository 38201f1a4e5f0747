// The start of a process, and what it has decided.
#ifndef HZ_DISPATCH_START_H
#define HZ_DISPATCH_START_H

#include "config/load.h"
#include "core/base.h"
#include "dispatch/neighbours.h"
#include "lines/line.h"

// Written by hz_start, then constant.
struct hz_process {
  const char *program; // base name of the executable as it was called
  const struct hz_line
      *line; // the line that runs; NULL until then, and if the library stepped aside
  struct hz_config config;
  struct hz_neighbours neighbours;
  struct hz_option_group options[2]; // of the report: the common ones, then the line's
  uint64_t start_ns;                 // CLOCK_MONOTONIC; a forked child begins anew
};
extern struct hz_process hz_process;

// Neighbours, configuration, core, line, table: in this order. Called by boot.c alone, once. Where
// no line can start the library steps aside. Under HAKOZUNA_STRICT a problem with the configuration
// ends the process with code 78.
void hz_start(void);

// From the constructor: says what could not be said inside the first call.
void hz_process_begin(void);

// The name of the profile that runs, "none" if the library stepped aside. Starts it if need be.
const char *hz_process_profile(void);

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t hz_now_ns(void);

#endif
