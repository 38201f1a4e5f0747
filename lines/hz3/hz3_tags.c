// The page-tag table of hz3: written when a run changes hands, read by every free.
#include "lines/hz3/hz3_model.h"

#include "core/os.h"

_Atomic uint32_t *hz3_tags;

static struct hz_lock lock;
static size_t committed; // slabs whose tags are writable

bool hz3_tags_start(void) {
  hz_locks_register(HZ_RANK_TABLE, &lock, 1, sizeof lock);
  hz3_tags = hz_os.reserve_table(hz_arena.slab_count * sizeof *hz3_tags);
  return hz3_tags != NULL;
}

void hz3_tags_write(const struct hz_run *run, uint32_t tag) {
  const size_t first = hz_slab_of(hz_run_base(run));
  for (size_t i = first; i < first + run->slabs; i++)
    atomic_store_explicit(&hz3_tags[i], tag, memory_order_relaxed);
}

bool hz3_tags_commit(const struct hz_run *run) {
  const size_t slabs = hz_slab_of(hz_run_base(run)) + run->slabs;
  if (hz_likely(slabs <= __atomic_load_n(&committed, __ATOMIC_ACQUIRE))) return true;
  hz_lock(&lock);
  const size_t from = hz_align_down(committed * sizeof *hz3_tags, hz_page_bytes);
  const size_t to = hz_align_up(slabs * sizeof *hz3_tags, hz_page_bytes);
  const bool done = to <= from || hz_os.commit((char *)hz3_tags + from, to - from);
  if (done && to > from) __atomic_store_n(&committed, to / sizeof *hz3_tags, __ATOMIC_RELEASE);
  hz_unlock(&lock);
  return done;
}
