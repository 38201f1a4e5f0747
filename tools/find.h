// Where the library and the programs are.
#ifndef HZ_TOOLS_FIND_H
#define HZ_TOOLS_FIND_H

#include "core/base.h"

// Finds libhakozuna.so: beside this executable, in ../lib/hakozuna, in ../lib, in the system's
// library folder. The first hit counts. path: PATH_MAX bytes. False: `path` holds the places where
// it was looked for.
bool hz_library_find(char *path);

// The same for a command that cannot do without: HZ_EXIT_OK, or HZ_EXIT_NO_LIBRARY and a sentence.
int hz_library_require(char *path);

// Finds a program as execvp(3) does. path: PATH_MAX bytes. Returns HZ_EXIT_OK, HZ_EXIT_NOT_FOUND or
// HZ_EXIT_CANNOT_RUN; errno says why.
int hz_program_find(const char *name, char *path);

#endif
