// Slots, exits, forks: see core/thread.h.
#include "core/thread.h"

#include <pthread.h>
#include <string.h>

#include "core/arena.h"
#include "core/counter.h"
#include "core/lock.h"
#include "core/meta.h"
#include "core/misuse.h"

enum { CHUNK_SLOTS = 64, CHUNKS = HZ_THREAD_SLOTS / CHUNK_SLOTS };

struct chunk {
  uint64_t used, orphaned; // a bit per slot
  struct hz_thread *threads[CHUNK_SLOTS];
};

static struct {
  struct hz_lock lock;
  struct chunk *chunks[CHUNKS];
  uint32_t count;
  _Atomic uint32_t orphans;
  void (*on_exit)(struct hz_thread *);
  void (*after_fork)(void); // or NULL
  pthread_key_t key;
} registry;

static void at_thread_exit(void *thread) {
  registry.on_exit(thread);
}

bool hz_thread_start(void) {
  hz_locks_register(HZ_RANK_THREADS, &registry.lock, 1, sizeof registry.lock);
  return pthread_key_create(&registry.key, at_thread_exit) == 0;
}

void hz_threads_on_exit(void (*callback)(struct hz_thread *)) {
  registry.on_exit = callback;
}

void hz_threads_after_fork(void (*callback)(void)) {
  registry.after_fork = callback;
}

static struct chunk *chunk_with_room(uint32_t *first_slot) {
  for (uint32_t i = 0; i < CHUNKS; i++) {
    struct chunk *chunk = registry.chunks[i];
    if (chunk == NULL) {
      chunk = hz_meta_take(sizeof *chunk);
      if (chunk == NULL) return NULL;
      memset(chunk, 0, sizeof *chunk);
      registry.chunks[i] = chunk;
    }
    *first_slot = i * CHUNK_SLOTS;
    if (~chunk->used != 0) return chunk;
  }
  return NULL;
}

static bool take_slot(struct hz_thread *thread) {
  uint32_t first_slot = 0;
  hz_lock(&registry.lock);
  struct chunk *chunk = chunk_with_room(&first_slot);
  if (chunk != NULL) {
    const unsigned i = (unsigned)__builtin_ctzll(~chunk->used);
    chunk->used |= UINT64_C(1) << i;
    chunk->threads[i] = thread;
    thread->slot = first_slot + i;
    registry.count++;
  }
  hz_unlock(&registry.lock);
  return chunk != NULL;
}

bool hz_thread_attach(struct hz_thread *thread) {
  if (!take_slot(thread)) return false;
  if (pthread_setspecific(registry.key, thread) != 0) {
    hz_thread_detach(thread);
    return false;
  }
  hz_count(HZ_COUNT_threads_started, 1);
  return true;
}

void hz_thread_detach(struct hz_thread *thread) {
  hz_lock(&registry.lock);
  struct chunk *chunk = registry.chunks[thread->slot / CHUNK_SLOTS];
  const uint64_t bit = UINT64_C(1) << thread->slot % CHUNK_SLOTS;
  chunk->used &= ~bit;
  chunk->orphaned &= ~bit;
  registry.count--;
  hz_unlock(&registry.lock);
}

uint32_t hz_thread_count(void) {
  hz_lock(&registry.lock);
  const uint32_t count = registry.count;
  hz_unlock(&registry.lock);
  return count;
}

struct hz_thread *hz_thread_take_orphan(void) {
  if (hz_likely(atomic_load_explicit(&registry.orphans, memory_order_relaxed) == 0)) return NULL;
  struct hz_thread *found = NULL;
  hz_lock(&registry.lock);
  for (uint32_t i = 0; i < CHUNKS && registry.chunks[i] != NULL && found == NULL; i++) {
    struct chunk *chunk = registry.chunks[i];
    if (chunk->orphaned == 0) continue;
    const unsigned k = (unsigned)__builtin_ctzll(chunk->orphaned);
    chunk->orphaned &= chunk->orphaned - 1;
    found = chunk->threads[k];
    atomic_fetch_sub_explicit(&registry.orphans, 1, memory_order_relaxed);
  }
  hz_unlock(&registry.lock);
  return found;
}

// Of libc, since 2.32: true only if no second thread exists.
extern char __libc_single_threaded __attribute__((weak));

static bool took_locks; // guarded by what it tells of

// A process with one thread has nobody to keep out, and a child that need not copy the locks'
// pages.
void hz_fork_prepare(void) {
  const bool alone = &__libc_single_threaded != NULL && __libc_single_threaded != 0;
  if (!alone) hz_locks_before_fork();
  took_locks = !alone;
}

void hz_fork_parent(void) {
  if (took_locks) hz_locks_after_fork();
}

// Only the forking thread lives on. What the others held is taken over lazily, by
// hz_thread_take_orphan: most children call exec and should not pay, or touch pages, for it.
void hz_fork_child(void) {
  const struct hz_thread *self = pthread_getspecific(registry.key);
  uint32_t orphans = 0;
  for (uint32_t i = 0; i < CHUNKS && registry.chunks[i] != NULL; i++) {
    struct chunk *chunk = registry.chunks[i];
    uint64_t others = chunk->used;
    if (self != NULL && self->slot / CHUNK_SLOTS == i)
      others &= ~(UINT64_C(1) << self->slot % CHUNK_SLOTS);
    if (others == 0) continue;
    chunk->orphaned = others;
    orphans += (uint32_t)__builtin_popcountll(others);
  }
  atomic_store_explicit(&registry.orphans, orphans, memory_order_relaxed);
  hz_arena_fork_child();
  if (registry.after_fork != NULL) registry.after_fork();
  if (took_locks) hz_locks_after_fork();
}
