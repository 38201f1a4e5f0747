// What is known of each line without running it: names, options, profiles. Pure data: the command
// line tool links this and no allocator.
#ifndef HZ_LINES_CATALOG_H
#define HZ_LINES_CATALOG_H

#include "config/option.h"
#include "core/base.h"

struct hz_line_info {
  const char *name;    // "hz3"
  const char *title;   // "lookup-first"
  const char *summary; // one sentence

  const struct hz_option *options; // rows of the line's own section
  size_t option_count;
  const struct hz_profile *profiles; // the first is the line's default and bears the line's name
  size_t profile_count;
};

// In the order of lines/list.h: the first is the default line.
extern const struct hz_line_info *const hz_line_catalog[];
extern const size_t hz_line_catalog_count;

#endif
