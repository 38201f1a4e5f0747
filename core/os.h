// The kernel, as this library uses it: the only file pair that maps, protects or advises memory.
//
// A table of calls, so that tests can put a machine in its place on which the n-th commit fails or
// the clock stands still. Every call but the clock keeps errno, may fail (seccomp, limits, strict
// overcommit), and says so by false or NULL; none is retried here.
#ifndef HZ_CORE_OS_H
#define HZ_CORE_OS_H

#include "core/base.h"

struct hz_os {
  // Address space without memory, `align`-aligned (a power of two, at least a page).
  void *(*reserve)(size_t bytes, size_t align);
  // The same at exactly `at`, never replacing what is mapped there.
  bool (*claim)(void *at, size_t bytes);
  // Gives claimed or reserved address space back for anybody's use.
  bool (*abandon)(void *at, size_t bytes);
  // Address space that reads as zero at once, and is writable after `commit`.
  void *(*reserve_table)(size_t bytes);
  // Makes reserved pages readable and writable; new ones are zero.
  bool (*commit)(void *at, size_t bytes);
  // Committed pages become reserved again: contents lost, no longer counted against any limit.
  bool (*decommit)(void *at, size_t bytes);
  // Contents of committed pages are lost; they stay committed and read as zero.
  bool (*purge)(void *at, size_t bytes);
  // Moves the pages of [from, from + from_bytes) to `to` (reserved), where the mapping grows to
  // to_bytes; `from` is unmapped afterwards. False: nothing has changed.
  bool (*move)(void *from, size_t from_bytes, void *to, size_t to_bytes);
  // Fresh zero pages for metadata, anywhere.
  void *(*map)(size_t bytes);
  // Milliseconds of a clock that never goes back; a few ms coarse.
  uint64_t (*now_ms)(void);
  // RLIMIT_AS in bytes; 0: unlimited.
  size_t (*address_limit)(void);
};

extern HZ_HIDDEN struct hz_os hz_os;

// Bytes of a page, read at start (4 KiB to 64 KiB).
extern size_t hz_page_bytes;

// Reads the page size. Once, before any other call.
void hz_os_start(void);

#endif
