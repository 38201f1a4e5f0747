// A table with a row for each slab of the arena, for a line's own use: reserved as a whole, reads as
// zero everywhere, writable as far as the arena has grown.
#ifndef HZ_CORE_SLAB_TABLE_H
#define HZ_CORE_SLAB_TABLE_H

#include "core/base.h"
#include "core/lock.h"

struct hz_slab_table {
  void *rows;
  size_t row_bytes;
  size_t committed; // rows that are writable
  struct hz_lock lock;
};

// Once, after the arena. row_bytes: a power of two up to a page. False: no address space.
bool hz_slab_table_start(struct hz_slab_table *table, size_t row_bytes);

// Makes the first `rows` rows writable. False: no memory. Any thread.
bool hz_slab_table_commit(struct hz_slab_table *table, size_t rows);

// How many are.
size_t hz_slab_table_rows(struct hz_slab_table *table);

#endif
