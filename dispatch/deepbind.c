// The wrapper of dlopen.
//
// RTLD_DEEPBIND makes a library look names up in itself and its own dependencies first, so it finds
// libc's malloc where the rest of the process has ours; a block that crosses over then ends in the
// wrong free. Option dlopen_deepbind = strip (default) takes the flag away and says so once. In
// everything else the call reaches the next dlopen as if the program had made it: the loader reads
// the caller's address to find its RUNPATH and $ORIGIN, so the wrapper leaves by a jump. dlmopen is
// left alone: another namespace has its own libc and does not share blocks.
//
// C cannot promise a jump that leaves the return address alone, so the function itself is a few
// lines of assembly around hz_dlopen_mode.
#include <dlfcn.h>

#include "config/options.h"
#include "core/log.h"
#include "dispatch/boot.h"
#include "dispatch/objects.h"
#include "dispatch/start.h"

#define HZ_FROM_ASSEMBLY __attribute__((visibility("hidden"), used))

static void *no_dlopen(const char *file, int mode) {
  (void)file, (void)mode;
  return NULL;
}

HZ_FROM_ASSEMBLY void *(*hz_dlopen_next)(const char *file, int mode) = no_dlopen;

// Not at start: most processes never call dlopen, and looking costs pages of libc's tables.
static void find_next(void) {
  if (__atomic_load_n(&hz_dlopen_next, __ATOMIC_RELAXED) != no_dlopen) return;
  void *next = hz_next_definition_locked("dlopen");
  if (next != NULL)
    __atomic_store_n(&hz_dlopen_next, (void *(*)(const char *, int))next, __ATOMIC_RELAXED);
}

// The mode to go on with.
HZ_FROM_ASSEMBLY int hz_dlopen_mode(const char *file, int mode) {
  static _Atomic bool said;
  find_next();
  if ((mode & RTLD_DEEPBIND) == 0 || !hz_boot()) return mode;
  if (hz_process.line == NULL || hz_common.dlopen_deepbind != HZ_DEEPBIND_STRIP) return mode;
  if (!atomic_exchange(&said, true))
    hz_log("dlopen of %s: RTLD_DEEPBIND is ignored, because the library would bypass this allocator"
           " (dlopen_deepbind=keep keeps it)",
           file != NULL ? file : "the program itself");
  return mode & ~RTLD_DEEPBIND;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "  endbr64\n"
        "  pushq %rdi\n" // the file; this also aligns the stack for the call
        ".cfi_adjust_cfa_offset 8\n"
        "  call hz_dlopen_mode\n"
        "  movl %eax, %esi\n"
        "  popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  jmpq *hz_dlopen_next(%rip)\n"
        ".cfi_endproc\n"
        ".size dlopen, .-dlopen\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "  hint #34\n" // bti c
        "  stp x29, x30, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        ".cfi_offset x29, -32\n"
        ".cfi_offset x30, -24\n"
        "  str x0, [sp, #16]\n" // the file
        "  bl hz_dlopen_mode\n"
        "  mov w1, w0\n"
        "  ldr x0, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        ".cfi_def_cfa_offset 0\n"
        "  adrp x16, hz_dlopen_next\n"
        "  ldr x16, [x16, #:lo12:hz_dlopen_next]\n"
        "  br x16\n"
        ".cfi_endproc\n"
        ".size dlopen, .-dlopen\n"
        ".popsection\n");
#else
#error "dlopen's wrapper needs its few instructions for this processor"
#endif
