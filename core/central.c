// Runs by class and home: see core/central.h.
//
// Invariants (hz_central_check): a run is in the list of its home exactly if 0 < free < blocks (a
// full one is in none, an empty one has left); those of core/class_run.h hold.
#include "core/central.h"

#include <limits.h>
#include <string.h>

#include "core/class_run.h"
#include "core/counter.h"
#include "core/lock.h"

static_assert(HZ_HOMES == 64, "a set of homes is one word");

static struct central {
  struct hz_lock lock;
  uint64_t free_blocks;
  struct hz_run *homes[HZ_HOMES];
} central[HZ_CLASS_COUNT];

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
  __atomic_store_n(&run->home, (uint16_t)home, __ATOMIC_RELAXED);
  return hz_class_run_open(run, class_id);
}

uint32_t hz_central_take_new(struct hz_run *run, void **out, uint32_t want) {
  struct central *c = &central[run->class_id];
  want = (uint32_t)hz_min(want, run->blocks);
  hz_lock(&c->lock);
  c->free_blocks += run->free;
  const uint32_t got = hz_class_run_take(run, out, want);
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
    got += hz_class_run_take(run, out, want - got);
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
  __atomic_store_n(&run->home, (uint16_t)home, __ATOMIC_RELAXED);
  if (run->free != 0) list_insert(c, run);
  hz_unlock(&c->lock);
}

// ---- Giving ------------------------------------------------------------------------------------

struct refused {
  void *block;
  enum hz_misuse_kind kind;
};

// Gives blocks until one is refused. Returns how many were looked at.
static uint32_t give_locked(struct central *c, unsigned class_id, void *const *blocks,
                            uint32_t count, struct hz_run **empty, struct refused *refused) {
  for (uint32_t i = 0; i < count; i++) {
    struct hz_run *run = hz_run_of(blocks[i]);
    if (!hz_class_run_give(run, class_id, blocks[i], &refused->kind)) {
      refused->block = blocks[i];
      return i + 1;
    }
    c->free_blocks++;
    if (run->free == 1) list_insert(c, run);
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
  for (struct hz_run *run = list; run != NULL; run = run->next, runs++) hz_class_run_close(run);
  if (runs != 0) hz_count(HZ_COUNT_runs_returned, runs);
  hz_arena_give_list(list);
}

// ---- Giving pages back inside of runs ----------------------------------------------------------

// The system calls are made under the class's lock, because the free blocks must stay free
// meanwhile.
static size_t purge_listed(struct central *c, bool all, bool tick, unsigned *calls) {
  size_t purged = 0;
  for (unsigned h = 0; h < HZ_HOMES; h++)
    for (struct hz_run *run = c->homes[h]; run != NULL; run = run->next)
      purged += hz_class_run_decay(run, all, tick, calls);
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
  if (run->class_id != class_id || run->home != home) return "central: a run is in another's list";
  if (run->free == 0) return "central: a run without free blocks is listed";
  if (run->free == run->blocks) return "central: an empty run is listed";
  return hz_class_run_check(run);
}

const char *hz_central_check(const char *(*also)(const struct hz_run *run)) {
  for (unsigned class_id = 0; class_id < HZ_CLASS_COUNT; class_id++) {
    struct central *c = &central[class_id];
    const char *broken = NULL;
    uint64_t free_blocks = 0;
    hz_lock(&c->lock);
    for (unsigned h = 0; h < HZ_HOMES && broken == NULL; h++)
      for (struct hz_run *run = c->homes[h]; run != NULL && broken == NULL; run = run->next) {
        broken = check_run(run, class_id, h);
        if (broken == NULL && also != NULL) broken = also(run);
        free_blocks += run->free;
      }
    if (broken == NULL && free_blocks != c->free_blocks)
      broken = "central: a class miscounts its free blocks";
    hz_unlock(&c->lock);
    if (broken != NULL) return broken;
  }
  return NULL;
}
