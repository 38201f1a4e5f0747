// Where a report goes: the descriptor of core/log.h, or a file of its own.
#ifndef HZ_STATS_DESTINATION_H
#define HZ_STATS_DESTINATION_H

#include "core/base.h"

enum { HZ_DESTINATION_BYTES = 1024 };

// Fills in %p (process id), %e (program) and %% of a file name; another % stays as it is. A slash
// in the program's name becomes '_'. False: the result does not fit into HZ_DESTINATION_BYTES.
bool hz_destination_name(const char *pattern, uint64_t pid, const char *program,
                         char name[HZ_DESTINATION_BYTES]);

// Opens the file for appending, created with mode 0600 when it is not there. `pattern` "": the
// descriptor of core/log.h. So is the result when the file cannot be opened, which is told in one
// sentence. A symbolic link is refused: names are predictable, and a link that someone else put in
// /tmp would lead a privileged process to append to any file.
int hz_destination_open(const char *pattern, uint64_t pid, const char *program);

// Closes what hz_destination_open gave, unless it is the descriptor of core/log.h.
void hz_destination_close(int fd);

#endif
