// The way down of hz3: empty and full magazines, runs.
#include "lines/hz3/hz3_model.h"

#include "core/counter.h"
#include "core/misuse.h"

// ---- Empty magazines ----------------------------------------------------------------------------

struct hz_magazine *hz3_take_empty(struct hz3_heap *heap, unsigned class_id) {
  struct hz_magazine *m = heap->spare[class_id];
  heap->spare[class_id] = NULL;
  return m != NULL ? m : hz_magazine_new(hz3_limits[class_id].capacity);
}

void hz3_keep_empty(struct hz3_heap *heap, unsigned class_id, struct hz_magazine *m) {
  m->count = 0;
  if (heap->spare[class_id] == NULL) heap->spare[class_id] = m;
  else hz_magazine_drop(m);
}

// ---- Down ---------------------------------------------------------------------------------------

void hz3_give_central(unsigned class_id, void *const *blocks, uint32_t count) {
  const char *when = hz3_options.verify ? NULL : "found when a thread's cache was emptied";
  struct hz_run *empty = hz_central_give(class_id, blocks, count, when);
  if (empty == NULL) return;
  for (const struct hz_run *run = empty; run != NULL; run = run->next) hz3_tags_write(run, 0);
  hz_central_release(empty);
}

void hz3_give_magazine(struct hz3_shard *shard, unsigned class_id, struct hz_magazine *m) {
  struct hz_depot *depot = &shard->depots[class_id];
  hz_lock(&shard->lock);
  const bool room = depot->count < hz3_limits[class_id].depot_magazines;
  if (room) hz_depot_put(depot, m);
  hz_unlock(&shard->lock);
  if (room) return;
  hz3_give_central(class_id, m->slots + 1, m->count);
  hz_magazine_drop(m);
}

static void load(struct hz3_heap *heap, unsigned class_id, struct hz_magazine *m) {
  heap->loaded[class_id] = m;
  heap->top[class_id] = m->slots + m->count;
}

HZ_SLOW void hz3_overflow(struct hz3_heap *heap, unsigned class_id, void *p) {
  struct hz_magazine *full = heap->loaded[class_id];
  struct hz_magazine *empty = hz3_take_empty(heap, class_id);
  hz_count(HZ_COUNT_overflows, 1);
  if (empty == NULL) { // no memory even for this: the block itself can always go down
    hz3_give_central(class_id, &p, 1);
    return;
  }
  if (full != NULL) full->count = (uint32_t)(heap->top[class_id] - full->slots);
  load(heap, class_id, empty);
  hz_magazine_push(&heap->top[class_id], p);
  if (full != NULL) {
    HZ_ASSERT(full->count == full->capacity);
    hz3_give_magazine(&hz3_shards[heap->shard], class_id, full);
  }
  hz3_slow_path_done(heap);
}

// ---- Up -----------------------------------------------------------------------------------------

// Packets that waited: the first one is returned, the others go to the depot.
static struct hz_magazine *take_packets(struct hz3_shard *from, struct hz3_shard *own,
                                        unsigned class_id, enum hz_counter counter) {
  struct hz_magazine *first = hz_stash_take(&from->stash[class_id]);
  if (first == NULL) return NULL;
  uint64_t packets = 1;
  for (struct hz_magazine *m = first->next; m != NULL; packets++) {
    struct hz_magazine *next = m->next;
    hz3_give_magazine(own, class_id, m);
    m = next;
  }
  hz_count(counter, packets);
  return first;
}

static struct hz_magazine *take_from_depot(struct hz3_shard *shard, unsigned class_id) {
  struct hz_depot *depot = &shard->depots[class_id];
  if (__atomic_load_n(&depot->full, __ATOMIC_RELAXED) == NULL) return NULL;
  hz_lock(&shard->lock);
  struct hz_magazine *m = hz_depot_get(depot);
  hz_unlock(&shard->lock);
  return m;
}

// Shards in which no thread lives: a bit each.
static uint64_t dead_shards(void) {
  uint64_t dead = 0;
  for (unsigned s = 0; s < hz3_options.shards; s++)
    if (atomic_load_explicit(&hz3_shards[s].live, memory_order_relaxed) == 0)
      dead |= UINT64_C(1) << s;
  return dead;
}

// What was left to shards in which no thread lives any more, before a fresh run is cut.
static struct hz_magazine *take_from_dead(unsigned shard, unsigned class_id) {
  struct hz3_shard *own = &hz3_shards[shard];
  for (uint64_t dead = dead_shards(); dead != 0; dead &= dead - 1) {
    struct hz3_shard *other = &hz3_shards[__builtin_ctzll(dead)];
    struct hz_magazine *m = take_packets(other, own, class_id, HZ_COUNT_stolen);
    if (m == NULL) m = take_from_depot(other, class_id);
    if (m != NULL) return m;
  }
  return NULL;
}

// Blocks from our own runs.
static uint32_t take_own(unsigned shard, unsigned class_id, void **out, uint32_t want) {
  struct hz_run *last;
  return hz_central_take(class_id, shard, out, want, &last);
}

// Blocks from a run of one of these shards. The run becomes ours: who lives there would find its
// own blocks foreign, so a living shard is asked only when there is no other memory.
static uint32_t take_over(uint64_t shards, unsigned shard, unsigned class_id, void **out,
                          uint32_t want) {
  const unsigned other = hz_central_find_home(class_id, shards);
  struct hz_run *run;
  const uint32_t got = other < HZ_HOMES ? hz_central_take(class_id, other, out, want, &run) : 0;
  if (got == 0) return 0;
  // One of its blocks is in our hands, so the run cannot vanish under us.
  hz_central_move(run, shard);
  hz3_tags_write(run, hz3_tag(shard, class_id));
  hz_count(HZ_COUNT_taken_over, 1);
  return got;
}

static uint32_t carve(unsigned shard, unsigned class_id, void **out, uint32_t want) {
  struct hz_run *run = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  if (run == NULL) return 0;
  if (!hz3_tags_commit(run) || !hz_central_carve(run, class_id, shard)) {
    hz_arena_give(run);
    return 0;
  }
  hz3_tags_write(run, hz3_tag(shard, class_id));
  hz_count(HZ_COUNT_runs_carved, 1);
  return hz_central_take_new(run, out, want);
}

// Up to `want` blocks into out, from anywhere; 0: no memory.
static uint32_t take_blocks(unsigned shard, unsigned class_id, void **out, uint32_t want) {
  uint32_t got = take_own(shard, class_id, out, want);
  if (got == 0 && hz3_adopt_orphans()) got = take_own(shard, class_id, out, want);
  if (got == 0) got = take_over(dead_shards(), shard, class_id, out, want);
  if (got == 0) got = carve(shard, class_id, out, want);
  // The kernel gives nothing more: everything that lies in caches comes down, then once again.
  if (hz_unlikely(got == 0)) {
    hz3_last_resort();
    got = take_over(UINT64_MAX, shard, class_id, out, want);
    if (got == 0) got = carve(shard, class_id, out, want);
  }
  return got;
}

HZ_SLOW void *hz3_take_single(unsigned class_id) {
  void *p = NULL;
  take_blocks(0, class_id, &p, 1);
  return p;
}

static HZ_SLOW void *refill_from_runs(struct hz3_heap *heap, unsigned class_id) {
  struct hz_magazine *m = heap->loaded[class_id];
  if (m == NULL) m = hz3_take_empty(heap, class_id);
  if (m == NULL) return hz3_take_single(class_id);
  heap->loaded[class_id] = NULL; // so that a flush on the way leaves it alone
  m->count = take_blocks(heap->shard, class_id, m->slots + 1, hz3_limits[class_id].refill);
  load(heap, class_id, m);
  return hz_magazine_pop(&heap->top[class_id]);
}

HZ_SLOW void *hz3_refill(struct hz3_heap *heap, unsigned class_id) {
  struct hz3_shard *shard = &hz3_shards[heap->shard];
  hz_count(HZ_COUNT_refills, 1);
  struct hz_magazine *m = take_packets(shard, shard, class_id, HZ_COUNT_collected);
  if (m == NULL) m = take_from_depot(shard, class_id);
  if (m == NULL && !hz_central_has(class_id, heap->shard))
    m = take_from_dead(heap->shard, class_id);
  if (m == NULL) return refill_from_runs(heap, class_id);
  struct hz_magazine *empty = heap->loaded[class_id];
  if (empty != NULL) hz3_keep_empty(heap, class_id, empty);
  load(heap, class_id, m);
  return hz_magazine_pop(&heap->top[class_id]);
}
