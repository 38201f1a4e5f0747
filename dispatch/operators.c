// operator new and delete, exported under their linker names, without a C++ runtime of our own.
//
// Success is a jump to the line. Failure belongs to the runtime that the program has: its own
// operator new is called, which asks malloc (ours) again, runs the new handler, and throws
// std::bad_alloc or answers nullptr. It is looked for only then, so that a C program never loads or
// searches for one. The exceptions pass through this file: it is compiled with unwind tables.
#include <stdlib.h>

#include "core/log.h"
#include "dispatch/active.h"
#include "dispatch/objects.h"
#include "dispatch/rules.h"

#define HZ_OPERATOR(name, result, parameters, arguments)                                           \
  HZ_EXPORT result name parameters;                                                                \
  result name parameters {                                                                         \
    return hz_active.family.name arguments;                                                        \
  }
HZ_CXX_FAMILY(HZ_OPERATOR)
#undef HZ_OPERATOR

// ---- new ----------------------------------------------------------------------------------------

// The runtime's own operator of this name.
static HZ_SLOW void *runtime_operator(const char *name) {
  void *next = hz_next_definition_locked(name);
  if (next != NULL) return next;
  hz_log("operator new found no memory and no C++ runtime to throw std::bad_alloc (%s is not "
         "defined in any loaded library); the process ends",
         name);
  abort();
}

// Each rule is its list's row: the line's answer, else what the runtime's twin makes of it.
#define HZ_RULE_NEW(name, result, parameters, arguments)                                           \
  void *hz_rule_##name parameters {                                                                \
    void *p = HZ_TAKE arguments;                                                                   \
    if (hz_likely(p != NULL)) return p;                                                            \
    return ((__typeof__(&hz_rule_##name))runtime_operator(#name))arguments;                        \
  }

#define HZ_TAKE(bytes, ...) hz_active.table.alloc(bytes)
HZ_CXX_NEW(HZ_RULE_NEW)
#undef HZ_TAKE

#define HZ_TAKE(bytes, align, ...) hz_rule_memalign(align, bytes)
HZ_CXX_NEW_ALIGNED(HZ_RULE_NEW)
#undef HZ_TAKE

// ---- delete -------------------------------------------------------------------------------------

// Sizes and alignments are hints, as in free_sized, and stay unused.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define HZ_GIVE(p, ...) hz_active.table.release(p)
#define HZ_RULE_DELETE(name, result, parameters, arguments)                                        \
  void hz_rule_##name parameters {                                                                 \
    HZ_GIVE arguments;                                                                             \
  }
HZ_CXX_DELETE(HZ_RULE_DELETE)
