// The effective configuration, row by row, for whoever prints it.
#include "config/show.h"

#include <stdio.h>

#include "config/options.h"
#include "config/value.h"

// `stats` alone has a part that is no number: "json:/var/log/%e.json".
static void format_value(const struct hz_option *row, const struct hz_config *config,
                         char value[HZ_VALUE_BYTES + HZ_PATH_BYTES]) {
  char plain[HZ_VALUE_BYTES];
  hz_value_format(row, *row->dest, plain);
  bool has_path = row->dest == &hz_common.stats && config->stats_path[0] != '\0';
  snprintf(value, HZ_VALUE_BYTES + HZ_PATH_BYTES, "%s%s%s", plain, has_path ? ":" : "",
           has_path ? config->stats_path : "");
}

void hz_config_show(const struct hz_config_input *input, const struct hz_config *config,
                    void (*line)(void *context, const char *name, const char *value,
                                 const char *unit, const char *source),
                    void *context) {
  line(context, "hakozuna.profile", config->profile->profile->name, "", config->profile_source);
  for (size_t g = 0; g < input->group_count; g++) {
    for (size_t i = 0; i < input->groups[g].count; i++) {
      const struct hz_option *row = &input->groups[g].rows[i];
      char name[128], value[HZ_VALUE_BYTES + HZ_PATH_BYTES];
      snprintf(name, sizeof name, "%s.%s", row->section, row->key);
      format_value(row, config, value);
      line(context, name, value, row->type == HZ_OPTION_COUNT ? row->unit : "",
           hz_config_source(row));
    }
  }
}
