// What every file may use: attributes, units, alignment arithmetic.
//
// No types of ours, no state, nothing that could fail.
#ifndef HZ_CORE_BASE_H
#define HZ_CORE_BASE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HZ_EXPORT __attribute__((visibility("default")))
// On declarations that hot paths use: reached without the global offset table.
#define HZ_HIDDEN __attribute__((visibility("hidden")))
#define HZ_FAST static inline __attribute__((always_inline))
#define HZ_SLOW __attribute__((noinline, cold))
#define HZ_HOT __attribute__((hot))
#define HZ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#define hz_likely(x) __builtin_expect(!!(x), 1)
#define hz_unlikely(x) __builtin_expect(!!(x), 0)
#define hz_count_of(array) (sizeof(array) / sizeof((array)[0]))

#define HZ_KIB ((size_t)1 << 10)
#define HZ_MIB ((size_t)1 << 20)
#define HZ_GIB ((size_t)1 << 30)
#define HZ_TIB ((size_t)1 << 40)

enum {
  HZ_CACHE_LINE = 64, // x86-64 and most arm64: bytes that move between cores together
  HZ_MIN_ALIGN = 16,  // what alignof(max_align_t) asks for on the 64-bit ABIs
};

// Debug builds (`bazel build -c dbg`) run the invariant checkers; the compiler drops them
// elsewhere.
#ifdef NDEBUG
enum { HZ_DEBUG = 0 };
#else
enum { HZ_DEBUG = 1 };
#endif

HZ_FAST bool hz_is_pow2(size_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}
// align: a power of two. The caller has excluded overflow.
HZ_FAST size_t hz_align_up(size_t n, size_t align) {
  return (n + align - 1) & ~(align - 1);
}
HZ_FAST size_t hz_align_down(size_t n, size_t align) {
  return n & ~(align - 1);
}
HZ_FAST size_t hz_min(size_t a, size_t b) {
  return a < b ? a : b;
}
HZ_FAST size_t hz_max(size_t a, size_t b) {
  return a > b ? a : b;
}
// n: not 0.
HZ_FAST unsigned hz_log2_floor(size_t n) {
  return 63u - (unsigned)__builtin_clzll(n);
}
HZ_FAST size_t hz_pow2_ceil(size_t n) {
  return n <= 1 ? 1 : (size_t)1 << (64 - __builtin_clzll(n - 1));
}

#endif
