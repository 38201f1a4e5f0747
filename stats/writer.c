// Text and JSON into a bounded buffer that empties itself into a descriptor.
#include "stats/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"

enum { FORMAT_BYTES = 256 };

bool hz_writer_flush(struct hz_writer *writer) {
  if (!writer->failed) writer->failed = !hz_write_all(writer->fd, writer->buffer, writer->length);
  writer->length = 0;
  return !writer->failed;
}

void hz_writer_put(struct hz_writer *writer, const char *text, size_t bytes) {
  while (bytes != 0) {
    if (writer->length == writer->capacity) hz_writer_flush(writer);
    size_t part = hz_min(bytes, writer->capacity - writer->length);
    memcpy(writer->buffer + writer->length, text, part);
    writer->length += part;
    text += part;
    bytes -= part;
  }
}

void hz_writer_format(struct hz_writer *writer, const char *format, ...) {
  char text[FORMAT_BYTES];
  va_list args;
  va_start(args, format);
  int wanted = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (wanted > 0) hz_writer_put(writer, text, hz_min((size_t)wanted, sizeof text - 1));
}

static bool is_control(char c) {
  return (unsigned char)c < 0x20 || c == 0x7f;
}

void hz_writer_plain(struct hz_writer *writer, const char *text) {
  for (; *text != '\0'; text++) hz_writer_put(writer, is_control(*text) ? "?" : text, 1);
}

static bool continues(char c) {
  return ((unsigned char)c & 0xC0) == 0x80;
}

// Bytes of the UTF-8 character at `text`, 0 for none: stray bytes, overlong forms, surrogates and
// values above U+10FFFF are none (Unicode 15, table 3-7).
static size_t utf8_length(const char *text) {
  unsigned char a = (unsigned char)text[0], b = (unsigned char)text[1];
  if (a < 0x80) return 1;
  if (a < 0xC2 || a > 0xF4 || !continues(text[1])) return 0;
  if (a < 0xE0) return 2;
  bool overlong = (a == 0xE0 && b < 0xA0) || (a == 0xF0 && b < 0x90);
  bool surrogate = a == 0xED && b >= 0xA0, beyond = a == 0xF4 && b >= 0x90;
  if (overlong || surrogate || beyond || !continues(text[2])) return 0;
  if (a < 0xF0) return 3;
  return continues(text[3]) ? 4 : 0;
}

void hz_writer_json(struct hz_writer *writer, const char *text) {
  hz_writer_put(writer, "\"", 1);
  while (*text != '\0') {
    size_t length = utf8_length(text);
    if (length == 0) {
      hz_writer_put(writer, "\\ufffd", 6);
    } else if (*text == '"' || *text == '\\') {
      hz_writer_format(writer, "\\%c", *text);
    } else if (is_control(*text)) {
      hz_writer_format(writer, "\\u%04x", (unsigned char)*text);
    } else {
      hz_writer_put(writer, text, length);
    }
    text += hz_max(length, 1);
  }
  hz_writer_put(writer, "\"", 1);
}
