// Joins the common option rows with the catalogue of lines. Whoever else combines the two: the
// library's own start.
#include "tools/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/nearest.h"
#include "config/options.h"
#include "core/log.h"
#include "core/misuse.h"
#include "tools/command.h"

enum { GROUPS_MAX = 16, PROFILES_MAX = 128 }; // far above what the catalogue holds; checked

static struct hz_option_group groups[GROUPS_MAX];
static struct hz_profile_entry profiles[PROFILES_MAX];

static size_t gather_groups(void) {
  size_t count = 0;
  groups[count++] = hz_common_options;
  for (size_t i = 0; i < hz_line_catalog_count; i++) {
    const struct hz_line_info *line = hz_line_catalog[i];
    HZ_CHECK(count < GROUPS_MAX);
    groups[count++] = (struct hz_option_group){line->options, line->option_count};
  }
  return count;
}

static size_t gather_profiles(void) {
  size_t count = 0;
  for (size_t i = 0; i < hz_line_catalog_count; i++) {
    const struct hz_line_info *line = hz_line_catalog[i];
    for (size_t j = 0; j < line->profile_count; j++) {
      HZ_CHECK(count < PROFILES_MAX);
      profiles[count++] = (struct hz_profile_entry){line->name, &line->profiles[j]};
    }
  }
  return count;
}

struct hz_config_input hz_settings_input(void) {
  return (struct hz_config_input){
      .environment = (const char *const *)environ,
      .program = "",
      .groups = groups,
      .group_count = gather_groups(),
      .profiles = profiles,
      .profile_count = gather_profiles(),
  };
}

bool hz_profile_find(const char *name, struct hz_found_profile *found) {
  struct hz_nearest nearest = {.word = name};
  for (size_t i = 0; i < hz_line_catalog_count; i++) {
    const struct hz_line_info *line = hz_line_catalog[i];
    for (size_t j = 0; j < line->profile_count; j++) {
      *found = (struct hz_found_profile){line, &line->profiles[j]};
      if (strcmp(line->profiles[j].name, name) == 0) return true;
      hz_nearest_offer(&nearest, line->profiles[j].name);
    }
  }
  hz_log("there is no profile \"%s\"; the nearest one is %s. `hakozuna profiles` lists all.", name,
         nearest.best);
  return false;
}

const struct hz_option *hz_option_find(const char *section, const char *key) {
  struct hz_config_input input = hz_settings_input();
  for (size_t i = 0; i < input.group_count; i++) {
    for (size_t j = 0; j < input.groups[i].count; j++) {
      const struct hz_option *row = &input.groups[i].rows[j];
      if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0) return row;
    }
  }
  return NULL;
}

int hz_readable_file(const char *setting, const char *path, char *absolute) {
  struct stat status;
  bool found = realpath(path, absolute) && stat(absolute, &status) == 0;
  if (found && S_ISDIR(status.st_mode)) {
    found = false;
    errno = EISDIR;
  }
  if (found && access(absolute, R_OK) == 0) return HZ_EXIT_OK;
  hz_log("%s %s: %s; name a file that can be read.", setting, path, strerror(errno));
  return HZ_EXIT_NO_FILE;
}
