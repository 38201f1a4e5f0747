// Between the text of a value and the number that its option keeps.
#ifndef HZ_CONFIG_VALUE_H
#define HZ_CONFIG_VALUE_H

#include "config/option.h"

enum hz_value_result { HZ_VALUE_OK, HZ_VALUE_MALFORMED, HZ_VALUE_OUT_OF_RANGE };

enum { HZ_VALUE_BYTES = 64 };

// Reads `text` as a value of the row. *value is written only when the result is HZ_VALUE_OK.
enum hz_value_result hz_value_parse(const struct hz_option *row, const char *text, uint64_t *value);

// Writes a value of the row as hz_value_parse reads it ("64K", "500ms", "on"), always terminated.
void hz_value_format(const struct hz_option *row, uint64_t value, char text[HZ_VALUE_BYTES]);

// What values of the row look like: "a number of bytes such as 4096, 64K, 1M or 2G", "off, text or
// json". Written to `text`, cut to `bytes`.
void hz_value_expected(const struct hz_option *row, char *text, size_t bytes);

#endif
