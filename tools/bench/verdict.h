// What a lane says: who is the best of ours and of the others, by how much, and whether that is
// more than noise. The printers differ in form, never in this.
#ifndef HZ_TOOLS_BENCH_VERDICT_H
#define HZ_TOOLS_BENCH_VERDICT_H

#include "tools/bench/result.h"

enum hz_standing {
  HZ_UNKNOWN, // no figures of one of the two
  HZ_AHEAD,   // better beyond noise: more where more is better, less where less is
  HZ_SAME,    // no difference beyond noise
  HZ_BEHIND,
};

// "ahead", "behind", "="; "" where nothing is known.
const char *hz_standing_word(enum hz_standing standing);

// Two allocators in one lane. The ratio is first / second, of rounds in pairs.
struct hz_verdict {
  int first, second; // parties; -1: there is none
  struct hz_summary ratio;
  enum hz_standing standing;
};

// False: it is missing, and has no column and no bar.
bool hz_takes_part(const struct hz_result *result, size_t party);

// The figure of a cell; count 0 where it was not measured, is no number, or the cell has failed.
struct hz_summary hz_cell_figure(const struct hz_lane_result *lane, size_t party,
                                 enum hz_figure figure);

// More is better only in lanes that say so of their speed; of all other figures less is better.
bool hz_more_is_better(const struct hz_lane_result *lane, enum hz_figure figure);

// The party with the best median; -1: nobody has the figure. `except`: a party to leave out, or -1.
int hz_best(const struct hz_result *result, const struct hz_lane_result *lane,
            enum hz_figure figure, int except);

struct hz_verdict hz_verdict_between(const struct hz_lane_result *lane, enum hz_figure figure,
                                     int first, int second);

// By speed: the best of ours against the best of the others.
struct hz_verdict hz_verdict_of(const struct hz_result *result, const struct hz_lane_result *lane);

// The same where both sides take part; where they do not, the best of all against the next.
struct hz_verdict hz_verdict_of_any(const struct hz_result *result,
                                    const struct hz_lane_result *lane);

// A sentence or two on the verdict, speed first, then memory; "" where nothing is known.
void hz_verdict_sentence(char *out, size_t bytes, const struct hz_result *result,
                         const struct hz_lane_result *lane);

// The lanes under one heading. unit: NULL where they differ in unit or direction.
struct hz_group {
  const char *name, *unit;
  size_t count;
  const struct hz_lane_result *lanes[HZ_LANES_MOST];
};

// Fills in the next group and moves *position on, which starts at 0. False: there is no other.
bool hz_group_next(const struct hz_result *result, size_t *position, struct hz_group *group);

// True: a lane of the group has the figure for somebody.
bool hz_group_has(const struct hz_result *result, const struct hz_group *group,
                  enum hz_figure figure);

// In how many lanes we are where. lanes: those with a verdict.
struct hz_tally {
  size_t lanes, ahead, same, behind;
};
struct hz_tally hz_tally_group(const struct hz_result *result, const struct hz_group *group);
struct hz_tally hz_tally_all(const struct hz_result *result);

// "ahead in 3 of 12 lanes beyond noise, behind in 2, no difference in 7", without a full stop.
void hz_tally_words(char *out, size_t bytes, const struct hz_tally *tally);

// "2 of 5 rounds, interrupted", "5 rounds"
void hz_rounds_words(char *out, size_t bytes, const struct hz_result *result);

#endif
