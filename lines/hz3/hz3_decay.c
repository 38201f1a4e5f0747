// Memory on its way back: what caches have not needed goes down to the runs, runs that are empty to
// the arena, idle slabs to the kernel.
#include "lines/hz3/hz3_model.h"

#include "core/misuse.h"
#include "core/tick.h"

enum { CHECK_EVERY = 256 }; // debug builds: slow steps between two walks of all invariants

// Counts calls of hz3_reclaim: a thread that sees a new number empties its heap at its next slow
// path.
static _Atomic uint32_t trims;

static void give_list(unsigned class_id, struct hz_magazine *list) {
  while (list != NULL) {
    struct hz_magazine *next = list->next;
    hz3_give_central(class_id, list->slots + 1, list->count);
    hz_magazine_drop(list);
    list = next;
  }
}

static void drain_shard(struct hz3_shard *shard, unsigned class_id, bool all) {
  struct hz_depot *depot = &shard->depots[class_id];
  _Atomic(struct hz_magazine *) *stash = &shard->stash[class_id];
  struct hz_magazine *waiting = atomic_load_explicit(stash, memory_order_relaxed);
  const bool idle_depot = __atomic_load_n(&depot->full, __ATOMIC_RELAXED) == NULL;
  if (waiting == NULL && idle_depot) return;
  hz_lock(&shard->lock);
  struct hz_magazine *surplus = hz_depot_surplus(depot, all);
  // The same packet on top as last time: the owner does not come for it.
  const bool stale = waiting != NULL && waiting == shard->stash_seen[class_id];
  shard->stash_seen[class_id] = waiting;
  hz_unlock(&shard->lock);
  give_list(class_id, surplus);
  if (all || stale) give_list(class_id, hz_stash_take(stash));
}

static void drain(bool all) {
  for (unsigned s = 0; s < hz3_options.shards; s++)
    for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) drain_shard(&hz3_shards[s], c, all);
}

// ---- Slow paths end here ------------------------------------------------------------------------

static void check_sometimes(void) {
  static _Atomic uint32_t steps;
  if (atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed) % CHECK_EVERY != 0) return;
  const char *broken = hz3_check();
  if (broken != NULL) hz_broken(__FILE__, __LINE__, broken);
}

static void decay(bool period) {
  if (period) {
    hz3_adopt_orphans();
    drain(false);
  }
  unsigned calls = HZ_TICK_CALLS;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) hz_central_decay(c, period, &calls);
  if (calls == 0) hz_tick_rest();
}

void hz3_slow_path_done(struct hz3_heap *heap) {
  const uint32_t now = atomic_load_explicit(&trims, memory_order_relaxed);
  if (heap != NULL && hz_unlikely(heap->trims_seen != now)) {
    heap->trims_seen = now;
    hz3_heap_flush(heap);
  }
  const enum hz_tick tick = hz_tick();
  if (hz_unlikely(tick != HZ_TICK_NONE)) decay(tick == HZ_TICK_PERIOD);
  if (HZ_DEBUG) check_sometimes();
}

// ---- All at once --------------------------------------------------------------------------------

bool hz3_reclaim(void) {
  const uint32_t now = atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed) + 1;
  const struct hz3_heap *mine = hz3_heap;
  if (mine != &hz3_empty_heap && mine != &hz3_dead_heap) {
    ((struct hz3_heap *)mine)->trims_seen = now;
    hz3_heap_flush((struct hz3_heap *)mine);
  }
  hz3_adopt_orphans();
  drain(true);
  size_t bytes = 0;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) bytes += hz_central_purge(c);
  return bytes + hz_purge_all() != 0;
}

bool hz3_last_resort(void) {
  const bool conceded = hz_arena_concede();
  return hz3_reclaim() || conceded;
}

// keep_bytes is the padding that glibc keeps at the top of its heap: there is no such top here.
bool hz3_trim(size_t keep_bytes) {
  (void)keep_bytes;
  return hz3_reclaim();
}
