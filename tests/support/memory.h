// What the kernel says about the memory of this process: resident now and at its peak.
#ifndef TESTS_SUPPORT_MEMORY_H
#define TESTS_SUPPORT_MEMORY_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"

// The value of a row of /proc/self/status ("VmRSS:", "VmHWM:") in bytes.
static inline size_t memory_status(const char *row) {
  char text[4096];
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0, "cannot open /proc/self/status");
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  CHECK(length > 0, "cannot read /proc/self/status");
  text[length] = '\0';
  const char *at = strstr(text, row);
  CHECK(at != NULL, "/proc/self/status has no row %s", row);
  return strtoul(at + strlen(row), NULL, 10) * 1024;
}

static inline size_t memory_resident(void) {
  return memory_status("VmRSS:");
}
static inline size_t memory_peak(void) {
  return memory_status("VmHWM:");
}

#endif
