// Strings that commands build and keep: without memory they end the process, in a sentence.
#ifndef HZ_TOOLS_TEXT_H
#define HZ_TOOLS_TEXT_H

#include "core/base.h"

// A new string, to be freed by the caller.
char *hz_text(const char *format, ...) HZ_PRINTF(1, 2);

// Frees *text and puts `with` in its place.
void hz_text_replace(char **text, char *with);

// `bytes` zeroed bytes, to be freed by the caller.
void *hz_zeroed(size_t bytes);

// The words of argv, NULL-terminated, with blanks between; a word that a shell would take apart is
// put in single quotes.
char *hz_text_of_words(char *const argv[]);

#endif
