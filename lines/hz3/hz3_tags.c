// The page-tag table of hz3: written when a run changes hands, read by every free.
#include "lines/hz3/hz3_model.h"

#include "core/slab_table.h"

static struct hz_slab_table table;
_Atomic uint32_t *hz3_tags;

bool hz3_tags_start(void) {
  if (!hz_slab_table_start(&table, sizeof *hz3_tags)) return false;
  hz3_tags = table.rows;
  return true;
}

void hz3_tags_write(const struct hz_run *run, uint32_t tag) {
  const size_t first = hz_slab_of(run->base);
  for (size_t i = first; i < first + run->slabs; i++)
    atomic_store_explicit(&hz3_tags[i], tag, memory_order_relaxed);
}

bool hz3_tags_commit(const struct hz_run *run) {
  return hz_slab_table_commit(&table, hz_slab_of(run->base) + run->slabs);
}
