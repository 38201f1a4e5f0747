// How output looks: colour on a terminal, plain text in a pipe, strings in JSON.
#ifndef HZ_TOOLS_PRINT_H
#define HZ_TOOLS_PRINT_H

#include <stdio.h>

#include "core/base.h"

// Escape sequences; empty strings where `out` is no terminal, NO_COLOR is set, or TERM is "dumb".
struct hz_style {
  const char *bold, *dim, *good, *note, *bad, *off;
};
const struct hz_style *hz_style(FILE *out);

// True: a person looks at it, so tables get headings and aligned columns.
bool hz_is_terminal(FILE *out);

// Formats into out, cut where it does not fit: for paths and messages whose length users decide.
void hz_format(char *out, size_t bytes, const char *format, ...) HZ_PRINTF(3, 4);

// Writes s between double quotes, escaped. NULL is written as null.
void hz_json_string(FILE *out, const char *s);

// Writes `,"name":"value"`; the first member of an object is written by the caller.
void hz_json_member(FILE *out, const char *name, const char *value);

#endif
