// See core/slab_table.h.
#include "core/slab_table.h"

#include "core/arena.h"
#include "core/misuse.h"
#include "core/os.h"

bool hz_slab_table_start(struct hz_slab_table *table, size_t row_bytes) {
  HZ_ASSERT(hz_is_pow2(row_bytes) && row_bytes <= hz_page_bytes);
  hz_locks_register(HZ_RANK_TABLE, &table->lock, 1, sizeof table->lock);
  table->row_bytes = row_bytes;
  table->rows = hz_os.reserve_table(hz_arena.slab_count * row_bytes);
  return table->rows != NULL;
}

static HZ_SLOW bool commit_more(struct hz_slab_table *table, size_t rows) {
  hz_lock(&table->lock);
  const size_t from = table->committed * table->row_bytes;
  const size_t to = hz_align_up(rows * table->row_bytes, hz_page_bytes);
  const bool done = to <= from || hz_os.commit((char *)table->rows + from, to - from);
  if (done && to > from)
    __atomic_store_n(&table->committed, to / table->row_bytes, __ATOMIC_RELEASE);
  hz_unlock(&table->lock);
  return done;
}

bool hz_slab_table_commit(struct hz_slab_table *table, size_t rows) {
  return hz_likely(rows <= hz_slab_table_rows(table)) || commit_more(table, rows);
}

size_t hz_slab_table_rows(struct hz_slab_table *table) {
  return __atomic_load_n(&table->committed, __ATOMIC_ACQUIRE);
}
