// A run of lanes under several allocators: what is to be done, and doing it.
#ifndef HZ_TOOLS_BENCH_PLAN_H
#define HZ_TOOLS_BENCH_PLAN_H

#include "tools/bench/lanes.h"
#include "tools/bench/result.h"
#include "tools/bench/variant.h"

struct hz_plan {
  struct hz_variants variants;
  const struct hz_lane *lanes[HZ_LANES_MOST];
  size_t lane_count;
  bool named; // the user chose the lanes: one that cannot be run here is a failure
  size_t rounds;
  double seconds;  // how long a program of bench works in a run
  bool quick;      // shorter rests, too
  const char *bin; // the folder of the compiled programs
};

// Makes the variants the parties of a result, in their order.
void hz_plan_add_parties(const struct hz_variants *variants, struct hz_result *result);

// Fills the parties and the empty lanes of a new result.
void hz_plan_prepare(const struct hz_plan *plan, struct hz_result *result);

// Runs everything in the current folder, round by round, and within a lane one allocator after the other, so that what
// the machine does meanwhile meets all of them. A run that fails is told at once and ends its cell;
// the others go on. Ends early when hz_interrupted. True: none of ours failed,
// and none that the user named failed or was missing.
bool hz_plan_carry_out(const struct hz_plan *plan, struct hz_result *result);

// How long a run may work so that everything together takes about that long.
double hz_plan_seconds_for(const struct hz_plan *plan, double total_s);

#endif
