// Parts of a page of HTML.
#ifndef HZ_TOOLS_BENCH_PAGE_H
#define HZ_TOOLS_BENCH_PAGE_H

#include <stdio.h>

#include "core/base.h"

// Text and values of attributes: what HTML would read as markup is escaped, and bytes that no page
// may hold are question marks.
void hz_page_text(FILE *out, const char *text);

// From <!DOCTYPE html> into the style sheet, to which the caller may add rules; then to <body>.
void hz_page_begin(FILE *out, const char *title);
void hz_page_body(FILE *out);
void hz_page_end(FILE *out);

#endif
