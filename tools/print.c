// Colour, JSON strings and cut texts. Every subcommand prints through stdio; this file holds what
// they share.
#include "tools/print.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hz_is_terminal(FILE *out) {
  return isatty(fileno(out));
}

// https://no-color.org: any non-empty value switches colour off.
static bool colour_wanted(FILE *out) {
  const char *no_color = getenv("NO_COLOR");
  const char *term = getenv("TERM");
  if (no_color && *no_color) return false;
  return hz_is_terminal(out) && term && strcmp(term, "dumb") != 0;
}

const struct hz_style *hz_style(FILE *out) {
  static const struct hz_style plain = {"", "", "", "", "", ""};
  static const struct hz_style colour = {"\033[1m",  "\033[2m",  "\033[32m",
                                         "\033[33m", "\033[31m", "\033[0m"};
  return colour_wanted(out) ? &colour : &plain;
}

void hz_format(char *out, size_t bytes, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out, bytes, format, arguments);
  va_end(arguments);
}

void hz_json_string(FILE *out, const char *s) {
  if (!s) {
    fputs("null", out);
    return;
  }
  putc('"', out);
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
    else if (c < 0x20) fprintf(out, "\\u%04x", c);
    else putc(c, out);
  }
  putc('"', out);
}

void hz_json_member(FILE *out, const char *name, const char *value) {
  putc(',', out);
  hz_json_string(out, name);
  putc(':', out);
  hz_json_string(out, value);
}
