// Checks for the test programs: a failed one says where, what was got and what was expected, and
// ends the process with exit code 1.
//
// Nothing here allocates: these programs are about the allocator.
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition, ...) ((condition) ? (void)0 : FAIL(__VA_ARGS__))

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof text - 1) length = (int)sizeof text - 1;
  if (write(STDOUT_FILENO, text, (size_t)length) < 0) _exit(3);
}

__attribute__((format(printf, 3, 4), noreturn)) static inline void
check_fail(const char *file, int line, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say("%s:%d: %s\n", file, line, text);
  _exit(1);
}

// The same pointer or size, with the compiler kept from knowing anything about it: calls on it are
// neither removed nor warned about.
static inline void *opaque(void *p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}
static inline size_t opaque_size(size_t n) {
  __asm__ volatile("" : "+r"(n) : : "memory");
  return n;
}

static inline void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

#endif
