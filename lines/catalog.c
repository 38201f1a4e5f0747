// The catalogue, built from the list of lines.
#include "lines/catalog.h"

#include "lines/list.h"

#define HZ_LINE_INFO(name) extern const struct hz_line_info name##_info;
HZ_LINES(HZ_LINE_INFO)
#undef HZ_LINE_INFO

const struct hz_line_info *const hz_line_catalog[] = {
#define HZ_LINE_ROW(name) &name##_info,
    HZ_LINES(HZ_LINE_ROW)
#undef HZ_LINE_ROW
};
const size_t hz_line_catalog_count = hz_count_of(hz_line_catalog);
