// Reads the process environment. /proc/self/environ goes by in chunks and only our variables are
// kept, because an environment may be megabytes long and no memory can be asked for here.
#include "config/environment.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/plain.h"

enum { KEPT_BYTES = 16 * 1024, KEPT_VARIABLES = 64, CHUNK_BYTES = 1024 };

static char kept[KEPT_BYTES];
static const char *variables[KEPT_VARIABLES + 1];

struct keeper {
  size_t used, count;
  size_t start; // of the variable that is being read
  bool skip;    // it is not ours, or there is no room for it
};

static bool is_ours(const char *variable) {
  static const char *const prefixes[] = {"HAKOZUNA_", "HOME=", "XDG_CONFIG_HOME="};
  for (size_t i = 0; i < hz_count_of(prefixes); i++) {
    if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) return true;
  }
  return false;
}

static void end_variable(struct keeper *keeper) {
  kept[keeper->used] = '\0';
  if (!keeper->skip && keeper->count < KEPT_VARIABLES && is_ours(kept + keeper->start)) {
    variables[keeper->count++] = kept + keeper->start;
    keeper->start = ++keeper->used;
  }
  keeper->used = keeper->start;
  keeper->skip = keeper->start >= KEPT_BYTES;
}

static void take_byte(struct keeper *keeper, char byte) {
  if (byte == '\0') {
    end_variable(keeper);
  } else if (!keeper->skip && keeper->used < KEPT_BYTES - 1) {
    kept[keeper->used++] = byte;
  } else {
    keeper->skip = true;
  }
}

const char *const *hz_environment_of_process(void) {
  struct keeper keeper = {0};
  char chunk[CHUNK_BYTES];
  ssize_t got;
  int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && (got = read(fd, chunk, sizeof chunk)) > 0) {
    for (ssize_t i = 0; i < got; i++) take_byte(&keeper, chunk[i]);
  }
  if (fd >= 0) close(fd);
  variables[keeper.count] = NULL;
  return variables;
}

const char *hz_environment_get(const char *const *environment, const char *name) {
  size_t length = strlen(name);
  for (; *environment != NULL; environment++) {
    // Not by strncmp: this runs over the whole environment at each start of a process.
    if (!hz_plain_begins(*environment, name) || (*environment)[length] != '=') continue;
    const char *value = *environment + length + 1;
    return *value != '\0' ? value : NULL;
  }
  return NULL;
}
