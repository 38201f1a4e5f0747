// One row per option: parsing, range checks, `hakozuna config show` and the README's reference all
// come from these rows. A line brings its own rows (lines/line.h).
#ifndef HZ_CONFIG_OPTION_H
#define HZ_CONFIG_OPTION_H

#include "core/base.h"

enum hz_option_type {
  HZ_OPTION_COUNT, // a plain number
  HZ_OPTION_BYTES, // a number with an optional suffix: 64K, 1M, 2G, 1T (powers of 1024)
  HZ_OPTION_MS,    // milliseconds: 250, 250ms, 2s
  HZ_OPTION_BOOL,  // on | off (also yes/no, true/false, 1/0), stored as 1 or 0
  HZ_OPTION_ENUM,  // one of `names`, stored as its index
};

struct hz_option {
  const char *section; // "hakozuna", "purge", "arena", "hz3", ...
  const char *key;
  enum hz_option_type type;
  const char *unit;         // "blocks", "bytes", "ms", "" ...
  uint64_t value;           // the default
  uint64_t min, max;        // inclusive; unused for BOOL and ENUM
  const char *const *names; // ENUM: NULL-terminated list
  uint64_t *dest;           // where the effective value goes; written once, before the line starts
  const char *help;         // one sentence
};

// Rows that belong together: the common ones, or those of one line.
struct hz_option_group {
  const struct hz_option *rows;
  size_t count;
};

// A value that a profile gives to an option of its line, or to a common one.
struct hz_setting {
  const char *section, *key;
  uint64_t value;
};

// A profile is a row of data. `trades`: one sentence on what it gives and what it costs.
// `settings` ends with a row whose section is NULL.
struct hz_profile {
  const char *name;
  const char *summary;
  const char *trades;
  const struct hz_setting *settings;
};

#endif
