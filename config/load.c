// The sources in order: defaults, file, variables, and the chosen profile where none of them spoke.
//
// This is the only place that looks at the environment. What a setting means is config/assign's
// matter, what a line of the file means config/ini's.
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/assign.h"
#include "config/environment.h"
#include "config/ini.h"
#include "config/nearest.h"
#include "config/options.h"
#include "config/text.h"
#include "core/plain.h"

enum { FILE_BYTES = 64 * 1024, ITEM_BYTES = HZ_PATH_BYTES + 128 };

static const char *const no_environment[] = {NULL};

// ---- The file -----------------------------------------------------------------------------------

static void take_entry(void *context, unsigned line, const char *section, const char *key,
                       const char *value) {
  struct hz_load *load = context;
  char source[HZ_PATH_BYTES + 16];
  snprintf(source, sizeof source, "%s:%u", load->config->file, line);
  struct hz_setting_text setting = {HZ_RANK_SECTION, source, section, key, value, false};

  static const char program[] = "program:";
  if (strncmp(section, program, sizeof program - 1) == 0) {
    bool matches = strcmp(section + sizeof program - 1, load->input->program) == 0;
    if (!matches && !load->input->check_programs) return;
    setting.rank = HZ_RANK_PROGRAM;
    setting.section = "hakozuna";
    setting.check_only = !matches;
  } else if (section[0] == '\0') {
    hz_config_problem(load,
                      "%s: \"%s\" stands before the first [section], so it is ignored; put "
                      "[hakozuna] above it.",
                      source, key);
    return;
  }
  hz_assign(load, &setting);
}

static void take_bad_line(void *context, unsigned line, const char *text, const char *what) {
  struct hz_load *load = context;
  hz_config_problem(load, "%s:%u: \"%s\" %s.", load->config->file, line, text, what);
}

// Reads the whole of an open file. Returns its length, or -1 with errno set; EFBIG: too long.
static ssize_t read_text(int fd, char *text) {
  size_t length = 0;
  for (;;) {
    ssize_t got = read(fd, text + length, FILE_BYTES + 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    length += (size_t)got;
    if (length > FILE_BYTES) {
      errno = EFBIG;
      return -1;
    }
  }
  text[length] = '\0';
  return (ssize_t)length;
}

// O_NONBLOCK: a pipe in the place of the file must not stop the process.
static ssize_t read_file(const char *path, char *text) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  struct stat is;
  ssize_t length = -1;
  if (fstat(fd, &is) == 0) {
    bool readable = S_ISREG(is.st_mode) || strcmp(path, "/dev/null") == 0;
    errno = S_ISDIR(is.st_mode) ? EISDIR : EINVAL;
    if (readable) length = read_text(fd, text);
  }
  int why = errno;
  close(fd);
  errno = why;
  return length;
}

static const char *reason_of(int why) {
  switch (why) {
  case ENOENT:
    return "there is no such file";
  case ENOTDIR:
    return "a part of the path is no directory";
  case EACCES:
    return "this user may not read it";
  case EISDIR:
    return "it is a directory";
  case EINVAL:
    return "it is not a regular file";
  case EFBIG:
    return "it is larger than 64 KiB";
  default:
    return "the system refuses to read it";
  }
}

// What a file that cannot be read means. HOME may be another user's (sudo keeps the variable), so a
// closed door there is as good as no file; for the system's file it is a mistake to tell.
enum absence { ABSENCE_TOLD, ABSENCE_FINE, ABSENCE_OR_NO_ACCESS_FINE };

static bool is_fine(enum absence absence, int why) {
  if (why == EACCES) return absence == ABSENCE_OR_NO_ACCESS_FINE;
  return absence != ABSENCE_TOLD && (why == ENOENT || why == ENOTDIR);
}

// One file. False: it is not there and that is no problem, so the next place may be tried.
static bool try_file(struct hz_load *load, const char *path, enum absence absence) {
  static char text[FILE_BYTES + 1];
  ssize_t length = read_file(path, text);
  if (length < 0) {
    if (is_fine(absence, errno)) return false;
    hz_config_problem(load, "the configuration file %s is not used: %s (error %d).", path,
                      reason_of(errno), errno);
    return true;
  }
  snprintf(load->config->file, HZ_PATH_BYTES, "%s", path);
  struct hz_ini_handler handler = {take_entry, take_bad_line, load};
  hz_ini_parse(text, (size_t)length, &handler);
  return true;
}

// A path under the user's configuration folder; false where there is none or it is too long.
static bool user_file(const char *const *environment, char path[HZ_PATH_BYTES]) {
  const char *folder = hz_environment_get(environment, "XDG_CONFIG_HOME");
  const char *below = "";
  if (folder == NULL) {
    folder = hz_environment_get(environment, "HOME");
    below = "/.config";
  }
  if (folder == NULL || folder[0] != '/') return false;
  char base[HZ_PATH_BYTES];
  return hz_text_join(base, sizeof base, folder, below) &&
         hz_text_join(path, HZ_PATH_BYTES, base, "/hakozuna.ini");
}

static void load_file(struct hz_load *load, const char *const *environment) {
  const char *named = hz_environment_get(environment, "HAKOZUNA_CONFIG");
  char path[HZ_PATH_BYTES];
  if (named != NULL && strlen(named) >= HZ_PATH_BYTES) {
    hz_config_problem(load, "HAKOZUNA_CONFIG: the path has %zu bytes, %d at most; no file is read.",
                      strlen(named), HZ_PATH_BYTES - 1);
    return;
  }
  if (named != NULL) {
    try_file(load, named, ABSENCE_TOLD);
    return;
  }
  if (user_file(environment, path) && try_file(load, path, ABSENCE_OR_NO_ACCESS_FINE)) return;
  const char *system_file = load->input->system_file;
  try_file(load, system_file != NULL ? system_file : "/etc/hakozuna.ini", ABSENCE_FINE);
}

// ---- Variables ----------------------------------------------------------------------------------

// Variables that are one setting each.
static const struct {
  const char *name, *key;
} variables[] = {
    {"HAKOZUNA_PROFILE", "profile"},
    {"HAKOZUNA_STATS", "stats"},
    {"HAKOZUNA_ON_MISUSE", "on_misuse"},
    {"HAKOZUNA_STRICT", "strict"},
};

// Read above and below, by name.
static const char *const other_variables[] = {"HAKOZUNA_CONFIG", "HAKOZUNA_OPTIONS"};

// For the scripts of tests/ and bench/, whose programs inherit them. Known, but never suggested.
static const char *const script_variables[] = {"HAKOZUNA_LIB",       "HAKOZUNA_CLI",
                                               "HAKOZUNA_PROGRAMS",  "HAKOZUNA_TEST_PROFILES",
                                               "HAKOZUNA_BENCH_BIN", "HAKOZUNA_CHOOSE"};

static char *trim(char *text) {
  while (*text == ' ' || *text == '\t') text++;
  char *end = text + strlen(text);
  while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
  *end = '\0';
  return text;
}

static void take_item(struct hz_load *load, const char *start, size_t length) {
  static const char source[] = "HAKOZUNA_OPTIONS";
  char item[ITEM_BYTES];
  snprintf(item, sizeof item, "%.*s", (int)hz_min(length, ITEM_BYTES), start);
  char *value = strchr(item, '=');
  if (value == NULL && *trim(item) == '\0') return; // "a=1,,b=2" and a comma at the end
  if (value == NULL || length >= ITEM_BYTES) {
    hz_config_problem(load, "%s: \"%s\" is not section.key=value. The setting is ignored.", source,
                      item);
    return;
  }
  *value++ = '\0';
  struct hz_setting_text setting = {HZ_RANK_ENVIRONMENT, source,      "hakozuna",
                                    trim(item),          trim(value), false};
  hz_assign(load, &setting);
}

static void load_options(struct hz_load *load, const char *text) {
  while (*text != '\0') {
    size_t length = strcspn(text, ",");
    take_item(load, text, length);
    text += length + (text[length] == ',');
  }
}

static void load_variables(struct hz_load *load, const char *const *environment) {
  const char *options = hz_environment_get(environment, "HAKOZUNA_OPTIONS");
  if (options != NULL) load_options(load, options);
  for (size_t i = 0; i < hz_count_of(variables); i++) {
    const char *value = hz_environment_get(environment, variables[i].name);
    if (value == NULL) continue;
    struct hz_setting_text setting = {
        HZ_RANK_ENVIRONMENT, variables[i].name, "hakozuna", variables[i].key, value, false};
    hz_assign(load, &setting);
  }
}

static bool is_for_scripts(const char *name) {
  for (size_t i = 0; i < hz_count_of(script_variables); i++) {
    if (strcmp(name, script_variables[i]) == 0) return true;
  }
  return false;
}

static void check_variable(struct hz_load *load, const char *variable) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)hz_min(strcspn(variable, "="), sizeof name - 1),
           variable);
  if (is_for_scripts(name)) return;
  struct hz_nearest nearest = {.word = name};
  for (size_t i = 0; i < hz_count_of(variables); i++) hz_nearest_offer(&nearest, variables[i].name);
  for (size_t i = 0; i < hz_count_of(other_variables); i++) {
    hz_nearest_offer(&nearest, other_variables[i]);
  }
  if (strcmp(name, nearest.best) == 0) return;
  hz_config_problem(load, "there is no variable %s; the nearest is %s. It is ignored.", name,
                    nearest.best);
}

static void check_variables(struct hz_load *load, const char *const *environment) {
  for (; *environment != NULL; environment++) {
    if (hz_plain_begins(*environment, "HAKOZUNA_")) check_variable(load, *environment);
  }
}

// ---- All of it ----------------------------------------------------------------------------------

static const char *const *environment_of(const struct hz_config_input *input) {
  if (input->secure) return no_environment;
  return input->environment != NULL ? input->environment : hz_environment_of_process();
}

void hz_config_load(const struct hz_config_input *input, struct hz_config *config) {
  const char *const *environment = environment_of(input);
  struct hz_load load = {.input = input, .config = config};
  *config = (struct hz_config){0};
  hz_assign_defaults(&load);
  load_file(&load, environment);
  load_variables(&load, environment);
  check_variables(&load, environment);
  hz_assign_profile(&load);
  config->strict = hz_common.strict != 0;
}
