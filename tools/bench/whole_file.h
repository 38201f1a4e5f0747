// Files that are always whole: written beside their place and moved there at the end.
#ifndef HZ_TOOLS_BENCH_WHOLE_FILE_H
#define HZ_TOOLS_BENCH_WHOLE_FILE_H

#include <stdio.h>

#include "core/base.h"

// For the start of what takes long: HZ_EXIT_OK, or HZ_EXIT_NO_FILE after a sentence that says why no
// file can be written there. What is no plain file is refused: the move at the end would replace
// the device, not write to it.
int hz_whole_file_check(const char *path);

// Makes `path` what `print` writes, with the mode that it has; a symbolic link stays one. print
// returns false, after a sentence of its own, to leave the file as it was. what: for the sentence where the file cannot be written, "the page". Returns
// HZ_EXIT_OK, HZ_EXIT_SYSTEM after print's false, or HZ_EXIT_NO_FILE.
int hz_whole_file_write(const char *path, const char *what,
                        bool (*print)(FILE *out, const void *context), const void *context);

// The part of a document between a line `begin` and a line `end` behind it.
struct hz_place {
  const char *begin, *end;
};

// Whether there is such a place in the file, which is also true of no file and of an empty one. An
// exit code; after a sentence, HZ_EXIT_DATA: there is not.
int hz_whole_file_check_place(const char *path, const struct hz_place *place);

// hz_whole_file_write of that place alone, the rest stays; of no file or an empty one, the whole.
int hz_whole_file_fill(const char *path, const char *what, const struct hz_place *place,
                       bool (*print)(FILE *out, const void *context), const void *context);

#endif
