// Joining two strings without snprintf: its first call maps 64 KiB of libc into a process that
// would do without, and every start of a process comes by here.
#ifndef HZ_CONFIG_TEXT_H
#define HZ_CONFIG_TEXT_H

#include <string.h>

#include "core/base.h"

// Writes a + b into `to` of `bytes` bytes, cut if need be, always terminated. False: it was cut.
static inline bool hz_text_join(char *to, size_t bytes, const char *a, const char *b) {
  const size_t first = hz_min(strlen(a), bytes - 1);
  const size_t second = hz_min(strlen(b), bytes - 1 - first);
  memcpy(to, a, first);
  memcpy(to + first, b, second);
  to[first + second] = '\0';
  return a[first] == '\0' && b[second] == '\0';
}

#endif
