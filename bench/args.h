// The command line of a benchmark program: words of the form key=value, in any order, each checked
// against its range. A table says what there is; where a key is missing, its usual value counts.
#ifndef HZ_BENCH_ARGS_H
#define HZ_BENCH_ARGS_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

#define ARGUMENT_COUNT(list) (sizeof(list) / sizeof *(list))

// A number; or seconds, with decimals, kept as nanoseconds; or one of `words`, kept as its place
// among them.
struct argument {
  const char *key;
  size_t *value;
  size_t usual, least, most;
  bool seconds;
  const char *words; // separated by single blanks
};

static inline void argument_print(const struct argument *argument, FILE *out) {
  if (argument->words != NULL) {
    fprintf(out, " %s=", argument->key);
    for (const char *at = argument->words; *at != '\0'; at++) fputc(*at == ' ' ? '|' : *at, out);
  } else if (argument->seconds) {
    fprintf(out, " %s=%g..%g (%g)", argument->key, (double)argument->least / 1e9,
            (double)argument->most / 1e9, (double)argument->usual / 1e9);
  } else {
    fprintf(out, " %s=%zu..%zu (%zu)", argument->key, argument->least, argument->most,
            argument->usual);
  }
}

static inline _Noreturn void arguments_refuse(const struct argument *list, size_t count,
                                              const char *word) {
  fprintf(stderr, "%s: \"%s\" is not understood; expected words of", program_invocation_short_name,
          word);
  for (size_t i = 0; i < count; i++) argument_print(&list[i], stderr);
  fprintf(stderr, " (in brackets: without the word)\n");
  exit(EXIT_USAGE);
}

// The place of `text` among the words; the number of words if it is none of them.
static inline size_t argument_find_word(const char *words, const char *text) {
  size_t place = 0, length = strlen(text);
  for (const char *at = words; *at != '\0'; place++) {
    size_t bytes = strcspn(at, " ");
    if (bytes == length && strncmp(at, text, bytes) == 0) return place;
    at += bytes + (at[bytes] == ' ');
  }
  return place;
}

static inline bool argument_set(const struct argument *argument, const char *text) {
  size_t value;
  char *end = NULL;
  if (argument->words != NULL) {
    value = argument_find_word(argument->words, text);
    *argument->value = value;
    return value < argument_find_word(argument->words, " ");
  }
  if (!isdigit((unsigned char)text[0])) return false; // no sign, no blank, no infinity
  if (argument->seconds) {
    double seconds = strtod(text, &end);
    value = seconds < 1e9 ? (size_t)(seconds * 1e9) : SIZE_MAX;
  } else {
    value = strtoull(text, &end, 10);
  }
  *argument->value = value;
  return *end == '\0' && value >= argument->least && value <= argument->most;
}

// Sets every value of the table. A word that is not understood ends the process.
static inline void arguments_read(const struct argument *list, size_t count, int argc,
                                  char **argv) {
  for (size_t i = 0; i < count; i++) *list[i].value = list[i].usual;
  for (int word = 1; word < argc; word++) {
    bool understood = false;
    for (size_t i = 0; i < count && !understood; i++) {
      size_t bytes = strlen(list[i].key);
      understood = strncmp(argv[word], list[i].key, bytes) == 0 && argv[word][bytes] == '=' &&
                   argument_set(&list[i], argv[word] + bytes + 1);
    }
    if (!understood) arguments_refuse(list, count, argv[word]);
  }
}

#endif
