// The order in which core starts: see core/core.h.
#include "core/core.h"

#include "core/arena.h"
#include "core/central.h"
#include "core/large.h"
#include "core/meta.h"
#include "core/os.h"
#include "core/run_block.h"
#include "core/run_transfer.h"
#include "core/thread.h"
#include "core/tick.h"

bool hz_core_start(const struct hz_core_options *options) {
  hz_os_start();
  hz_purge_idle_ms = options->purge_idle_ms;
  hz_run_cache_bytes = options->run_cache_bytes;
  hz_run_batch = options->run_batch;
  hz_run_transfer_blocks = options->run_transfer;
  hz_large_cache_bytes = options->large_cache_bytes;
  if (!hz_thread_start()) return false;
  hz_central_start();
  hz_large_start();
  hz_run_transfer_start();
  if (!hz_arena_start(options->reserve_bytes)) return false;
  hz_meta_start();
  return true;
}
