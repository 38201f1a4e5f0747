// The configuration as the library would see it: what every hz_config_load of the command has in
// common.
#ifndef HZ_TOOLS_SETTINGS_H
#define HZ_TOOLS_SETTINGS_H

#include "config/load.h"
#include "lines/catalog.h"

// Common rows, the rows of every line, every profile; this process's environment; program "".
// The caller sets the other fields. The rows and profiles live as long as the process.
struct hz_config_input hz_settings_input(void);

// A profile by name, with its line; NULL, after a sentence that names the nearest one.
struct hz_found_profile {
  const struct hz_line_info *line;
  const struct hz_profile *profile;
};
bool hz_profile_find(const char *name, struct hz_found_profile *found);

// The row of a profile's setting: among the common ones or those of any line. NULL: none.
const struct hz_option *hz_option_find(const char *section, const char *key);

// Makes `path` absolute (setting, a name such as "--config", is for the sentence) and checks that
// it can be read. absolute: PATH_MAX bytes. Returns HZ_EXIT_OK or, after a sentence,
// HZ_EXIT_NO_FILE.
int hz_readable_file(const char *setting, const char *path, char *absolute);

#endif
