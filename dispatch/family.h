// Every exported entry but the three hottest, once: name, result, parameters, arguments.
//
// From these lists come the exported functions (entry.c, operators.c), their slots in the active
// table (active.h), the way through the first call (boot.c) and, for a process that keeps its own
// allocator, the links to the next definition of each name (aside.c).
#ifndef HZ_DISPATCH_FAMILY_H
#define HZ_DISPATCH_FAMILY_H

#include <malloc.h>
#include <stdio.h>

#include "core/base.h"

#define HZ_C_FAMILY(X)                                                                             \
  X(calloc, void *, (size_t count, size_t bytes), (count, bytes))                                  \
  X(realloc, void *, (void *p, size_t bytes), (p, bytes))                                          \
  X(reallocarray, void *, (void *p, size_t count, size_t bytes), (p, count, bytes))                \
  X(memalign, void *, (size_t align, size_t bytes), (align, bytes))                                \
  X(aligned_alloc, void *, (size_t align, size_t bytes), (align, bytes))                           \
  X(posix_memalign, int, (void **out, size_t align, size_t bytes), (out, align, bytes))            \
  X(valloc, void *, (size_t bytes), (bytes))                                                       \
  X(pvalloc, void *, (size_t bytes), (bytes))                                                      \
  X(cfree, void, (void *p), (p))                                                                   \
  X(free_sized, void, (void *p, size_t bytes), (p, bytes))                                         \
  X(free_aligned_sized, void, (void *p, size_t align, size_t bytes), (p, align, bytes))            \
  X(malloc_trim, int, (size_t pad), (pad))                                                         \
  X(mallinfo, struct mallinfo, (void), ())                                                         \
  X(mallinfo2, struct mallinfo2, (void), ())                                                       \
  X(mallopt, int, (int parameter, int value), (parameter, value))                                  \
  X(malloc_stats, void, (void), ())                                                                \
  X(malloc_info, int, (int options, FILE *out), (options, out))

// operator new and delete by their linker names (Itanium C++ ABI): n = new, d = delete; w, l = one
// object, a = array; m = size_t; then the alignment and nothrow forms.
#define HZ_CXX_NEW(X)                                                                              \
  X(_Znwm, void *, (size_t bytes), (bytes))                                                        \
  X(_Znam, void *, (size_t bytes), (bytes))                                                        \
  X(_ZnwmRKSt9nothrow_t, void *, (size_t bytes, const void *tag), (bytes, tag))                    \
  X(_ZnamRKSt9nothrow_t, void *, (size_t bytes, const void *tag), (bytes, tag))

#define HZ_CXX_NEW_ALIGNED(X)                                                                      \
  X(_ZnwmSt11align_val_t, void *, (size_t bytes, size_t align), (bytes, align))                    \
  X(_ZnamSt11align_val_t, void *, (size_t bytes, size_t align), (bytes, align))                    \
  X(_ZnwmSt11align_val_tRKSt9nothrow_t, void *, (size_t bytes, size_t align, const void *tag),     \
    (bytes, align, tag))                                                                           \
  X(_ZnamSt11align_val_tRKSt9nothrow_t, void *, (size_t bytes, size_t align, const void *tag),     \
    (bytes, align, tag))

#define HZ_CXX_DELETE(X)                                                                           \
  X(_ZdlPv, void, (void *p), (p))                                                                  \
  X(_ZdaPv, void, (void *p), (p))                                                                  \
  X(_ZdlPvm, void, (void *p, size_t bytes), (p, bytes))                                            \
  X(_ZdaPvm, void, (void *p, size_t bytes), (p, bytes))                                            \
  X(_ZdlPvRKSt9nothrow_t, void, (void *p, const void *tag), (p, tag))                              \
  X(_ZdaPvRKSt9nothrow_t, void, (void *p, const void *tag), (p, tag))                              \
  X(_ZdlPvSt11align_val_t, void, (void *p, size_t align), (p, align))                              \
  X(_ZdaPvSt11align_val_t, void, (void *p, size_t align), (p, align))                              \
  X(_ZdlPvmSt11align_val_t, void, (void *p, size_t bytes, size_t align), (p, bytes, align))        \
  X(_ZdaPvmSt11align_val_t, void, (void *p, size_t bytes, size_t align), (p, bytes, align))        \
  X(_ZdlPvSt11align_val_tRKSt9nothrow_t, void, (void *p, size_t align, const void *tag),           \
    (p, align, tag))                                                                               \
  X(_ZdaPvSt11align_val_tRKSt9nothrow_t, void, (void *p, size_t align, const void *tag),           \
    (p, align, tag))

#define HZ_CXX_FAMILY(X) HZ_CXX_NEW(X) HZ_CXX_NEW_ALIGNED(X) HZ_CXX_DELETE(X)
#define HZ_FAMILY(X) HZ_C_FAMILY(X) HZ_CXX_FAMILY(X)

// One function pointer per entry, named as the entry.
struct hz_family {
#define HZ_FAMILY_SLOT(name, result, parameters, arguments) result(*name) parameters;
  HZ_FAMILY(HZ_FAMILY_SLOT)
#undef HZ_FAMILY_SLOT
};

#endif
