// The waiting half of core/lock.h, and the order in which fork() takes all locks.
#include "core/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/misuse.h"

enum {
  SPINS = 60,      // about the time of one critical section; longer only burns a core we share
  LOCK_GROUPS = 16 // hz_locks_register calls
};

_Atomic(void *) hz_lock_fork_thread;

static struct lock_group {
  enum hz_lock_rank rank;
  struct hz_lock *first;
  size_t count, stride;
} groups[LOCK_GROUPS];
static size_t group_count;
static unsigned fork_depth; // forks inside of the fork that holds the locks

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static void futex(struct hz_lock *lock, int operation, uint32_t value) {
  const int saved = errno;
  syscall(SYS_futex, &lock->word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
  errno = saved;
}

static bool try_lock(struct hz_lock *lock, uint32_t mark) {
  uint32_t expected = 0;
  return atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
         atomic_compare_exchange_strong_explicit(&lock->word, &expected, mark, memory_order_acquire,
                                                 memory_order_relaxed);
}

HZ_SLOW void hz_lock_wait(struct hz_lock *lock) {
  for (int i = 0; i < SPINS; i++) {
    if (try_lock(lock, hz_lock_mark())) return;
    relax();
  }
  // Who has slept takes the lock as awaited: others may be sleeping still.
  while (!try_lock(lock, hz_lock_mark() | HZ_LOCK_AWAITED)) {
    uint32_t held = atomic_load_explicit(&lock->word, memory_order_relaxed);
    if (held == 0) continue;
    const uint32_t awaited = held | HZ_LOCK_AWAITED;
    if (held == awaited ||
        atomic_compare_exchange_strong_explicit(&lock->word, &held, awaited, memory_order_relaxed,
                                                memory_order_relaxed))
      futex(lock, FUTEX_WAIT, awaited);
  }
}

HZ_SLOW void hz_lock_wake(struct hz_lock *lock) {
  futex(lock, FUTEX_WAKE, 1);
}

void hz_locks_register(enum hz_lock_rank rank, struct hz_lock *first, size_t count, size_t stride) {
  HZ_CHECK(group_count < LOCK_GROUPS);
  size_t i = group_count++;
  for (; i > 0 && groups[i - 1].rank > rank; i--) groups[i] = groups[i - 1];
  groups[i] = (struct lock_group){rank, first, count, stride};
}

static struct hz_lock *lock_at(const struct lock_group *group, size_t i) {
  return (struct hz_lock *)((char *)group->first + i * group->stride);
}

static bool held_by_us(const struct hz_lock *lock) {
  const uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
  const void *owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
  return (word & ~(uint32_t)HZ_LOCK_AWAITED) == hz_lock_mark() &&
         (owner == NULL || owner == __builtin_thread_pointer());
}

void hz_locks_before_fork(void) {
  // A signal handler that forks while this thread is between its own fork's handlers.
  if (hz_lock_passes()) {
    fork_depth++;
    return;
  }
  for (size_t g = 0; g < group_count; g++)
    for (size_t i = 0; i < groups[g].count; i++) {
      struct hz_lock *lock = lock_at(&groups[g], i);
      if (held_by_us(lock)) continue;
      hz_lock(lock);
      lock->taken_for_fork = true;
    }
  atomic_store_explicit(&hz_lock_fork_thread, __builtin_thread_pointer(), memory_order_relaxed);
}

void hz_locks_after_fork(void) {
  if (fork_depth > 0) {
    fork_depth--;
    return;
  }
  atomic_store_explicit(&hz_lock_fork_thread, NULL, memory_order_relaxed);
  for (size_t g = group_count; g-- > 0;)
    for (size_t i = groups[g].count; i-- > 0;) {
      struct hz_lock *lock = lock_at(&groups[g], i);
      if (!lock->taken_for_fork) continue;
      lock->taken_for_fork = false;
      hz_unlock(lock);
    }
}
