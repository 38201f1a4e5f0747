// Strings without libc, for the moments before it can be used: a sanitizer replaces strlen, write
// and the rest by functions that do not work until it has started, and our constructor runs before
// that.
//
// Reads go through volatile, or the compiler would recognise the loops and call libc after all.
#ifndef HZ_CORE_PLAIN_H
#define HZ_CORE_PLAIN_H

#include "core/base.h"

static inline size_t hz_plain_length(const char *text) {
  const volatile char *c = text;
  while (*c != '\0') c++;
  return (size_t)((const char *)c - text);
}

static inline bool hz_plain_begins(const char *text, const char *beginning) {
  const volatile char *t = text, *b = beginning;
  while (*b != '\0' && *t == *b) t++, b++;
  return *b == '\0';
}

// What follows the last slash of a path.
static inline const char *hz_plain_last_part(const char *path) {
  const volatile char *name = path;
  for (const volatile char *c = path; *c != '\0'; c++)
    if (*c == '/') name = c + 1;
  return (const char *)name;
}

#endif
