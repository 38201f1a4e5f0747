// The effective configuration as text, each value with its source.
#ifndef HZ_CONFIG_SHOW_H
#define HZ_CONFIG_SHOW_H

#include "config/load.h"

// Calls `line` once per setting, after hz_config_load: first the profile, then the rows in order.
// `name`: "hz3.batch"; `value`: "64", "4M", "500ms"; `unit`: "blocks", or "" where the value says
// it; `source`: as hz_config_source. The texts last for the call only.
void hz_config_show(const struct hz_config_input *input, const struct hz_config *config,
                    void (*line)(void *context, const char *name, const char *value,
                                 const char *unit, const char *source),
                    void *context);

#endif
