#include "tools/bench/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/bench/text.h"
#include "tools/command.h"

int hz_whole_file_check(const char *path) {
  const char *slash = strrchr(path, '/'), *trouble = NULL;
  char *folder = slash ? hz_text("%.*s/", (int)(slash - path), path) : hz_text(".");
  struct stat there;
  bool exists = stat(path, &there) == 0;
  if (access(folder, W_OK) != 0 || (exists && access(path, W_OK) != 0)) trouble = strerror(errno);
  else if (exists && !S_ISREG(there.st_mode)) trouble = "it is there and is no plain file";
  free(folder);
  if (!trouble) return HZ_EXIT_OK;
  hz_log("%s: %s; expected a file that can be written.", path, trouble);
  return HZ_EXIT_NO_FILE;
}

int hz_whole_file_write(const char *path, const char *what,
                        bool (*print)(FILE *out, const void *context), const void *context) {
  char *beside = hz_text("%s.%ld.new", path, (long)getpid());
  FILE *out = fopen(beside, "we");
  bool printed = out && print(out, context);
  bool written = out && !ferror(out);
  if (out && fclose(out) != 0) written = false;
  int code = out && !printed ? HZ_EXIT_SYSTEM : HZ_EXIT_OK;
  if (code == HZ_EXIT_OK && !(written && rename(beside, path) == 0)) {
    hz_log("%s: %s; %s could not be written there.", path, strerror(errno), what);
    code = HZ_EXIT_NO_FILE;
  }
  if (code != HZ_EXIT_OK) unlink(beside);
  free(beside);
  return code;
}

// The old text around the place that is filled.
struct filling {
  const char *before, *after;
  bool (*print)(FILE *out, const void *context);
  const void *context;
};

static bool print_filled(FILE *out, const void *context) {
  const struct filling *filling = context;
  fputs(filling->before, out);
  if (!filling->print(out, filling->context)) return false;
  fputs(filling->after, out);
  return true;
}

// A whole text file, to be freed; NULL: it is not there.
static char *read_text(const char *path) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *in = fopen(path, "re");
  if (in && getdelim(&text, &bytes, '\0', in) < 0) {
    free(text);
    text = NULL;
  }
  if (in) fclose(in);
  return text;
}

// Where a line begins that is exactly this; NULL: there is none.
static char *find_line(char *text, const char *line) {
  size_t length = strlen(line);
  for (char *at = text; at && (at = strstr(at, line)) != NULL; at += length)
    if ((at == text || at[-1] == '\n') && (at[length] == '\n' || !at[length])) return at;
  return NULL;
}

int hz_whole_file_fill(const char *path, const char *what, const char *begin, const char *end,
                       bool (*print)(FILE *out, const void *context), const void *context) {
  char *text = read_text(path);
  char *first = find_line(text, begin);
  char *last = first ? find_line(first, end) : NULL;
  int code;
  if (last) {
    char *before = hz_text("%.*s%s\n", (int)(first - text), text, begin);
    struct filling filling = {before, last, print, context};
    code = hz_whole_file_write(path, what, print_filled, &filling);
    free(before);
  } else if (text && *text) {
    hz_log(
        "%s has no line \"%s\" with a line \"%s\" behind it, where %s would go; it was left as it "
        "is.",
        path, begin, end, what);
    code = HZ_EXIT_DATA;
  } else {
    code = hz_whole_file_write(path, what, print, context);
  }
  free(text);
  return code;
}
