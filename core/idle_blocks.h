// Gives back the pages that only free blocks of a run touch, once the run has been quiet. Who knows
// which blocks are free is a line or core/class_run.h.
#ifndef HZ_CORE_IDLE_BLOCKS_H
#define HZ_CORE_IDLE_BLOCKS_H

#include "core/base.h"

enum { HZ_IDLE_TICKS = 4 }; // ticks come four times per purge.idle_ms (core/tick.c)

struct hz_idle_blocks {
  const void *base; // of the first block
  size_t bytes;     // of each
  uint32_t count;
  bool (*is_free)(const void *run, uint32_t index);
  const void *run; // handed to is_free
};

// At once (all), or once after nothing was taken or given for HZ_IDLE_TICKS ticks. tick: one has
// passed. *idle_ticks: 0 when a block was taken or given; counted here. *calls: system calls that
// may still be made; counted down to 0 when they do not suffice. Returns bytes. What is free must
// stay free meanwhile; it reads as zero afterwards.
size_t hz_idle_blocks_decay(const struct hz_idle_blocks *blocks, uint8_t *idle_ticks, bool all,
                            bool tick, unsigned *calls);

#endif
