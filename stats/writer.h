// Text and JSON into a bounded buffer that empties itself into a descriptor. No allocation.
#ifndef HZ_STATS_WRITER_H
#define HZ_STATS_WRITER_H

#include "core/base.h"

// One thread. Set `buffer`, `capacity` (at least 256) and `fd`, the rest 0.
struct hz_writer {
  char *buffer;
  size_t capacity;
  int fd;
  size_t length; // bytes waiting
  bool failed;   // the descriptor refused; what follows is dropped
};

// Bytes as they are.
void hz_writer_put(struct hz_writer *writer, const char *text, size_t bytes);

// Formatted text as it is; one call writes less than 256 bytes, more is cut.
void hz_writer_format(struct hz_writer *writer, const char *format, ...) HZ_PRINTF(2, 3);

// Text of unknown origin for a terminal: control characters become '?'.
void hz_writer_plain(struct hz_writer *writer, const char *text);

// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void hz_writer_json(struct hz_writer *writer, const char *text);

// Writes what waits. False: the descriptor refused, now or before.
bool hz_writer_flush(struct hz_writer *writer);

#endif
