// What stands between a program file and a preloaded library: static linking, raised privileges,
// another architecture or C library, an allocator of its own.
#ifndef HZ_TOOLS_PROGRAM_H
#define HZ_TOOLS_PROGRAM_H

#include "tools/findings.h"

// What to look for. LOADING: whether the dynamic loader will load a preloaded library into it.
// WHOLE: also whether the library will then serve it.
enum hz_program_question { HZ_PROGRAM_LOADING, HZ_PROGRAM_WHOLE };

// Reads the file at `path` (scripts: their interpreter too, as deep as exec follows) and appends
// what it finds. Nothing is executed. A row is HZ_WRONG where the answer is no.
void hz_program_check(const char *path, enum hz_program_question question,
                      struct hz_findings *findings);

#endif
