// Runs of hz5: descriptors, bitmaps, and the lists that they move between.
#include "lines/hz5/hz5_model.h"

#include "core/counter.h"
#include "core/meta.h"

// Held while a run's records go, and by who looks at the runs of others.
static struct hz_lock closing;

uint64_t hz5_reciprocals[HZ_CLASS_COUNT];

void hz5_runs_start(void) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    hz5_reciprocals[c] = UINT64_MAX / hz_class_bytes(c) + 1;
  hz_locks_register(HZ_RANK_TABLE, &closing, 1, sizeof closing);
}

struct hz5_slab *hz5_find(const void *p) {
  const size_t index = hz_slab_of(p);
  if (index >= hz_arena.slab_count) return NULL;
  struct hz5_slab *slab = &hz5_table()[index];
  return hz5_owner(slab) != HZ5_NOBODY ? slab : NULL;
}

struct hz5_slab *hz5_first(struct hz5_slab *slab) {
  return slab - (slab->at >> HZ_SLAB_SHIFT);
}

// ---- Bits ---------------------------------------------------------------------------------------

static size_t record_bytes(uint32_t words) {
  return sizeof(struct hz5_record) + words * sizeof(struct hz5_bits);
}

// Words for every address of the run, those behind its last block included.
static uint32_t words_for(const struct hz_size_class *sc) {
  return (((uint32_t)sc->slabs << HZ_SLAB_SHIFT) - 1) / sc->bytes / 64 + 1;
}

// class_id is set.
static bool bits_open(struct hz5_slab *run) {
  const uint32_t words = words_for(hz5_class(run));
  run->words = (uint8_t)words;
  run->bits = &run->own_bits;
  if (words > 1) {
    struct hz5_record *record = hz_meta_take(record_bytes(words));
    if (record == NULL) return false;
    run->bits = record->bits;
  }
  for (uint32_t w = 0; w < words; w++) {
    const uint64_t blocks = hz5_blocks_of(run, w);
    atomic_store_explicit(&run->bits[w].idle, blocks, memory_order_relaxed);
    atomic_store_explicit(&run->bits[w].kept, blocks, memory_order_relaxed);
  }
  *hz5_until(run) = HZ5_NEVER;
  return true;
}

static void bits_close(struct hz5_slab *run) {
  if (run->words == 1) return;
  hz_lock(&closing);
  struct hz5_bits *bits = run->bits;
  run->bits = &run->own_bits;
  run->words = 0;
  hz_meta_give((char *)bits - offsetof(struct hz5_record, bits),
               record_bytes(words_for(hz5_class(run))));
  hz_unlock(&closing);
}

// Of what is set in a word, what stands for blocks.
static uint32_t count_blocks(const struct hz5_slab *run, uint32_t w, uint64_t set) {
  return (uint32_t)__builtin_popcountll(set & hz5_blocks_of(run, w));
}

uint32_t hz5_run_live(const struct hz5_slab *run) {
  uint32_t live = 0;
  for (uint32_t w = 0; w < run->words; w++)
    live += count_blocks(run, w, ~atomic_load_explicit(&run->bits[w].idle, memory_order_relaxed));
  return live;
}

uint32_t hz5_run_freed(const struct hz5_slab *run) {
  uint32_t freed = 0;
  for (uint32_t w = 0; w < run->words; w++)
    freed += count_blocks(run, w, ~atomic_load_explicit(&run->bits[w].kept, memory_order_relaxed));
  return freed;
}

// ---- Runs come and go ---------------------------------------------------------------------------

static unsigned slabs_of(const struct hz5_slab *run) {
  return hz5_class(run)->slabs;
}

// The first slab's owner counts, and is the last to change. Release pairs with the acquire in
// hz5_run_adopt, and in hz5_find's callers with whatever handed them the block.
void hz5_run_own(struct hz5_slab *run, uint32_t token) {
  for (unsigned i = slabs_of(run); i-- != 0;)
    atomic_store_explicit(&run[i].owner, token, memory_order_release);
}

// Meanwhile the other slabs still say HZ5_FULL: who frees a block there looks at the first one.
bool hz5_run_adopt(struct hz5_slab *run, uint32_t token) {
  uint32_t owner = HZ5_FULL;
  if (!atomic_compare_exchange_strong_explicit(&run->owner, &owner, token, memory_order_acquire,
                                               memory_order_relaxed))
    return false;
  // Another run has come here since the caller looked, and this is not its first slab.
  if (hz_unlikely(run->at != 0)) {
    owner = token;
    atomic_compare_exchange_strong_explicit(&run->owner, &owner, HZ5_FULL, memory_order_release,
                                            memory_order_relaxed);
    return false;
  }
  for (unsigned i = slabs_of(run); --i != 0;)
    atomic_store_explicit(&run[i].owner, token, memory_order_relaxed);
  return true;
}

static bool descriptors_open(struct hz5_slab *run, unsigned class_id) {
  const struct hz_size_class *sc = &hz_size_classes[class_id];
  run->class_id = (uint8_t)class_id;
  if (!bits_open(run)) return false;
  run->next = run->prev = 0;
  run->idle_ticks = 0;
  for (unsigned i = 0; i < sc->slabs; i++) {
    run[i].at = i << HZ_SLAB_SHIFT;
    run[i].bits = run->bits;
    run[i].class_id = (uint8_t)class_id;
  }
  return true;
}

// Slabs of all runs.
static _Atomic uint64_t open_slabs;

// Vacant runs of other classes that come to more than what is in use go first.
static void make_room(void) {
  const uint64_t vacant = hz5_pools_vacant_slabs();
  if (hz_unlikely(vacant > HZ_SEGMENT_SLABS &&
                  vacant > atomic_load_explicit(&open_slabs, memory_order_relaxed) / 2))
    hz5_pools_empty();
}

struct hz5_slab *hz5_run_open(unsigned class_id, uint32_t token) {
  make_room();
  struct hz_run *below = hz_arena_take(hz_size_classes[class_id].slabs, HZ_SLAB_BYTES);
  if (below == NULL) return NULL;
  struct hz5_slab *run = (struct hz5_slab *)below;
  if (!descriptors_open(run, class_id)) {
    hz_arena_give(below);
    return NULL;
  }
  atomic_store_explicit(&below->state, HZ_RUN_CLASS, memory_order_relaxed);
  atomic_store_explicit(&run->state, HZ5_CURRENT, memory_order_release);
  hz5_run_own(run, token);
  atomic_fetch_add_explicit(&open_slabs, below->slabs, memory_order_relaxed);
  hz_count(HZ_COUNT_runs_carved, 1);
  return run;
}

// One may still be in a queue: who finds it there finds that it belongs to nobody, or to whom the
// slab belongs by then (hz5_queue.c).
void hz5_runs_close(uint32_t first) {
  struct hz_run *list = NULL;
  uint32_t runs = 0, slabs = 0;
  for (struct hz5_slab *run; (run = hz5_named(first)) != NULL; runs++) {
    struct hz_run *below = (struct hz_run *)run;
    first = run->next;
    slabs += slabs_of(run);
    atomic_store_explicit(&run->state, HZ5_NONE, memory_order_relaxed);
    hz5_run_own(run, HZ5_NOBODY);
    bits_close(run);
    below->next = list;
    list = below;
  }
  hz_arena_give_list(list);
  atomic_fetch_sub_explicit(&open_slabs, slabs, memory_order_relaxed);
  hz_count(HZ_COUNT_runs_returned, runs);
}

struct hz5_slab *hz5_run_next(struct hz5_slab *run) {
  struct hz5_slab *const end = hz5_table() + hz_arena_top();
  for (run = run == NULL ? hz5_table() : run + 1; run < end; run++)
    // Acquire pairs with the release in hz5_run_open.
    if (atomic_load_explicit(&run->state, memory_order_acquire) != HZ5_NONE) return run;
  return NULL;
}

struct hz5_sums hz5_runs_sum(void) {
  struct hz5_sums sums = {0, 0};
  hz_lock(&closing);
  for (struct hz5_slab *run = NULL; (run = hz5_run_next(run)) != NULL;) {
    const struct hz_size_class *sc = hz5_class(run);
    // A run may become another class's while we look.
    sums.free_bytes += (uint64_t)(sc->blocks - hz_min(hz5_run_live(run), sc->blocks)) * sc->bytes;
    sums.freed_bytes += (uint64_t)hz5_run_freed(run) * sc->bytes;
  }
  hz_unlock(&closing);
  return sums;
}

// ---- Lists --------------------------------------------------------------------------------------

void hz5_run_link(struct hz5_list *list, struct hz5_slab *run, uint32_t live) {
  atomic_store_explicit(&run->state, HZ5_LISTED, memory_order_relaxed);
  *hz5_until(run) = (int32_t)live;
  run->prev = 0;
  run->next = list->first;
  if (list->first != 0) hz5_named(list->first)->prev = hz5_name(run);
  else list->last = hz5_name(run);
  list->count++;
  // hz5_pool_take looks without the lock.
  __atomic_store_n(&list->first, hz5_name(run), __ATOMIC_RELAXED);
}

void hz5_run_unlist(struct hz5_list *list, struct hz5_slab *run) {
  if (run->next != 0) hz5_named(run->next)->prev = run->prev;
  else list->last = run->prev;
  if (run->prev != 0) hz5_named(run->prev)->next = run->next;
  else __atomic_store_n(&list->first, run->next, __ATOMIC_RELAXED);
  list->count--;
  atomic_store_explicit(&run->state, HZ5_CURRENT, memory_order_relaxed);
  *hz5_until(run) = HZ5_NEVER;
}

void hz5_run_leave(struct hz5_list *list, struct hz5_slab *run, uint32_t live) {
  if (live == 0) hz5_pool_vacate(run);
  else if (live == hz5_class(run)->blocks) hz5_run_own(run, HZ5_FULL);
  else hz5_run_link(list, run, live);
}

void hz5_run_emptied(struct hz5_list *list, struct hz5_slab *run) {
  if (hz5_state(run) == HZ5_CURRENT) {
    *hz5_until(run) = HZ5_NEVER;
    return;
  }
  hz5_run_unlist(list, run);
  hz5_pool_vacate(run);
}

// ---- What others have freed ---------------------------------------------------------------------

// The idle bit comes first: in between the block is refused, not accepted twice. A cleared kept bit
// of a block that is idle was left by two threads that freed it at once: stray.
static uint32_t absorb_word(struct hz5_slab *run, uint32_t w, const void **stray) {
  struct hz5_bits *bits = &run->bits[w];
  // Pairs with the release that cleared the bit: whoever gets the block next comes after.
  const uint64_t freed =
      ~atomic_load_explicit(&bits->kept, memory_order_seq_cst) & hz5_blocks_of(run, w);
  if (freed == 0) return 0;
  const uint64_t idle = atomic_load_explicit(&bits->idle, memory_order_relaxed);
  atomic_store_explicit(&bits->idle, idle | freed, memory_order_relaxed);
  atomic_fetch_or_explicit(&bits->kept, freed, memory_order_seq_cst);
  if (hz_unlikely((freed & idle) != 0))
    *stray = hz5_base(run) +
             (size_t)(w * 64 + (unsigned)__builtin_ctzll(freed & idle)) * hz5_class(run)->bytes;
  return (uint32_t)__builtin_popcountll(freed & ~idle);
}

uint32_t hz5_run_absorb(struct hz5_slab *run, const void **stray) {
  uint32_t blocks = 0;
  for (uint32_t w = 0; w < run->words; w++) blocks += absorb_word(run, w, stray);
  if (blocks != 0) run->idle_ticks = 0;
  return blocks;
}

uint32_t hz5_run_take_in(struct hz5_list *list, struct hz5_slab *run) {
  const void *stray = NULL;
  const uint32_t blocks = hz5_run_absorb(run, &stray);
  if (blocks != 0 && hz5_state(run) == HZ5_LISTED && (*hz5_until(run) -= (int32_t)blocks) == 0)
    hz5_run_emptied(list, run);
  hz5_tell_stray(stray);
  return blocks;
}
