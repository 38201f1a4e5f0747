// Resident memory of this process, and the idle time after which it is read again: that of a
// service which has next to nothing to do.
//
// No stdio here: its buffers would come from the allocator that is measured.
#ifndef HZ_BENCH_RESIDENT_H
#define HZ_BENCH_RESIDENT_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "draw.h"
#include "fail.h"

// IDLE_STREAM: of draws; above every worker's.
enum { IDLE_BLOCKS = 200, IDLE_LEAST = 16, IDLE_MOST = 2048, IDLE_STREAM = 1 << 30 };

static struct {
  size_t rest_ms; // how long the process idles before rest_kib is read
} resident_rules;

#define REST_ARGUMENT(usually)                                                                     \
  { .key = "rest_ms", .value = &resident_rules.rest_ms, .usual = (usually), .most = 600000 }

// The number after `key` in a file of /proc/self; -1: the file or the key is not there.
static inline long resident_read(const char *path, const char *key) {
  char text[8192];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  text[got > 0 ? got : 0] = '\0';
  const char *at = strstr(text, key);
  return at == NULL ? -1 : strtol(at + strlen(key), NULL, 10);
}

// KiB now. The kernel's running counters (statm, VmRSS) are off by up to some hundred KiB, as each
// CPU keeps a part of them to itself; smaps_rollup counts the pages.
static inline long resident_kib(void) {
  long kib = resident_read("/proc/self/smaps_rollup", "\nRss:");
  if (kib < 0) kib = resident_read("/proc/self/status", "\nVmRSS:");
  if (kib < 0) fail(EXIT_BROKEN, "/proc/self/status has no VmRSS; is /proc mounted?");
  return kib;
}

// KiB at most, since the process was started.
static inline long resident_peak_kib(void) {
  long kib = resident_read("/proc/self/status", "\nVmHWM:");
  if (kib < 0) fail(EXIT_BROKEN, "/proc/self/status has no VmHWM; is /proc mounted?");
  return kib;
}

// What lies above a figure taken before; never negative.
static inline long resident_above(long kib, long before_kib) {
  return kib > before_kib ? kib - before_kib : 0;
}

// What one small request of a service does: blocks of many sizes, as many of each as chance wants.
// One block alone would always come from what an allocator keeps at hand for the thread and go back
// there; what it does when it has to look further, such as giving memory back, would never happen.
static inline void resident_serve(uint64_t *random) {
  void *blocks[IDLE_BLOCKS];
  for (size_t i = 0; i < IDLE_BLOCKS; i++) {
    blocks[i] = malloc(draw_size(draw(random), IDLE_LEAST, IDLE_MOST));
  }
  for (size_t i = 0; i < IDLE_BLOCKS; i++) free(blocks[i]);
}

// Idles as a service with few requests does: a small one each millisecond, by which an allocator
// may notice that time passes.
static inline void resident_idle(size_t ms) {
  const struct timespec pause = {.tv_nsec = 1000000};
  uint64_t random = draw_begin(IDLE_STREAM);
  for (size_t i = 0; i < ms; i++) {
    resident_serve(&random);
    nanosleep(&pause, NULL);
  }
}

#endif
