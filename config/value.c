// Between the text of a value and the number that its option keeps. Pure: no state, no output.
#include "config/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct suffix {
  const char *text;
  uint64_t factor;
};

static const struct suffix none[] = {{"", 1}, {NULL, 0}};
static const struct suffix times[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {NULL, 0}};
// From the largest down, for hz_value_format; "KiB" and the like are read too, never written.
static const struct suffix sizes[] = {
    {"T", HZ_TIB},   {"G", HZ_GIB},   {"M", HZ_MIB},   {"K", HZ_KIB},   {"", 1},
    {"TiB", HZ_TIB}, {"GiB", HZ_GIB}, {"MiB", HZ_MIB}, {"KiB", HZ_KIB}, {NULL, 0},
};

static const struct suffix *suffixes_of(enum hz_option_type type) {
  return type == HZ_OPTION_BYTES ? sizes : type == HZ_OPTION_MS ? times : none;
}

static enum hz_value_result parse_number(const struct hz_option *row, const char *text,
                                         uint64_t *value) {
  uint64_t number = 0;
  bool overflow = false;
  const char *end = text;
  for (; *end >= '0' && *end <= '9'; end++) {
    overflow |= __builtin_mul_overflow(number, 10u, &number);
    overflow |= __builtin_add_overflow(number, (uint64_t)(*end - '0'), &number);
  }
  if (end == text) return HZ_VALUE_MALFORMED;

  const struct suffix *suffix = suffixes_of(row->type);
  while (suffix->text != NULL && strcasecmp(suffix->text, end) != 0) suffix++;
  if (suffix->text == NULL) return HZ_VALUE_MALFORMED;
  overflow |= __builtin_mul_overflow(number, suffix->factor, &number);
  if (overflow || number < row->min || number > row->max) return HZ_VALUE_OUT_OF_RANGE;
  *value = number;
  return HZ_VALUE_OK;
}

static enum hz_value_result parse_name(const char *const *names, const char *text,
                                       uint64_t *value) {
  for (uint64_t i = 0; names[i] != NULL; i++) {
    if (strcasecmp(names[i], text) == 0) {
      *value = i;
      return HZ_VALUE_OK;
    }
  }
  return HZ_VALUE_MALFORMED;
}

static enum hz_value_result parse_bool(const char *text, uint64_t *value) {
  // Even places mean off, odd ones on.
  static const char *const names[] = {"off", "on", "no", "yes", "false", "true", "0", "1", NULL};
  enum hz_value_result result = parse_name(names, text, value);
  if (result == HZ_VALUE_OK) *value &= 1;
  return result;
}

enum hz_value_result hz_value_parse(const struct hz_option *row, const char *text,
                                    uint64_t *value) {
  switch (row->type) {
  case HZ_OPTION_BOOL:
    return parse_bool(text, value);
  case HZ_OPTION_ENUM:
    return parse_name(row->names, text, value);
  default:
    return parse_number(row, text, value);
  }
}

static void format_bytes(uint64_t value, char text[HZ_VALUE_BYTES]) {
  const struct suffix *suffix = sizes;
  while (suffix->factor > 1 && (value == 0 || value % suffix->factor != 0)) suffix++;
  snprintf(text, HZ_VALUE_BYTES, "%" PRIu64 "%s", value / suffix->factor, suffix->text);
}

void hz_value_format(const struct hz_option *row, uint64_t value, char text[HZ_VALUE_BYTES]) {
  switch (row->type) {
  case HZ_OPTION_BYTES:
    format_bytes(value, text);
    return;
  case HZ_OPTION_MS:
    snprintf(text, HZ_VALUE_BYTES, "%" PRIu64 "ms", value);
    return;
  case HZ_OPTION_BOOL:
    snprintf(text, HZ_VALUE_BYTES, "%s", value != 0 ? "on" : "off");
    return;
  case HZ_OPTION_ENUM:
    snprintf(text, HZ_VALUE_BYTES, "%s", row->names[value]);
    return;
  case HZ_OPTION_COUNT:
    snprintf(text, HZ_VALUE_BYTES, "%" PRIu64, value);
    return;
  }
}

static void list_names(const char *const *names, char *text, size_t bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; names[i] != NULL && used < bytes; i++) {
    const char *before = i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ";
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", before, names[i]);
  }
}

void hz_value_expected(const struct hz_option *row, char *text, size_t bytes) {
  switch (row->type) {
  case HZ_OPTION_BYTES:
    snprintf(text, bytes, "a number of bytes such as 4096, 64K, 1M or 2G");
    return;
  case HZ_OPTION_MS:
    snprintf(text, bytes, "a time such as 250, 250ms or 2s");
    return;
  case HZ_OPTION_BOOL:
    snprintf(text, bytes, "on or off");
    return;
  case HZ_OPTION_ENUM:
    list_names(row->names, text, bytes);
    return;
  case HZ_OPTION_COUNT:
    snprintf(text, bytes, "a whole number");
    return;
  }
}
