// A small lock for slow paths: one compare and swap when free, a short spin, then a futex.
//
// It knows its owner, because fork() needs to: the prepare handler takes every registered lock in
// one order, skips those that the forking thread holds already (a signal handler that forks in the
// middle of malloc), and until the parent and child handlers run, that thread passes through all of
// them (other libraries' fork handlers allocate).
#ifndef HZ_CORE_LOCK_H
#define HZ_CORE_LOCK_H

#include "core/base.h"

// The word holds the low half of the owner's thread pointer (whose lowest bits are zero), so that
// taking a lock and signing it is one step: a signal handler that forks cannot come between.
struct hz_lock {
  _Atomic uint32_t word; // 0 free, else the owner's mark, | HZ_LOCK_AWAITED when somebody sleeps
  bool taken_for_fork;   // by hz_locks_before_fork, so to be released after it
  _Atomic(void *) owner; // a moment later: tells threads apart whose marks are the same
};

enum { HZ_LOCK_AWAITED = 1, HZ_LOCK_HELD = 2 };

// Thread pointer of the thread that is inside fork(), else NULL.
extern _Atomic(void *) hz_lock_fork_thread;

void hz_lock_wait(struct hz_lock *lock);
void hz_lock_wake(struct hz_lock *lock);

HZ_FAST uint32_t hz_lock_mark(void) {
  return ((uint32_t)(uintptr_t)__builtin_thread_pointer() & ~(uint32_t)HZ_LOCK_AWAITED) |
         HZ_LOCK_HELD;
}

HZ_FAST bool hz_lock_passes(void) {
  return hz_unlikely(atomic_load_explicit(&hz_lock_fork_thread, memory_order_relaxed) ==
                     __builtin_thread_pointer());
}

HZ_FAST void hz_lock(struct hz_lock *lock) {
  if (hz_lock_passes()) return;
  uint32_t expected = 0;
  if (!atomic_compare_exchange_strong_explicit(&lock->word, &expected, hz_lock_mark(),
                                               memory_order_acquire, memory_order_relaxed))
    hz_lock_wait(lock);
  atomic_store_explicit(&lock->owner, __builtin_thread_pointer(), memory_order_relaxed);
}

HZ_FAST void hz_unlock(struct hz_lock *lock) {
  if (hz_lock_passes()) return;
  atomic_store_explicit(&lock->owner, NULL, memory_order_relaxed);
  // Release pairs with the acquire in hz_lock and hz_lock_wait.
  const uint32_t word = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
  if ((word & HZ_LOCK_AWAITED) != 0) hz_lock_wake(lock);
}

// Lock order: who holds a lock of one rank may take one of a later rank, never the reverse.
enum hz_lock_rank {
  HZ_RANK_GROUP,   // a line's groups of threads (hz3: shards; hz4: heaps, two of them in
                   // the order of their addresses)
  HZ_RANK_THREADS, // the registry of threads
  HZ_RANK_CLASS,   // one size class's runs
  HZ_RANK_LARGE,
  HZ_RANK_TABLE, // a line's tables, its idle heaps, its records
  HZ_RANK_ARENA,
  HZ_RANK_META,
};

// Puts `count` locks, `stride` bytes apart, under the care of the fork handlers.
void hz_locks_register(enum hz_lock_rank rank, struct hz_lock *first, size_t count, size_t stride);

void hz_locks_before_fork(void);
void hz_locks_after_fork(void); // in the parent and in the child

#endif
