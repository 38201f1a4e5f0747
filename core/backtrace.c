// Who called: libgcc's unwinder walks the stack, dladdr names the frames.
//
// Both are there without loading anything (libgcc is linked in), neither takes a lock of ours.
#include "core/backtrace.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unwind.h>

#include "core/log.h"

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *user) {
  struct hz_backtrace *trace = user;
  if (trace->count == HZ_BACKTRACE_FRAMES) return _URC_END_OF_STACK;
  uintptr_t address = (uintptr_t)_Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  trace->frames[trace->count++] = address;
  return _URC_NO_REASON;
}

// A return address may be the first byte after its function when the call never returns, so names
// are looked up one byte earlier: inside the call.
static bool look_up(uintptr_t frame, Dl_info *info) {
  return dladdr((const void *)(frame - 1), info) != 0 && info->dli_fname != NULL;
}

static bool is_in_module(uintptr_t frame, const void *base) {
  Dl_info info;
  return look_up(frame, &info) && info.dli_fbase == base;
}

// Linked into the executable, the library and the program are one module and nothing tells their
// frames apart.
static size_t first_outside(const struct hz_backtrace *trace) {
  Dl_info own;
  size_t i = 0;
  if (!look_up((uintptr_t)hz_backtrace_take + 1, &own)) return trace->count;
  if (is_in_module(getauxval(AT_ENTRY) + 1, own.dli_fbase)) return trace->count;
  while (i < trace->count && is_in_module(trace->frames[i], own.dli_fbase)) i++;
  return i;
}

void hz_backtrace_take(struct hz_backtrace *trace) {
  trace->count = 0;
  _Unwind_Backtrace(take_frame, trace);
  trace->first_outside = first_outside(trace);
}

void hz_frame_name(uintptr_t frame, char *text, size_t bytes) {
  Dl_info info;
  if (!look_up(frame, &info)) {
    snprintf(text, bytes, "0x%jx", (uintmax_t)frame);
    return;
  }
  uintmax_t in_module = frame - (uintptr_t)info.dli_fbase;
  if (info.dli_sname == NULL) {
    snprintf(text, bytes, "%s+0x%jx", info.dli_fname, in_module);
  } else {
    snprintf(text, bytes, "%s+0x%jx (%s+0x%jx)", info.dli_fname, in_module, info.dli_sname,
             (uintmax_t)(frame - (uintptr_t)info.dli_saddr));
  }
}

void hz_backtrace_log(const struct hz_backtrace *trace) {
  char name[HZ_FRAME_BYTES];
  size_t from = trace->first_outside < trace->count ? trace->first_outside : 0;
  for (size_t i = from; i < trace->count; i++) {
    hz_frame_name(trace->frames[i], name, sizeof name);
    hz_log("  #%zu %s", i - from, name);
  }
}
