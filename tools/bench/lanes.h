// The lanes of `hakozuna bench`: what is run in each, and what its figure means. Pure data.
#ifndef HZ_TOOLS_BENCH_LANES_H
#define HZ_TOOLS_BENCH_LANES_H

#include "core/base.h"

enum hz_lane_kind {
  HZ_LANE_PROGRAM,      // one of bench/*.c: tells its own speed, memory, and who served it
  HZ_LANE_COMMAND,      // a real program, run to its end: speed is the time it took
  HZ_LANE_SERVICE,      // a script of bench/real that starts a server, and its clients beside it
  HZ_LANE_INSTRUCTIONS, // bench/pair.c under callgrind
};

struct hz_lane {
  char name[40];
  const char *group, *about;
  const char *unit; // of its speed
  bool more_is_better;
  enum hz_lane_kind kind;
  // Words separated by blanks. Those with a = in front of all others are variables of its
  // environment, as a shell has it. The program is one of bench (HZ_LANE_PROGRAM and
  // HZ_LANE_INSTRUCTIONS, without its folder), of the system, or a path below the checkout. "%s"
  // stands for the seconds of a run.
  char command[200];
  unsigned rest_ms;  // how long a program rests at its end, where the lane is about that; else 0
  const char *input; // what the command reads, a path below the checkout; NULL: nothing
};

// Every lane, in the order in which they are printed. *count: how many.
const struct hz_lane *hz_lanes(size_t *count);

#endif
