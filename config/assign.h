// One setting at a time: finds its row or profile, checks the value, and lets the strongest source
// win, in whatever order the settings arrive. Inner part of config/load.
#ifndef HZ_CONFIG_ASSIGN_H
#define HZ_CONFIG_ASSIGN_H

#include "config/load.h"

// Sources by strength. A setting replaces one of its own rank or a weaker one.
enum hz_rank {
  HZ_RANK_DEFAULT,
  HZ_RANK_PROFILE,
  HZ_RANK_SECTION,
  HZ_RANK_PROGRAM,
  HZ_RANK_ENVIRONMENT,
};

struct hz_load {
  const struct hz_config_input *input;
  struct hz_config *config;
  enum hz_rank profile_rank; // of what chose config->profile
};

struct hz_setting_text {
  enum hz_rank rank;
  const char *source; // for messages and hz_config_source: "/etc/hakozuna.ini:12", "HAKOZUNA_STATS"
  const char *section, *key; // a key of section "hakozuna" may be "section.key"
  const char *value;
  bool check_only; // told when wrong, otherwise without effect
};

// All rows get their defaults; the profile is the first one.
void hz_assign_defaults(struct hz_load *load);

// One setting from a file or a variable, the profile's name included.
void hz_assign(struct hz_load *load, const struct hz_setting_text *setting);

// The chosen profile's values, for rows that nothing stronger has set. Last of all.
void hz_assign_profile(struct hz_load *load);

// Tells one problem: a whole sentence. Counts it.
void hz_config_problem(struct hz_load *load, const char *format, ...) HZ_PRINTF(2, 3);

#endif
