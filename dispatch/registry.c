// The array of lines, built from lines/list.h.
#include "dispatch/registry.h"

#include <string.h>

#include "core/misuse.h"
#include "lines/list.h"

#define HZ_LINE_DECLARATION(name) extern const struct hz_line name##_line;
HZ_LINES(HZ_LINE_DECLARATION)
#undef HZ_LINE_DECLARATION

static const struct hz_line *const lines[] = {
#define HZ_LINE_ROW(name) &name##_line,
    HZ_LINES(HZ_LINE_ROW)
#undef HZ_LINE_ROW
};

const struct hz_line *hz_line_named(const char *name) {
  for (size_t i = 0; i < hz_count_of(lines); i++)
    if (strcmp(lines[i]->info->name, name) == 0) return lines[i];
  hz_broken(__FILE__, __LINE__, "every profile names a line of lines/list.h");
}
