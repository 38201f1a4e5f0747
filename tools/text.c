#include "tools/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "tools/command.h"

static _Noreturn void end_without_memory(void) {
  hz_log("out of memory.");
  exit(HZ_EXIT_SYSTEM);
}

char *hz_text(const char *format, ...) {
  char *text;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&text, format, arguments) < 0) end_without_memory();
  va_end(arguments);
  return text;
}

void hz_text_replace(char **text, char *with) {
  free(*text);
  *text = with;
}

void *hz_zeroed(size_t bytes) {
  void *p = calloc(1, bytes);
  if (!p) end_without_memory();
  return p;
}

static bool is_plain_word(const char *word) {
  return *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "_-+=./:,@%")] == '\0';
}

static void print_word(FILE *out, const char *word) {
  if (is_plain_word(word)) {
    fputs(word, out);
    return;
  }
  fputc('\'', out);
  for (; *word; word++) {
    if (*word == '\'') fputs("'\\''", out);
    else fputc(*word, out);
  }
  fputc('\'', out);
}

char *hz_text_of_words(char *const argv[]) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) end_without_memory();
  for (size_t i = 0; argv[i]; i++) {
    if (i) fputc(' ', out);
    print_word(out, argv[i]);
  }
  if (fclose(out) != 0) end_without_memory();
  return text;
}
