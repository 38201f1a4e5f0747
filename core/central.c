// Bitmaps of runs: see core/central.h.
//
// Invariants (hz_central_check): run->free is the number of bits set; a run is in the list of its
// home exactly if 0 < free (a full one is in none); no bit beyond run->blocks is set.
#include "core/central.h"

#include <limits.h>
#include <string.h>

#include "core/counter.h"
#include "core/lock.h"
#include "core/meta.h"
#include "core/misuse.h"
#include "core/os.h"

static_assert(HZ_HOMES == 64, "a set of homes is one word");

static struct central {
  struct hz_lock lock;
  uint64_t free_blocks;
  struct hz_run *homes[HZ_HOMES];
} central[HZ_CLASS_COUNT];

static uint32_t words_of(const struct hz_run *run) {
  return (run->blocks + 63) / 64;
}

// ---- Lists (under the class's lock) ------------------------------------------------------------

static void list_insert(struct central *c, struct hz_run *run) {
  struct hz_run *head = c->homes[run->home];
  run->prev = NULL;
  run->next = head;
  if (head != NULL) head->prev = run;
  __atomic_store_n(&c->homes[run->home], run, __ATOMIC_RELAXED);
}

static void list_remove(struct central *c, struct hz_run *run) {
  if (run->next != NULL) run->next->prev = run->prev;
  if (run->prev != NULL) run->prev->next = run->next;
  else __atomic_store_n(&c->homes[run->home], run->next, __ATOMIC_RELAXED);
}

// ---- Taking ------------------------------------------------------------------------------------

bool hz_central_carve(struct hz_run *run, unsigned class_id, unsigned home) {
  const struct hz_size_class *sc = &hz_size_classes[class_id];
  const uint32_t words = (sc->blocks + 63u) / 64;
  run->free_bits = words == 1 ? &run->one_word : hz_meta_take(words * sizeof(uint64_t));
  if (run->free_bits == NULL) return false;
  memset(run->free_bits, 0xff, words * sizeof(uint64_t));
  if (sc->blocks % 64 != 0) run->free_bits[words - 1] = (UINT64_C(1) << sc->blocks % 64) - 1;
  run->blocks = run->free = sc->blocks;
  run->class_id = (uint8_t)class_id;
  run->home = (uint16_t)home;
  run->first_word = 0;
  atomic_store_explicit(&run->state, HZ_RUN_CLASS, memory_order_relaxed);
  return true;
}

// Clears up to `want` of the lowest free bits. Blocks are written downwards from out[want - 1].
static uint32_t take_bits(struct hz_run *run, void **out, uint32_t want) {
  const size_t bytes = hz_class_bytes(run->class_id);
  const uint32_t words = words_of(run);
  uint32_t got = 0, w = run->first_word;
  for (; w < words && got < want; w++) {
    uint64_t bits = run->free_bits[w];
    while (bits != 0 && got < want) {
      const unsigned bit = (unsigned)__builtin_ctzll(bits);
      bits &= bits - 1;
      out[want - ++got] = (char *)run->base + (w * 64 + bit) * bytes;
    }
    run->free_bits[w] = bits;
  }
  run->first_word = (uint8_t)(got < want ? words : w - 1);
  run->free -= got;
  run->idle_ticks = 0;
  return got;
}

uint32_t hz_central_take_new(struct hz_run *run, void **out, uint32_t want) {
  struct central *c = &central[run->class_id];
  want = (uint32_t)hz_min(want, run->blocks);
  hz_lock(&c->lock);
  c->free_blocks += run->free;
  const uint32_t got = take_bits(run, out, want);
  c->free_blocks -= got;
  if (run->free != 0) list_insert(c, run);
  hz_unlock(&c->lock);
  return got;
}

uint32_t hz_central_take(unsigned class_id, unsigned home, void **out, uint32_t want,
                         struct hz_run **from) {
  struct central *c = &central[class_id];
  if (!hz_central_has(class_id, home)) return 0;
  uint32_t got = 0;
  hz_lock(&c->lock);
  while (got < want && c->homes[home] != NULL) {
    struct hz_run *run = c->homes[home];
    got += take_bits(run, out, want - got);
    if (run->free == 0) list_remove(c, run);
    *from = run;
  }
  c->free_blocks -= got;
  hz_unlock(&c->lock);
  if (got != 0 && got < want) memmove(out, out + (want - got), got * sizeof *out);
  return got;
}

bool hz_central_has(unsigned class_id, unsigned home) {
  return __atomic_load_n(&central[class_id].homes[home], __ATOMIC_RELAXED) != NULL;
}

unsigned hz_central_find_home(unsigned class_id, uint64_t homes) {
  for (; homes != 0; homes &= homes - 1) {
    const unsigned home = (unsigned)__builtin_ctzll(homes);
    if (hz_central_has(class_id, home)) return home;
  }
  return HZ_HOMES;
}

void hz_central_move(struct hz_run *run, unsigned home) {
  struct central *c = &central[run->class_id];
  hz_lock(&c->lock);
  if (run->free != 0) list_remove(c, run);
  run->home = (uint16_t)home;
  if (run->free != 0) list_insert(c, run);
  hz_unlock(&c->lock);
}

// ---- Giving ------------------------------------------------------------------------------------

struct refused {
  void *block;
  enum hz_misuse_kind kind;
};

// Sets the bit of one block. Returns false, with the reason, for what is not a taken block's start.
static bool give_bit(unsigned class_id, void *block, struct hz_run *run,
                     enum hz_misuse_kind *reason) {
  *reason = HZ_MISUSE_FOREIGN;
  if (run == NULL || run->state != HZ_RUN_CLASS || run->class_id != class_id) return false;
  const size_t offset = (size_t)((char *)block - (char *)run->base);
  const uint32_t index = hz_class_index(class_id, offset);
  *reason = HZ_MISUSE_INTERIOR;
  if (index >= run->blocks || index * hz_class_bytes(class_id) != offset) return false;
  const uint64_t bit = UINT64_C(1) << (index & 63);
  *reason = HZ_MISUSE_DOUBLE;
  if ((run->free_bits[index / 64] & bit) != 0) return false;
  run->free_bits[index / 64] |= bit;
  if (index / 64 < run->first_word) run->first_word = (uint8_t)(index / 64);
  return true;
}

// Gives blocks until one is refused. Returns how many were looked at.
static uint32_t give_locked(struct central *c, unsigned class_id, void *const *blocks,
                            uint32_t count, struct hz_run **empty, struct refused *refused) {
  for (uint32_t i = 0; i < count; i++) {
    struct hz_run *run = hz_run_of(blocks[i]);
    if (!give_bit(class_id, blocks[i], run, &refused->kind)) {
      refused->block = blocks[i];
      return i + 1;
    }
    c->free_blocks++;
    run->idle_ticks = 0;
    if (run->free++ == 0) list_insert(c, run);
    if (run->free == run->blocks) {
      list_remove(c, run);
      c->free_blocks -= run->blocks;
      run->next = *empty;
      *empty = run;
    }
  }
  return count;
}

struct hz_run *hz_central_give(unsigned class_id, void *const *blocks, uint32_t count,
                               const char *when) {
  struct central *c = &central[class_id];
  struct hz_run *empty = NULL;
  for (uint32_t done = 0; done < count;) {
    struct refused refused = {NULL, HZ_MISUSE_FOREIGN};
    hz_lock(&c->lock);
    done += give_locked(c, class_id, blocks + done, count - done, &empty, &refused);
    hz_unlock(&c->lock);
    // Outside the lock: the report may not return.
    if (refused.block != NULL) hz_misuse(refused.kind, refused.block, when);
  }
  return empty;
}

void hz_central_release(struct hz_run *list) {
  uint64_t runs = 0;
  for (struct hz_run *run = list; run != NULL; run = run->next, runs++)
    if (run->free_bits != &run->one_word)
      hz_meta_give(run->free_bits, words_of(run) * sizeof(uint64_t));
  if (runs != 0) hz_count(HZ_COUNT_runs_returned, runs);
  hz_arena_give_list(list);
}

// ---- Giving pages back inside of runs ----------------------------------------------------------

static bool block_free(const struct hz_run *run, uint32_t index) {
  return (run->free_bits[index / 64] >> (index & 63) & 1) != 0;
}

// Whole pages between `from` and `to` (block indices, all free). They read as zero afterwards,
// which nobody relies on: the blocks were free.
static size_t purge_blocks(const struct hz_run *run, uint32_t from, uint32_t to, unsigned *calls) {
  const size_t bytes = hz_class_bytes(run->class_id);
  const uintptr_t start = hz_align_up((uintptr_t)run->base + from * bytes, hz_page_bytes);
  const uintptr_t end = hz_align_down((uintptr_t)run->base + to * bytes, hz_page_bytes);
  if (start >= end || *calls == 0) return 0;
  --*calls;
  hz_count(HZ_COUNT_purge_calls, 1);
  return hz_os.purge((void *)start, end - start) ? end - start : 0;
}

static size_t purge_run(const struct hz_run *run, unsigned *calls) {
  size_t purged = 0;
  for (uint32_t i = 0; i < run->blocks;) {
    if (!block_free(run, i)) {
      i++;
      continue;
    }
    uint32_t end = i + 1;
    while (end < run->blocks && block_free(run, end)) end++;
    purged += purge_blocks(run, i, end, calls);
    i = end;
  }
  return purged;
}

// The system calls are made under the class's lock, because the free blocks must stay free
// meanwhile.
static size_t purge_listed(struct central *c, bool all, bool tick, unsigned *calls) {
  size_t purged = 0;
  for (unsigned h = 0; h < HZ_HOMES; h++)
    for (struct hz_run *run = c->homes[h]; run != NULL; run = run->next) {
      if (tick && run->idle_ticks < HZ_IDLE_TICKS) run->idle_ticks++;
      const bool due = run->idle_ticks == HZ_IDLE_TICKS && *calls != 0;
      if (all || due) purged += purge_run(run, calls);
      // Done until it is used again, unless the calls ran out on the way.
      if (due && *calls != 0) run->idle_ticks = HZ_IDLE_TICKS + 1;
    }
  return purged;
}

static size_t purge_class(unsigned class_id, bool all, bool tick, unsigned *calls) {
  struct central *c = &central[class_id];
  hz_lock(&c->lock);
  const size_t purged = purge_listed(c, all, tick, calls);
  hz_unlock(&c->lock);
  if (purged != 0) hz_count(HZ_COUNT_purged, purged);
  return purged;
}

size_t hz_central_purge(unsigned class_id) {
  unsigned calls = UINT_MAX;
  return purge_class(class_id, true, false, &calls);
}

size_t hz_central_decay(unsigned class_id, bool tick, unsigned *calls) {
  return purge_class(class_id, false, tick, calls);
}

uint64_t hz_central_free_bytes(unsigned class_id) {
  struct central *c = &central[class_id];
  hz_lock(&c->lock);
  const uint64_t blocks = c->free_blocks;
  hz_unlock(&c->lock);
  return blocks * hz_class_bytes(class_id);
}

void hz_central_start(void) {
  hz_locks_register(HZ_RANK_CLASS, &central[0].lock, HZ_CLASS_COUNT, sizeof central[0]);
}

// ---- Check -------------------------------------------------------------------------------------

static const char *check_run(const struct hz_run *run, unsigned class_id, unsigned home) {
  if (run->state != HZ_RUN_CLASS || run->class_id != class_id || run->home != home)
    return "central: a run is in another's list";
  uint32_t set = 0;
  for (uint32_t w = 0; w < words_of(run); w++) {
    set += (uint32_t)__builtin_popcountll(run->free_bits[w]);
    if (w < run->first_word && run->free_bits[w] != 0) return "central: first_word is too high";
  }
  if (set != run->free) return "central: a run's free count disagrees with its bitmap";
  if (set == 0) return "central: a run without free blocks is listed";
  if (set == run->blocks) return "central: an empty run is listed";
  return NULL;
}

const char *hz_central_check(void) {
  for (unsigned class_id = 0; class_id < HZ_CLASS_COUNT; class_id++) {
    struct central *c = &central[class_id];
    const char *broken = NULL;
    uint64_t free_blocks = 0;
    hz_lock(&c->lock);
    for (unsigned h = 0; h < HZ_HOMES && broken == NULL; h++)
      for (struct hz_run *run = c->homes[h]; run != NULL && broken == NULL; run = run->next) {
        broken = check_run(run, class_id, h);
        free_blocks += run->free;
      }
    if (broken == NULL && free_blocks != c->free_blocks)
      broken = "central: a class miscounts its free blocks";
    hz_unlock(&c->lock);
    if (broken != NULL) return broken;
  }
  return NULL;
}
