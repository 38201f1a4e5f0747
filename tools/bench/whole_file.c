#include "tools/bench/whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/command.h"
#include "tools/text.h"

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

// A file that is there keeps its mode.
static FILE *open_beside(const char *beside, const char *path) {
  struct stat there;
  FILE *out = fopen(beside, "we");
  if (out && stat(path, &there) == 0 && fchmod(fileno(out), there.st_mode & 0777) != 0)
    hz_log("%s: its mode cannot be kept: %m.", path);
  return out;
}

int hz_whole_file_write(const char *path, const char *what,
                        bool (*print)(FILE *out, const void *context), const void *context) {
  char real[PATH_MAX];
  const char *target = realpath(path, real) ? real : path;
  char *beside = hz_text("%s.%ld.new", target, (long)getpid());
  FILE *out = open_beside(beside, target);
  bool printed = out && print(out, context);
  bool written = out && fflush(out) == 0 && !ferror(out);
  int trouble = errno, code = out && !printed ? HZ_EXIT_SYSTEM : HZ_EXIT_OK;
  if (out) fclose(out);
  if (code == HZ_EXIT_OK && written && rename(beside, target) != 0) {
    trouble = errno;
    written = false;
  }
  if (code == HZ_EXIT_OK && !written) {
    hz_log("%s: %s; %s could not be written there.", path, strerror(trouble), what);
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

// Where the lines of the place begin.
struct found {
  char *begin, *end; // NULL: it is not there
};

static struct found find_place(char *text, const struct hz_place *place) {
  struct found found = {.begin = find_line(text, place->begin)};
  if (found.begin) found.end = find_line(found.begin, place->end);
  return found;
}

int hz_whole_file_check_place(const char *path, const struct hz_place *place) {
  char *text = read_text(path);
  bool fits = !text || !*text || find_place(text, place).end;
  free(text);
  if (fits) return HZ_EXIT_OK;
  hz_log("%s has no line \"%s\" with a line \"%s\" behind it to write between; add them, or name "
         "another file.",
         path, place->begin, place->end);
  return HZ_EXIT_DATA;
}

int hz_whole_file_fill(const char *path, const char *what, const struct hz_place *place,
                       bool (*print)(FILE *out, const void *context), const void *context) {
  int code = hz_whole_file_check_place(path, place);
  if (code != HZ_EXIT_OK) return code;
  char *text = read_text(path);
  struct found found = find_place(text, place);
  char *before = found.end ? hz_text("%.*s%s\n", (int)(found.begin - text), text, place->begin)
                           : hz_text("%s", "");
  struct filling filling = {before, found.end ? found.end : "", print, context};
  code = hz_whole_file_write(path, what, print_filled, &filling);
  free(before);
  free(text);
  return code;
}
