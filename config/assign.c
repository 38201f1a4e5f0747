// One setting at a time, weighed by the strength of its source.
//
// Each row remembers who set it. That makes the order of arrival irrelevant, so that the file is
// parsed once although the profile, which the file may name, is weaker than the file's settings.
#include "config/assign.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/nearest.h"
#include "config/options.h"
#include "config/text.h"
#include "config/value.h"
#include "core/log.h"
#include "core/misuse.h"

// Rows that something other than their default has set.
enum { MAX_ROWS = 256, NAME_BYTES = 64 };

struct origin {
  const struct hz_option *row;
  enum hz_rank rank;
  char source[HZ_SOURCE_BYTES];
};

static struct origin origins[MAX_ROWS];
static size_t origin_count;

static struct origin *origin_find(const struct hz_option *row) {
  for (size_t i = 0; i < origin_count; i++) {
    if (origins[i].row == row) return &origins[i];
  }
  return NULL;
}

// A long path loses its beginning: the file's name and the line number are at the end.
static void copy_source(char to[HZ_SOURCE_BYTES], const char *source) {
  size_t length = strlen(source);
  bool fits = length < HZ_SOURCE_BYTES;
  hz_text_join(to, HZ_SOURCE_BYTES, fits ? "" : "...",
               fits ? source : source + length - (HZ_SOURCE_BYTES - 4));
}

const char *hz_config_source(const struct hz_option *row) {
  const struct origin *origin = origin_find(row);
  return origin != NULL ? origin->source : "default";
}

void hz_config_problem(struct hz_load *load, const char *format, ...) {
  char sentence[HZ_LOG_LINE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  load->config->problems++;
  if (load->input->problem != NULL) {
    load->input->problem(load->input->context, sentence);
  } else {
    hz_log("%s", sentence);
  }
}

void hz_assign_defaults(struct hz_load *load) {
  const struct hz_config_input *in = load->input;
  size_t total = 0;
  origin_count = 0;
  for (size_t g = 0; g < in->group_count; g++) {
    for (size_t i = 0; i < in->groups[g].count; i++) {
      *in->groups[g].rows[i].dest = in->groups[g].rows[i].value;
    }
    total += in->groups[g].count;
  }
  HZ_CHECK(total <= MAX_ROWS);
  load->profile_rank = HZ_RANK_DEFAULT;
  load->config->profile = &in->profiles[0];
  copy_source(load->config->profile_source, "default");
}

static const struct hz_option *row_find(const struct hz_config_input *in, const char *section,
                                        const char *key) {
  for (size_t g = 0; g < in->group_count; g++) {
    for (size_t i = 0; i < in->groups[g].count; i++) {
      const struct hz_option *row = &in->groups[g].rows[i];
      if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0) return row;
    }
  }
  return NULL;
}

// False: a stronger source has set the row, and this value has no effect.
static bool row_set(const struct hz_option *row, uint64_t value, enum hz_rank rank,
                    const char *source) {
  struct origin *origin = origin_find(row);
  if (origin == NULL) {
    origin = &origins[origin_count++];
    origin->row = row;
  } else if (origin->rank > rank) {
    return false;
  }
  origin->rank = rank;
  copy_source(origin->source, source);
  *row->dest = value;
  return true;
}

static void assign_profile_name(struct hz_load *load, const struct hz_setting_text *setting) {
  const struct hz_config_input *in = load->input;
  struct hz_nearest nearest = {.word = setting->value};
  for (size_t i = 0; i < in->profile_count; i++) {
    if (strcmp(in->profiles[i].profile->name, setting->value) == 0) {
      if (setting->check_only || setting->rank < load->profile_rank) return;
      load->profile_rank = setting->rank;
      load->config->profile = &in->profiles[i];
      copy_source(load->config->profile_source, setting->source);
      return;
    }
    hz_nearest_offer(&nearest, in->profiles[i].profile->name);
  }
  hz_config_problem(
      load,
      "%s: there is no profile \"%s\"; the nearest is \"%s\". The setting is ignored; "
      "`hakozuna profiles` lists all.",
      setting->source, setting->value, nearest.best);
}

static void tell_unknown_key(struct hz_load *load, const struct hz_setting_text *setting) {
  const struct hz_config_input *in = load->input;
  bool common = strcmp(setting->section, "hakozuna") == 0;
  struct hz_nearest key = {.word = setting->key}, section = {.word = setting->section};
  bool section_known = common;
  hz_nearest_offer(&section, "hakozuna");
  if (common) hz_nearest_offer(&key, "profile");
  for (size_t g = 0; g < in->group_count; g++) {
    for (size_t i = 0; i < in->groups[g].count; i++) {
      const struct hz_option *row = &in->groups[g].rows[i];
      hz_nearest_offer(&section, row->section);
      if (strcmp(row->section, setting->section) != 0) continue;
      section_known = true;
      hz_nearest_offer(&key, row->key);
    }
  }
  if (section_known) {
    hz_config_problem(load,
                      "%s: section \"%s\" has no key \"%s\"; the nearest is \"%s\". The setting is "
                      "ignored; `hakozuna config show` lists all.",
                      setting->source, setting->section, setting->key, key.best);
  } else {
    hz_config_problem(
        load,
        "%s: \"%s\" is in no known section: \"%s\" is none, the nearest is \"%s\". The "
        "setting is ignored; settings for one program stand under [program:NAME].",
        setting->source, setting->key, setting->section, section.best);
  }
}

static void tell_malformed(struct hz_load *load, const struct hz_setting_text *setting,
                           const struct hz_option *row) {
  char expected[256];
  hz_value_expected(row, expected, sizeof expected);
  struct hz_nearest nearest = {.word = setting->value};
  for (size_t i = 0; row->type == HZ_OPTION_ENUM && row->names[i] != NULL; i++) {
    hz_nearest_offer(&nearest, row->names[i]);
  }
  bool named = nearest.best != NULL;
  hz_config_problem(load, "%s: %s.%s takes %s, not \"%s\"%s%s%s. The setting is ignored.",
                    setting->source, row->section, row->key, expected, setting->value,
                    named ? "; the nearest is \"" : "", named ? nearest.best : "",
                    named ? "\"" : "");
}

static void tell_out_of_range(struct hz_load *load, const struct hz_setting_text *setting,
                              const struct hz_option *row) {
  char min[HZ_VALUE_BYTES], max[HZ_VALUE_BYTES];
  hz_value_format(row, row->min, min);
  hz_value_format(row, row->max, max);
  hz_config_problem(load, "%s: %s.%s must be from %s to %s, not \"%s\". The setting is ignored.",
                    setting->source, row->section, row->key, min, max, setting->value);
}

// `stats = json:PATH`: cuts the value at the first colon into `format`. Returns the path or "".
static const char *split_stats_path(const char *value, char format[NAME_BYTES]) {
  const char *colon = strchr(value, ':');
  size_t length = colon != NULL ? (size_t)(colon - value) : strlen(value);
  snprintf(format, NAME_BYTES, "%.*s", (int)length, value);
  return colon != NULL ? colon + 1 : "";
}

static void assign_row(struct hz_load *load, const struct hz_setting_text *setting,
                       const struct hz_option *row) {
  bool is_stats = row->dest == &hz_common.stats;
  char format[NAME_BYTES];
  const char *path = is_stats ? split_stats_path(setting->value, format) : "";
  if (strlen(path) >= HZ_PATH_BYTES) {
    hz_config_problem(load,
                      "%s: the path of %s.%s has %zu bytes, %d at most. The setting is ignored.",
                      setting->source, row->section, row->key, strlen(path), HZ_PATH_BYTES - 1);
    return;
  }
  uint64_t value;
  switch (hz_value_parse(row, is_stats ? format : setting->value, &value)) {
  case HZ_VALUE_MALFORMED:
    tell_malformed(load, setting, row);
    return;
  case HZ_VALUE_OUT_OF_RANGE:
    tell_out_of_range(load, setting, row);
    return;
  case HZ_VALUE_OK:
    break;
  }
  if (setting->check_only || !row_set(row, value, setting->rank, setting->source)) return;
  if (is_stats) snprintf(load->config->stats_path, HZ_PATH_BYTES, "%s", path);
}

// "section.key" under [hakozuna], [program:NAME] and in HAKOZUNA_OPTIONS: the part before the first
// dot is the section. `section` holds it for the caller.
static struct hz_setting_text resolve_dot(const struct hz_setting_text *setting,
                                          char section[NAME_BYTES]) {
  struct hz_setting_text resolved = *setting;
  const char *dot = strchr(setting->key, '.');
  if (dot == NULL || strcmp(setting->section, "hakozuna") != 0) return resolved;
  snprintf(section, NAME_BYTES, "%.*s", (int)(dot - setting->key), setting->key);
  resolved.section = section;
  resolved.key = dot + 1;
  return resolved;
}

void hz_assign(struct hz_load *load, const struct hz_setting_text *setting) {
  char section[NAME_BYTES];
  struct hz_setting_text resolved = resolve_dot(setting, section);
  if (strcmp(resolved.section, "hakozuna") == 0 && strcmp(resolved.key, "profile") == 0) {
    assign_profile_name(load, &resolved);
    return;
  }
  const struct hz_option *row = row_find(load->input, resolved.section, resolved.key);
  if (row != NULL) {
    assign_row(load, &resolved, row);
  } else {
    tell_unknown_key(load, &resolved);
  }
}

// A profile that names a row that does not exist is a mistake of ours, which the tests of the
// catalogue find.
void hz_assign_profile(struct hz_load *load) {
  const struct hz_profile *profile = load->config->profile->profile;
  char source[HZ_SOURCE_BYTES];
  hz_text_join(source, sizeof source, "profile ", profile->name);
  for (const struct hz_setting *s = profile->settings; s != NULL && s->section != NULL; s++) {
    const struct hz_option *row = row_find(load->input, s->section, s->key);
    HZ_CHECK(row != NULL);
    row_set(row, s->value, HZ_RANK_PROFILE, source);
  }
}
