// How a benchmark program gives up: one sentence on stderr and an exit code that says what kind of
// trouble it was.
#ifndef HZ_BENCH_FAIL_H
#define HZ_BENCH_FAIL_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum {
  EXIT_BROKEN = 1,     // the allocator gave wrong memory or none
  EXIT_USAGE = 2,      // a word of the command line is not understood
  EXIT_NOT_SERVED = 3, // another allocator served than the symbols say
};

// Ends the process at once: from a worker thread too, while the others still run.
__attribute__((format(printf, 2, 3))) static inline _Noreturn void fail(int exit_code,
                                                                        const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "%s: %s\n", program_invocation_short_name, text);
  _exit(exit_code);
}

#endif
