// What a run of `bench` or `compare` has measured: a table of lanes by allocators, each cell with a
// sample per figure. Filled by the run or read from a file of JSON; the renderers only read it.
#ifndef HZ_TOOLS_BENCH_RESULT_H
#define HZ_TOOLS_BENCH_RESULT_H

#include <stdio.h>

#include "core/base.h"
#include "tools/bench/sample.h"

enum { HZ_ALLOCATORS_MOST = 24, HZ_LANES_MOST = 160 };

// What is measured in each cell. Speed is the lane's own figure, in the lane's unit.
enum hz_figure {
  HZ_SPEED,  // lane->unit; lane->more_is_better
  HZ_PEAK,   // KiB of resident memory at most, above the harness's own where the lane knows it
  HZ_REST,   // KiB resident some time after the frees, above the harness's own; not every lane
  HZ_FREED,  // the same right after the frees, where a lane is about what comes back
  HZ_EARLY,  // the same after a thirtieth of the time
  HZ_FAULTS, // minor page faults
  HZ_USER,   // seconds of CPU time in the program
  HZ_SYSTEM, // seconds of CPU time in the kernel
  HZ_FIGURES
};

// key: in JSON. unit: "" for HZ_SPEED, whose unit is the lane's. brief: heads a column.
struct hz_figure_kind {
  const char *key, *title, *brief, *unit;
};
extern const struct hz_figure_kind hz_figure_kinds[HZ_FIGURES];

// An allocator as it took part.
struct hz_party {
  char *name;    // "hz3", "jemalloc", "mimalloc3"
  char *library; // absolute path of what was preloaded; "" for the C library's own
  char *about;   // version or package, "" where unknown
  char *missing; // why it could not take part, a sentence; NULL: it took part
  bool ours;     // a profile of this library
};

struct hz_cell {
  char *failure; // why there are no figures, a sentence; NULL: none, or not run yet (no samples)
  struct hz_sample figures[HZ_FIGURES]; // count 0: not measured in this lane
};

struct hz_lane_result {
  char *name;    // "t16_main_r90"
  char *group;   // heading under which it is printed: "16 threads", "real programs"
  char *about;   // one phrase: what the lane does
  char *command; // what was run, without the allocator
  char *unit;    // of HZ_SPEED: "Mops/s", "s", "instructions"
  bool more_is_better;
  struct hz_cell cells[HZ_ALLOCATORS_MOST]; // by party
};

struct hz_result {
  char *version, *commit, *date; // of this library; ISO 8601 in UTC
  char *machine, *kernel, *libc; // "AMD EPYC, 2 cores, 24 GiB"; "Linux 6.1"; "glibc 2.36"
  char *command;                 // the whole command line that measured
  double seconds;                // that it took
  size_t rounds;                 // asked for; fewer were done where count of a sample says so
  bool interrupted;
  size_t party_count, lane_count;
  struct hz_party parties[HZ_ALLOCATORS_MOST];
  struct hz_lane_result *lanes[HZ_LANES_MOST];
};

// Never NULL: ends the process with a sentence where there is no memory.
struct hz_result *hz_result_new(void);
void hz_result_free(struct hz_result *result);

// Appends. The texts are copied; the lane's cells are empty.
struct hz_party *hz_result_add_party(struct hz_result *result, const char *name);
struct hz_lane_result *hz_result_add_lane(struct hz_result *result, const char *name);

// Counted instead of timed: the values of its samples show how well the count repeats, and differ by
// no chance that more rounds would even out.
bool hz_lane_is_exact(const struct hz_lane_result *lane);

// NULL: there is none of that name.
const struct hz_lane_result *hz_result_lane(const struct hz_result *result, const char *name);

// Writes the result as JSON ("format": "hakozuna-bench", "format_version": 1) so that what is at
// `path` is always a whole file. Returns an exit code; after an error the sentence was printed.
int hz_result_write(const struct hz_result *result, const char *path);

// Reads what hz_result_write wrote. NULL after a sentence with file, line and what was expected;
// *exit_code is then set.
struct hz_result *hz_result_read(const char *path, int *exit_code);

// Printers. Each writes a whole document or table to `out`.
void hz_result_print_text(const struct hz_result *result, FILE *out);     // result_text.c
void hz_result_print_markdown(const struct hz_result *result, FILE *out); // result_markdown.c

// One self-contained page with a picture per lane, drawn by gnuplot (result_html.c). Returns an
// exit code; after an error the sentence was printed.
int hz_result_write_html(const struct hz_result *result, const char *path);

#endif
