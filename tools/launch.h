// Runs a program under a preloaded library: finds the library and the program, extends LD_PRELOAD,
// spawns, passes signals on, and brings the exit code back.
#ifndef HZ_TOOLS_LAUNCH_H
#define HZ_TOOLS_LAUNCH_H

#include "core/base.h"

// Finds libhakozuna.so: beside this executable, in ../lib/hakozuna, in ../lib, in the system's
// library folder. The first hit counts. path: PATH_MAX bytes. False: `path` holds the places where
// it was looked for.
bool hz_library_find(char *path);

// The same for a command that cannot do without: HZ_EXIT_OK, or HZ_EXIT_NO_LIBRARY after a sentence.
int hz_library_require(char *path);

// Finds a program as execvp(3) does. path: PATH_MAX bytes. Returns HZ_EXIT_OK, HZ_EXIT_NOT_FOUND or
// HZ_EXIT_CANNOT_RUN; errno says why.
int hz_program_find(const char *name, char *path);

// Puts `library` into a value of LD_PRELOAD, after everything that watches allocations and before
// everything that replaces the allocator. `existing`: the present value or NULL. Unchanged where
// the library is in it already. Returns an allocated string, or NULL without memory.
char *hz_preload_join(const char *existing, const char *library);

// Finds the first entry of a value of LD_PRELOAD (NULL: unset) that is a known allocator. entry:
// PATH_MAX bytes.
bool hz_preload_allocator(const char *value, char *entry);

// Runs `path` with argv and this process's environment and waits. Returns its exit code, 128+n
// where signal n ended it, or an HZ_EXIT_ code after a sentence where it could not be started.
//
// The program stays in this process's group, so the terminal's signals reach it directly; signals
// that a process sends to us are passed on. When the program stops, we stop too, and it continues
// when we do. Only for a process with one thread; the signal mask stays changed.
int hz_launch(const char *path, char **argv);

#endif
