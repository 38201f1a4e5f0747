// The report: one shot, one truth. A header (version, commit, profile, every effective option with
// its source), then every gauge and every counter, as text for people or as one line of JSON.
//
// The caller gathers, this file writes: it knows options and counters by their rows and gauges as a
// list, never a line. Nothing here allocates; the report normally leaves in a single write, so that
// processes that share a file do not mix their lines.
#ifndef HZ_STATS_REPORT_H
#define HZ_STATS_REPORT_H

#include "config/load.h"
#include "core/base.h"

enum hz_report_format { HZ_REPORT_TEXT, HZ_REPORT_JSON };

enum { HZ_REPORT_SCHEMA = 1 }; // rises when a JSON name disappears or changes its meaning

// A value of this moment, as opposed to a count since start.
struct hz_gauge {
  const char *name, *unit;
  uint64_t value;
  const char *meaning;
};

// Exact calls of one size class. `bytes`: the largest request of the class; UINT64_MAX: all above.
struct hz_exact_class {
  uint64_t bytes;
  uint64_t allocs, frees;
  uint64_t remote_frees; // of the frees, those by a thread other than the one that allocated
};

struct hz_report {
  const struct hz_config *config;       // profile, line, their source, the file that was read
  const struct hz_option_group *groups; // option rows: common ones, then those of the line
  size_t group_count;
  const char *program; // base name of the executable
  const char *reason;  // "exit", "interval", "request"
  uint64_t pid;
  uint64_t wall_ns; // since the library started in this process
  const struct hz_gauge *gauges;
  size_t gauge_count;
  const struct hz_exact_class *exact; // NULL unless stats.exact is on
  size_t exact_count;
};

// Writes the report with all counters of core/counter.h to fd. Any thread. False: fd refused.
bool hz_report_write(const struct hz_report *report, enum hz_report_format format, int fd);

// The same to a file, or to the descriptor of core/log.h where `path` is "". In `path`, %p stands
// for the process id, %e for the program and %% for a percent sign. A file that cannot be opened is
// told in one sentence, and the report goes to the descriptor of core/log.h.
bool hz_report_send(const struct hz_report *report, enum hz_report_format format, const char *path);

#endif
