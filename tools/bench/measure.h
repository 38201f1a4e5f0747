// Runs one command once under one variant and tells what it took: the stop-watch of every
// comparison.
//
// The command runs below a process of its own, forked for it, which waits for it: a program's peak
// RSS begins with what the process that started it holds, not with what that once held. It gets a
// process group of its own, so that all it leaves behind can be ended with it.
#ifndef HZ_TOOLS_BENCH_MEASURE_H
#define HZ_TOOLS_BENCH_MEASURE_H

#include "tools/bench/variant.h"

// How the allocator reaches the program.
enum hz_measure_how {
  HZ_PRELOADED, // the command is the program: LD_PRELOAD is set for it and all that it starts
  HZ_TOLD,      // the command starts the program itself, under HZ_BENCH_PRELOAD and
                // HZ_BENCH_PROFILE: what else it needs must not run under the allocator
};

struct hz_measure_order {
  const struct hz_variant *variant;
  char *const *argv;     // argv[0]: a path, or a name that is looked for in PATH
  char *const *settings; // more variables, "NAME=VALUE", NULL-terminated; NULL: none
  const char *input;     // a file that becomes its stdin; NULL: /dev/null
  enum hz_measure_how how;
  unsigned limit_s; // killed after that many seconds; 0: never
};

enum { HZ_MEASURE_OUTPUT_BYTES = 8192 };

struct hz_measured {
  char *failure; // a sentence, to be freed; NULL: it ended with exit code 0
  bool interrupted;
  int code; // exit code; 128+n: ended by signal n; 126, 127: it could not be started
  double wall_s, user_s, system_s;
  double peak_kib, faults; // of the command and all that it waited for: the largest, the sum
  bool opened; // somebody opened the variant's library meanwhile: the loader, for the program
  // What it wrote, as far as it fits: of stdout the beginning, of stderr the end.
  char out[HZ_MEASURE_OUTPUT_BYTES], err[HZ_MEASURE_OUTPUT_BYTES];
};

// Runs it. Every field of *measured is set.
void hz_measure(const struct hz_measure_order *order, struct hz_measured *measured);

// From now on SIGINT, SIGTERM and SIGHUP end the command that is running, and hz_interrupted says
// so, instead of ending this process.
void hz_catch_interrupts(void);
int hz_interrupted(void); // the signal; 0: none

// The number after "KEY=" at the beginning of a word of `text`. False: there is none, or it is
// infinite.
bool hz_find_figure(const char *text, const char *key, double *figure);

// The word after "KEY=", into a buffer. False: there is none.
bool hz_find_word(const char *text, const char *key, char *word, size_t bytes);

#endif
