// Every exported function of the C allocation family, and nothing else.
//
// malloc, free and malloc_usable_size jump straight into the chosen line. The others jump to the
// rules that hold for every line (rules.c), which settle NULL, 0, overflow and alignment and then
// call the line. operators.c exports the C++ ones, deepbind.c the wrapper of dlopen.
#include <stdlib.h>

#include "core/version.h"
#include "dispatch/active.h"
#include "dispatch/start.h"

HZ_EXPORT HZ_HOT void *malloc(size_t bytes) {
  return hz_active.table.alloc(bytes);
}

HZ_EXPORT HZ_HOT void free(void *p) {
  hz_active.table.release(p);
}

HZ_EXPORT size_t malloc_usable_size(void *p) {
  return hz_active.table.usable_size(p);
}

// Old ones that the headers have dropped, and new ones that they do not have yet.
HZ_EXPORT void cfree(void *p);
HZ_EXPORT void free_sized(void *p, size_t bytes);
HZ_EXPORT void free_aligned_sized(void *p, size_t align, size_t bytes);

#define HZ_ENTRY(name, result, parameters, arguments)                                              \
  HZ_EXPORT result name parameters {                                                               \
    return hz_active.family.name arguments;                                                        \
  }
HZ_C_FAMILY(HZ_ENTRY)
#undef HZ_ENTRY

// What this library is and what it runs, for programs that want to know: found by dlsym.
HZ_EXPORT const char *hakozuna_version(void);
HZ_EXPORT const char *hakozuna_profile(void);

const char *hakozuna_version(void) {
  return HZ_VERSION;
}

// The chosen profile; "none" in a process that keeps its own allocator.
const char *hakozuna_profile(void) {
  return hz_process_profile();
}
