// INI text to (section, key, value, line number). Pure: it knows no option and no file.
//
// inih parses. What is added: line numbers, every bad line told with its text, and lines that begin
// with blanks are lines of their own (inih would append them to the value before).
#ifndef HZ_CONFIG_INI_H
#define HZ_CONFIG_INI_H

#include "core/base.h"

enum { HZ_INI_NAME_BYTES = 49 }; // inih keeps this much of a section's or a key's name

struct hz_ini_handler {
  // One setting. Before the first [section], `section` is "". The texts last for the call only.
  void (*entry)(void *context, unsigned line, const char *section, const char *key,
                const char *value);
  // A line that is not INI. `what`: a phrase that ends the sentence "FILE:LINE: "TEXT" ...".
  void (*bad_line)(void *context, unsigned line, const char *text, const char *what);
  void *context;
};

// Parses the whole text, bad lines being skipped. `text` is terminated and `bytes` long.
void hz_ini_parse(const char *text, size_t bytes, const struct hz_ini_handler *handler);

#endif
