// Messages: formatted into a buffer on the stack, written with one write(2).
//
// The duplicate of fd 2 is used only while it is still the file that it was at start. A program
// that closes descriptors wholesale frees its number for a socket or a data file, and a report must
// never land there.
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/plain.h"

static int duplicate = -1;
static dev_t duplicate_device;
static ino_t duplicate_inode;

// High numbers stay out of the way of shells (3 to 10, 255) and of programs that expect the next
// free descriptor to be a small one. The second try serves a limit (RLIMIT_NOFILE) under 100.
static int duplicate_high(int fd) {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  return high >= 0 ? high : fcntl(fd, F_DUPFD_CLOEXEC, 20);
}

void hz_log_start(void) {
  int saved = errno;
  struct stat is;
  int fd = duplicate_high(STDERR_FILENO);
  if (fd >= 0 && fstat(fd, &is) == 0) {
    duplicate_device = is.st_dev;
    duplicate_inode = is.st_ino;
    duplicate = fd;
  } else if (fd >= 0) {
    close(fd);
  }
  errno = saved;
}

// A system call filter may refuse fstat with another error than EBADF: then the number is trusted.
static bool duplicate_is_ours(void) {
  struct stat is;
  if (fstat(duplicate, &is) != 0) return errno != EBADF;
  return is.st_dev == duplicate_device && is.st_ino == duplicate_inode;
}

int hz_log_fd(void) {
  int saved = errno;
  int fd = duplicate >= 0 && duplicate_is_ours() ? duplicate : STDERR_FILENO;
  errno = saved;
  return fd;
}

bool hz_write_all(int fd, const char *text, size_t bytes) {
  int saved = errno;
  while (bytes != 0) {
    ssize_t done = write(fd, text, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    text += done;
    bytes -= (size_t)done;
  }
  errno = saved;
  return bytes == 0;
}

void hz_log(const char *format, ...) {
  static const char prefix[] = "hakozuna: ", cut[] = "...";
  enum { PREFIX = sizeof prefix - 1, CUT = sizeof cut - 1, TEXT_END = HZ_LOG_LINE_BYTES - 1 };
  char line[HZ_LOG_LINE_BYTES];
  int saved = errno;
  memcpy(line, prefix, PREFIX);

  va_list args;
  va_start(args, format);
  int wanted = vsnprintf(line + PREFIX, TEXT_END - PREFIX + 1, format, args);
  va_end(args);

  size_t length = PREFIX + (wanted > 0 ? (size_t)wanted : 0);
  if (length > TEXT_END) {
    length = TEXT_END;
    memcpy(line + length - CUT, cut, CUT);
  }
  line[length++] = '\n';
  hz_write_all(hz_log_fd(), line, length);
  errno = saved;
}

void hz_log_pieces(const char *const *pieces, size_t count) {
  struct iovec parts[HZ_LOG_PIECES + 2];
  size_t used = 0;
  parts[used++] = (struct iovec){"hakozuna: ", hz_plain_length("hakozuna: ")};
  for (size_t i = 0; i < count && i < HZ_LOG_PIECES; i++)
    parts[used++] = (struct iovec){(char *)pieces[i], hz_plain_length(pieces[i])};
  parts[used++] = (struct iovec){"\n", 1};
  const int saved = errno;
  syscall(SYS_writev, STDERR_FILENO, parts, used);
  errno = saved;
}
