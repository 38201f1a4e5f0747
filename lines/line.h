// The contract between dispatch and an allocator line.
//
// dispatch/entry.c has settled the edge cases before a line is called, once for all lines:
// overflow of n*m, validity of alignments, the rules of realloc(p, 0) and realloc(NULL, n).
// What is left to the line is said per function. Every function may be called by any thread at any
// time after `start`, also by threads that the line has never seen and by threads whose exit
// callback has run already.
#ifndef HZ_LINES_LINE_H
#define HZ_LINES_LINE_H

#include "core/base.h"
#include "lines/catalog.h"

// The hot entries: one cache line. dispatch copies them into the active table.
struct hz_table {
  // A block of at least `bytes`, 16-aligned. bytes: any value; 0 gives a distinct block; what
  // cannot be served gives NULL and ENOMEM (core/misuse.h hz_no_memory).
  void *(*alloc)(size_t bytes);
  // The same with the first `bytes` all zero.
  void *(*alloc_zeroed)(size_t bytes);
  // The same aligned to `align`, a power of two of any size.
  void *(*alloc_aligned)(size_t align, size_t bytes);
  // Takes a block back. NULL is allowed and does nothing. errno is kept. Anything that is not the
  // start of a live block goes to hz_misuse as far as the line can tell (README, "Bad frees").
  void (*release)(void *p);
  // Bytes that may be used at p, constant for the block's life; 0 for NULL and for a bad pointer
  // (after hz_misuse).
  size_t (*usable_size)(void *p);
  // Gives p room for `bytes` (not 0) without copying: returns p (resized in place), another address
  // (the pages were moved there), or NULL (the caller allocates, copies and releases; errno is
  // kept). p: live. A shrink that would waste more than half of the block answers NULL too.
  void *(*resize)(void *p, size_t bytes);
};

// A moment's view of memory, for malloc_stats, mallinfo2, malloc_info and the report at exit.
struct hz_gauges {
  uint64_t reserved_bytes;  // address space held
  uint64_t committed_bytes; // of it, usable without another system call
  uint64_t live_bytes;      // in blocks that the program or a thread's cache holds
  uint64_t cached_bytes;    // of these, in caches above the runs, as far as can be read (see line)
  uint64_t free_bytes; // in free blocks, used slabs and cached large blocks: at most so much can go
  uint64_t large_bytes;  // in live blocks above 4 MiB
  uint64_t large_blocks; // how many
  uint64_t threads;      // with a heap now
};

struct hz_line {
  const struct hz_line_info *info; // name, options and profiles: lines/catalog.h
  struct hz_table table;
  // The hot entries of the chosen profile, where one has its own; asked once, after start. NULL:
  // `table` serves all profiles.
  const struct hz_table *(*choose)(void);

  // Once, before any other call, options set, core started. False: no memory for the tables.
  bool (*start)(void);
  // Gives everything free that can be reached back to the kernel, keeping about `keep_bytes`.
  // True: something was given back.
  bool (*trim)(size_t keep_bytes);
  void (*gauges)(struct hz_gauges *out);
  // Walks every invariant; NULL, or the first broken one as text. Other threads must be quiet.
  const char *(*check)(void);
};

// After start.
HZ_FAST const struct hz_table *hz_line_table(const struct hz_line *line) {
  return line->choose != NULL ? line->choose() : &line->table;
}

#endif
