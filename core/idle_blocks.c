// See core/idle_blocks.h.
#include "core/idle_blocks.h"

#include "core/counter.h"
#include "core/os.h"

// Whole pages between two blocks, all free in between.
static size_t purge_between(const struct hz_idle_blocks *blocks, uint32_t from, uint32_t to,
                            unsigned *calls) {
  const uintptr_t base = (uintptr_t)blocks->base;
  const uintptr_t start = hz_align_up(base + from * blocks->bytes, hz_page_bytes);
  const uintptr_t end = hz_align_down(base + to * blocks->bytes, hz_page_bytes);
  if (start >= end || *calls == 0) return 0;
  --*calls;
  hz_count(HZ_COUNT_purge_calls, 1);
  return hz_os.purge((void *)start, end - start) ? end - start : 0;
}

static size_t purge(const struct hz_idle_blocks *blocks, unsigned *calls) {
  size_t purged = 0;
  for (uint32_t i = 0; i < blocks->count;) {
    if (!blocks->is_free(blocks->run, i)) {
      i++;
      continue;
    }
    uint32_t end = i + 1;
    while (end < blocks->count && blocks->is_free(blocks->run, end)) end++;
    purged += purge_between(blocks, i, end, calls);
    i = end;
  }
  return purged;
}

size_t hz_idle_blocks_decay(const struct hz_idle_blocks *blocks, uint8_t *idle_ticks, bool all,
                            bool tick, unsigned *calls) {
  if (tick && *idle_ticks < HZ_IDLE_TICKS) ++*idle_ticks;
  const bool due = *idle_ticks == HZ_IDLE_TICKS && *calls != 0;
  const size_t purged = all || due ? purge(blocks, calls) : 0;
  // Done until it is used again, unless the calls ran out on the way.
  if (due && *calls != 0) *idle_ticks = HZ_IDLE_TICKS + 1;
  return purged;
}
