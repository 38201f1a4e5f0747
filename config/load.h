// From defaults, profile, INI file and environment to effective values, each with its source.
//
// Later wins: built-in default < profile row < [section] of the file < [program:NAME] of the file
// (whose keys are `key` for section hakozuna, `section.key` for others) < environment.
// File: $HAKOZUNA_CONFIG, else $XDG_CONFIG_HOME/hakozuna.ini (without the variable:
// ~/.config/hakozuna.ini), else /etc/hakozuna.ini; HAKOZUNA_CONFIG=/dev/null reads none. A secure
// (setuid) process reads only /etc/hakozuna.ini and no variable. An empty variable counts as unset.
//
// A wrong name or value never stops anything here: it is told in one sentence (source, value,
// nearest valid one), and what it would have changed keeps its value. Nothing here allocates (inih
// does, once): it runs inside the first malloc of a process. One thread, once per process; again
// only in tests.
#ifndef HZ_CONFIG_LOAD_H
#define HZ_CONFIG_LOAD_H

#include "config/option.h"
#include "core/base.h"

struct hz_profile_entry {
  const char *line; // "hz3"
  const struct hz_profile *profile;
};

struct hz_config_input {
  const char *const *environment; // NULL-terminated, as environ; NULL: /proc/self/environ is read
  const char *program;            // base name of the executable, for [program:NAME]
  bool secure;                    // getauxval(AT_SECURE)
  const char *system_file;        // NULL: /etc/hakozuna.ini
  bool check_programs;            // also checks the [program:NAME] sections of other programs
  const struct hz_option_group *groups; // common rows, then those of every line
  size_t group_count;
  const struct hz_profile_entry *profiles; // the first is the default
  size_t profile_count;
  // Called for each problem with a whole sentence (source, value, nearest valid). NULL: hz_log.
  void (*problem)(void *context, const char *sentence);
  void *context;
};

enum { HZ_PATH_BYTES = 512, HZ_SOURCE_BYTES = 96 };

struct hz_config {
  const struct hz_profile_entry *profile;
  char profile_source[HZ_SOURCE_BYTES]; // "default", "HAKOZUNA_PROFILE", "/etc/hakozuna.ini:3" ...
  char file[HZ_PATH_BYTES];             // the INI file that was read, or ""
  char stats_path[HZ_PATH_BYTES]; // PATH of `stats = json:PATH` or text:PATH; "": core/log.h's
  bool strict;                    // option `strict`: the caller exits with 78 on problems
  unsigned problems;
};

// Writes every row's effective value through its `dest` and fills `config`. The rows, profiles and
// names of `input` must outlive the process' use of hz_config_source.
void hz_config_load(const struct hz_config_input *input, struct hz_config *config);

// Where the effective value of a row came from, after hz_config_load: "default", "profile hz3-r90",
// "/etc/hakozuna.ini:12", "HAKOZUNA_OPTIONS". Points to static storage.
const char *hz_config_source(const struct hz_option *row);

#endif
