// Looks in the places of find.h, in their order. Nothing is opened or run.
#include "tools/find.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/command.h"
#include "tools/print.h"

static const char library_name[] = "libhakozuna.so";

// The folder of this executable, links resolved. folder: PATH_MAX bytes.
static void own_folder(char *folder) {
  ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
  folder[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash) *slash = '\0';
}

bool hz_library_find(char *path) {
  struct utsname system;
  uname(&system);
  char multiarch[sizeof system.machine + 32];
  hz_format(multiarch, sizeof multiarch, "/../lib/%s-linux-gnu", system.machine);
  const char *const below[] = {"", "/../lib/hakozuna", "/../lib", multiarch};
  char own[PATH_MAX], candidate[PATH_MAX + 128], looked[PATH_MAX] = "";
  own_folder(own);
  for (size_t i = 0; i < hz_count_of(below); i++) {
    hz_format(candidate, sizeof candidate, "%s%s/%s", own, below[i], library_name);
    if (realpath(candidate, path)) return true;
    size_t used = strlen(looked);
    hz_format(looked + used, sizeof looked - used, "%s%s%s", used ? ", " : "", own, below[i]);
  }
  memcpy(path, looked, sizeof looked);
  return false;
}

int hz_library_require(char *path) {
  if (hz_library_find(path)) return HZ_EXIT_OK;
  hz_log("%s is missing (looked in %s); build it with `./hakozuna` in a checkout, or install it "
         "beside this command.",
         library_name, path);
  return HZ_EXIT_NO_LIBRARY;
}

// Whether exec would take it: a regular file that we may execute.
static int program_state(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0)
    return errno == ENOENT || errno == ENOTDIR ? HZ_EXIT_NOT_FOUND : HZ_EXIT_CANNOT_RUN;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0) return HZ_EXIT_CANNOT_RUN;
  return HZ_EXIT_OK;
}

int hz_program_find(const char *name, char *path) {
  if (strchr(name, '/')) {
    hz_format(path, PATH_MAX, "%s", name);
    return program_state(path);
  }
  const char *folders = getenv("PATH");
  if (!folders) folders = "/bin:/usr/bin"; // what execvp(3) takes
  int answer = HZ_EXIT_NOT_FOUND;
  for (const char *at = folders; *name; at++) {
    size_t length = strcspn(at, ":");
    // An empty folder in PATH is the current one.
    hz_format(path, PATH_MAX, "%.*s/%s", length ? (int)length : 1, length ? at : ".", name);
    int state = program_state(path);
    if (state == HZ_EXIT_OK) return state;
    if (state == HZ_EXIT_CANNOT_RUN) answer = state;
    at += length;
    if (*at == '\0') break;
  }
  errno = answer == HZ_EXIT_NOT_FOUND ? ENOENT : EACCES;
  return answer;
}
