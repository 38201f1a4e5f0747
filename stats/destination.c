// Where a report goes: names with the process in them, opened only when there is something to say.
#include "stats/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

// Appends to a name; false when there is no room.
static bool append(char name[HZ_DESTINATION_BYTES], size_t *length, const char *text,
                   size_t bytes) {
  if (bytes >= HZ_DESTINATION_BYTES - *length) return false;
  memcpy(name + *length, text, bytes);
  *length += bytes;
  name[*length] = '\0';
  return true;
}

static bool append_program(char name[HZ_DESTINATION_BYTES], size_t *length, const char *program) {
  size_t start = *length;
  if (!append(name, length, program, strlen(program))) return false;
  for (size_t i = start; i < *length; i++) {
    if (name[i] == '/') name[i] = '_';
  }
  return true;
}

bool hz_destination_name(const char *pattern, uint64_t pid, const char *program,
                         char name[HZ_DESTINATION_BYTES]) {
  char number[24];
  size_t length = 0;
  bool fits = true;
  int digits = snprintf(number, sizeof number, "%" PRIu64, pid);
  name[0] = '\0';
  for (; fits && *pattern != '\0'; pattern++) {
    char next = pattern[0] == '%' ? pattern[1] : '\0';
    switch (next) {
    case 'p':
      fits = append(name, &length, number, (size_t)digits);
      break;
    case 'e':
      fits = append_program(name, &length, program);
      break;
    case '%':
      fits = append(name, &length, "%", 1);
      break;
    default:
      fits = append(name, &length, pattern, 1);
      continue;
    }
    pattern++;
  }
  return fits;
}

static const char *reason_of(int why) {
  switch (why) {
  case ENOENT:
    return "its folder does not exist";
  case EACCES:
    return "this user may not write there";
  case ELOOP:
    return "it is a symbolic link, which reports do not follow";
  case EISDIR:
    return "it is a directory";
  case ENAMETOOLONG:
    return "its name is too long";
  case EROFS:
    return "the file system is read-only";
  case ENXIO:
    return "it is a pipe that nobody reads";
  default:
    return "the system refuses to open it";
  }
}

// O_NONBLOCK: a named pipe without a reader must not hold up the end of the process.
static int open_file(const char *name) {
  int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
  return open(name, flags, 0600);
}

int hz_destination_open(const char *pattern, uint64_t pid, const char *program) {
  if (pattern[0] == '\0') return hz_log_fd();
  int saved = errno;
  char name[HZ_DESTINATION_BYTES];
  bool fits = hz_destination_name(pattern, pid, program, name);
  int fd = fits ? open_file(name) : -1;
  if (fd < 0) {
    int why = fits ? errno : ENAMETOOLONG;
    hz_log("the report cannot go to %s: %s (error %d), so it follows here; set `stats` to "
           "another path.",
           fits ? name : pattern, reason_of(why), why);
    fd = hz_log_fd();
  }
  errno = saved;
  return fd;
}

void hz_destination_close(int fd) {
  if (fd != hz_log_fd()) close(fd);
}
