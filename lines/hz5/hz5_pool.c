// Runs that no thread owns, by class, under a lock each: orphans, which have live blocks and whose
// threads have ended or do not need them, and vacant runs, which have none.
//
// Who frees a block of an orphan, or needs a run, takes one over. Threads without a heap cannot own
// any: they work under the lock. Vacant runs come back as they went, their pages where the class's
// blocks are; those that nobody has needed for a tick go to the arena, and all do when they come to
// more than what is in use.
#include "lines/hz5/hz5_model.h"

#include "core/counter.h"

static struct pool {
  _Alignas(HZ_CACHE_LINE) struct hz_lock lock;
  struct hz5_list orphans;
  uint32_t vacant; // newest, linked by next
  uint32_t vacant_count;
  uint32_t vacant_least; // the lowest vacant_count since the last tick
} pools[HZ_CLASS_COUNT];

enum {
  CLOSE_PER_TICK = 4096, // runs; a few milliseconds for the thread that has the tick
  CLOSE_AT_ONCE = 64,
};

void hz5_pools_start(void) {
  hz_locks_register(HZ_RANK_CLASS, &pools[0].lock, HZ_CLASS_COUNT, sizeof pools[0]);
}

// ---- Under the lock -----------------------------------------------------------------------------

static void push_vacant(struct pool *pool, struct hz5_slab *run) {
  hz5_run_own(run, HZ5_VACANT);
  run->next = pool->vacant;
  // hz5_pool_take and others look without the lock.
  __atomic_store_n(&pool->vacant, hz5_name(run), __ATOMIC_RELAXED);
  __atomic_store_n(&pool->vacant_count, pool->vacant_count + 1, __ATOMIC_RELAXED);
}

static struct hz5_slab *pop_vacant(struct pool *pool) {
  struct hz5_slab *run = hz5_named(pool->vacant);
  if (run == NULL) return NULL;
  __atomic_store_n(&pool->vacant, run->next, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->vacant_count, pool->vacant_count - 1, __ATOMIC_RELAXED);
  pool->vacant_least = hz_min(pool->vacant_least, pool->vacant_count);
  return run;
}

// A run of ours, in no list.
static void place(struct pool *pool, struct hz5_slab *run) {
  const uint32_t live = hz5_run_live(run);
  if (live == 0) push_vacant(pool, run);
  else if (live == hz5_class(run)->blocks) hz5_run_own(run, HZ5_FULL);
  else hz5_run_link(&pool->orphans, run, live);
}

static void take_over(struct pool *pool, struct hz5_slab *run, uint32_t token) {
  hz5_run_unlist(&pool->orphans, run);
  hz5_run_own(run, token);
  hz_count(HZ_COUNT_taken_over, 1);
}

// Whether the run is an orphan of this class. It may be another class's by now.
static bool is_orphan(const struct pool *pool, const struct hz5_slab *run) {
  return hz5_owner(run) == HZ5_ORPHAN && pool == &pools[run->class_id] &&
         hz5_state(run) == HZ5_LISTED;
}

// An orphan, or a full run of nobody's, is taken out, to be placed again.
static bool take_out(struct pool *pool, struct hz5_slab *run) {
  if (is_orphan(pool, run)) {
    hz5_run_unlist(&pool->orphans, run);
    return true;
  }
  if (!hz5_run_adopt(run, HZ5_ORPHAN)) return false;
  if (hz_likely(pool == &pools[run->class_id])) return true;
  hz5_run_own(run, HZ5_FULL);
  return false;
}

// A vacant run that has an owner again. Two threads may have freed its last block at once: the
// second one's mark came when nobody was to be told (announce in hz5_queue.c).
static void clear_strays(struct hz5_slab *run) {
  const void *stray = NULL;
  atomic_thread_fence(memory_order_seq_cst); // who marks from here on sees the owner
  hz5_run_absorb(run, &stray);
  hz5_tell_stray(stray);
}

// ---- From and to heaps --------------------------------------------------------------------------

// Who has marked a block and found the old owner's queue closed waits for the lock
// (hz5_pool_absorb).
void hz5_pool_give(struct hz5_slab *run) {
  struct pool *pool = &pools[run->class_id];
  const void *stray = NULL;
  hz_lock(&pool->lock);
  hz5_run_own(run, HZ5_ORPHAN);
  const uint32_t blocks = hz5_run_absorb(run, &stray);
  place(pool, run);
  hz_unlock(&pool->lock);
  if (blocks != 0) hz_count(HZ_COUNT_remote_frees, blocks);
  hz5_tell_stray(stray);
}

void hz5_pool_vacate(struct hz5_slab *run) {
  struct pool *pool = &pools[run->class_id];
  hz_lock(&pool->lock);
  push_vacant(pool, run);
  hz_unlock(&pool->lock);
}

struct hz5_slab *hz5_pool_take(unsigned class_id, uint32_t token) {
  struct pool *pool = &pools[class_id];
  if (__atomic_load_n(&pool->orphans.first, __ATOMIC_RELAXED) == 0 &&
      __atomic_load_n(&pool->vacant, __ATOMIC_RELAXED) == 0)
    return NULL;
  hz_lock(&pool->lock);
  struct hz5_slab *run = hz5_named(pool->orphans.first);
  const bool orphan = run != NULL;
  if (orphan) take_over(pool, run, token);
  else if ((run = pop_vacant(pool)) != NULL) hz5_run_own(run, token);
  hz_unlock(&pool->lock);
  if (!orphan && run != NULL) clear_strays(run);
  return run;
}

bool hz5_pool_adopt(struct hz5_slab *run, uint32_t token) {
  struct pool *pool = &pools[run->class_id];
  hz_lock(&pool->lock);
  const bool orphan = is_orphan(pool, run);
  if (orphan) take_over(pool, run, token);
  hz_unlock(&pool->lock);
  return orphan;
}

bool hz5_pool_absorb(struct hz5_slab *run, uint32_t owner) {
  struct pool *pool = &pools[run->class_id];
  const void *stray = NULL;
  uint32_t blocks = 0;
  hz_lock(&pool->lock);
  const bool ours = take_out(pool, run);
  const bool leaves = owner >= HZ5_TOKENS && hz5_owner(run) == owner;
  if (ours || leaves) hz5_unqueue(run);
  if (ours) {
    blocks = hz5_run_absorb(run, &stray);
    place(pool, run);
  }
  hz_unlock(&pool->lock);
  if (blocks != 0) hz_count(HZ_COUNT_remote_frees, blocks);
  hz5_tell_stray(stray);
  return ours || leaves;
}

// ---- For threads without a heap -----------------------------------------------------------------

static uint32_t lowest_free(const struct hz5_slab *run) {
  for (uint32_t w = 0; w < run->words; w++) {
    const uint64_t blocks = hz5_free_of(&run->bits[w]).blocks;
    if (blocks != 0) return w * 64 + (uint32_t)__builtin_ctzll(blocks);
  }
  return UINT32_MAX;
}

void *hz5_pool_block(unsigned class_id) {
  struct pool *pool = &pools[class_id];
  void *p = NULL;
  hz_lock(&pool->lock);
  struct hz5_slab *run = hz5_named(pool->orphans.first);
  if (run != NULL) hz5_run_unlist(&pool->orphans, run);
  else run = pop_vacant(pool);
  if (run != NULL) {
    const uint32_t index = lowest_free(run);
    if (hz_likely(index != UINT32_MAX)) {
      hz5_take(run, index);
      p = hz5_base(run) + (size_t)index * hz5_class(run)->bytes;
    }
    hz5_run_own(run, HZ5_ORPHAN);
    place(pool, run);
  }
  hz_unlock(&pool->lock);
  return p;
}

bool hz5_pool_release(struct hz5_slab *slab, void *p) {
  struct hz5_slab *run = hz5_first(slab);
  struct pool *pool = &pools[run->class_id];
  uint32_t index;
  bool live = false;
  hz_lock(&pool->lock);
  const bool ours = take_out(pool, run);
  if (ours) {
    live = hz5_is_live(slab, p, &index);
    if (live) hz5_give(run, index);
    place(pool, run);
  }
  hz_unlock(&pool->lock);
  if (ours && !live) hz5_refuse(slab, p);
  return ours;
}

// ---- Back to the arena --------------------------------------------------------------------------

// Up to `most` of the pool's vacant runs. Returns how many. In steps, because what is under way
// when another thread forks is lost to the child.
static uint32_t close_vacant(struct pool *pool, uint32_t most) {
  uint32_t closed = 0;
  for (uint32_t first, count; closed < most; closed += count) {
    first = count = 0;
    hz_lock(&pool->lock);
    for (struct hz5_slab *run;
         count < hz_min(most - closed, CLOSE_AT_ONCE) && (run = pop_vacant(pool)) != NULL;
         count++) {
      run->next = first;
      first = hz5_name(run);
    }
    hz_unlock(&pool->lock);
    if (count == 0) break;
    hz5_runs_close(first);
  }
  return closed;
}

uint64_t hz5_pools_vacant_slabs(void) {
  uint64_t slabs = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    slabs += (uint64_t)__atomic_load_n(&pools[c].vacant_count, __ATOMIC_RELAXED) *
             hz_size_classes[c].slabs;
  return slabs;
}

bool hz5_pools_empty(void) {
  uint32_t closed = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    if (__atomic_load_n(&pools[c].vacant, __ATOMIC_RELAXED) != 0)
      closed += close_vacant(&pools[c], UINT32_MAX);
  return closed != 0;
}

// What nobody has needed since the last tick.
static void vacant_decay(void) {
  uint32_t left = CLOSE_PER_TICK;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    struct pool *pool = &pools[c];
    if (__atomic_load_n(&pool->vacant, __ATOMIC_RELAXED) == 0) continue;
    hz_lock(&pool->lock);
    const uint32_t unneeded = hz_min(pool->vacant_least, left);
    hz_unlock(&pool->lock);
    if (unneeded != 0) left -= close_vacant(pool, unneeded);
    hz_lock(&pool->lock);
    pool->vacant_least = pool->vacant_count;
    hz_unlock(&pool->lock);
  }
}

// The system calls are made under the lock, because the free blocks must stay free meanwhile.
size_t hz5_pools_decay(bool all, bool tick, unsigned *calls) {
  size_t purged = 0;
  if (tick) vacant_decay();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    if (__atomic_load_n(&pools[c].orphans.first, __ATOMIC_RELAXED) == 0) continue;
    hz_lock(&pools[c].lock);
    for (uint32_t name = pools[c].orphans.first; name != 0; name = hz5_named(name)->next)
      purged += hz5_run_decay(hz5_named(name), all, tick, calls);
    hz_unlock(&pools[c].lock);
  }
  return purged;
}

static const char *check_vacant(const struct pool *pool, unsigned class_id) {
  uint32_t count = 0;
  for (uint32_t name = pool->vacant; name != 0; name = hz5_named(name)->next, count++) {
    const struct hz5_slab *run = hz5_named(name);
    if (hz5_owner(run) != HZ5_VACANT || run->class_id != class_id)
      return "hz5: a vacant run has an owner, or another class";
    if (hz5_run_live(run) != 0) return "hz5: a vacant run has a live block";
  }
  return count == pool->vacant_count ? NULL : "hz5: vacant runs are miscounted";
}

const char *hz5_pools_check(void) {
  const char *broken = NULL;
  for (unsigned c = 0; c < HZ_CLASS_COUNT && broken == NULL; c++) {
    hz_lock(&pools[c].lock);
    broken = hz5_check_list(&pools[c].orphans, HZ5_ORPHAN, c);
    if (broken == NULL) broken = check_vacant(&pools[c], c);
    hz_unlock(&pools[c].lock);
  }
  return broken;
}
