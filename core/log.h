// Messages without allocation: one write(2) per message, from any point of a process's life.
//
// Text goes to the report descriptor: a close-on-exec duplicate of fd 2 made at start, because many
// programs (ls, sort, cat, grep) close fd 2 before the library's last words. Without a duplicate,
// fd 2 itself. errno is kept.
#ifndef HZ_CORE_LOG_H
#define HZ_CORE_LOG_H

#include "core/base.h"

enum { HZ_LOG_LINE_BYTES = 1024 }; // a longer message is cut and ends in "..."

// Duplicates fd 2 for later messages. Called once at start; without it messages go to fd 2.
void hz_log_start(void);

// The descriptor that messages go to.
int hz_log_fd(void);

// Writes "hakozuna: " + the formatted text + a newline as one write.
void hz_log(const char *format, ...) HZ_PRINTF(1, 2);

// The same for a few pieces of text, without any function of libc that a sanitizer might replace:
// for messages from the first moments of a process. To fd 2. At most HZ_LOG_PIECES, the rest is
// cut.
enum { HZ_LOG_PIECES = 12 };
void hz_log_pieces(const char *const *pieces, size_t count);

// Writes bytes to fd, restarting after signals and short writes. False: the descriptor refused.
bool hz_write_all(int fd, const char *text, size_t bytes);

#endif
