// Starting the part that all lines share.
#ifndef HZ_CORE_CORE_H
#define HZ_CORE_CORE_H

#include "core/base.h"

struct hz_core_options {
  size_t reserve_bytes;     // arena.reserve
  uint64_t purge_idle_ms;   // purge.idle_ms
  size_t run_cache_bytes;   // cache.run_bytes
  unsigned run_batch;       // cache.run_batch
  size_t run_transfer;      // cache.run_transfer
  size_t large_cache_bytes; // cache.large_bytes
};

// Reserves the arena and prepares threads and locks. Once, before a line starts.
// False: the kernel gives no address space, or no thread-specific key is left.
bool hz_core_start(const struct hz_core_options *options);

#endif
