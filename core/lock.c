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

HZ_SLOW void hz_lock_wait(struct hz_lock *lock) {
  for (int i = 0; i < SPINS; i++) {
    uint32_t expected = 0;
    if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
        atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire,
                                                memory_order_relaxed))
      return;
    relax();
  }
  // From here on the word says 2, so that whoever unlocks wakes one sleeper.
  while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
    futex(lock, FUTEX_WAIT, 2);
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

void hz_locks_before_fork(void) {
  void *self = __builtin_thread_pointer();
  for (size_t g = 0; g < group_count; g++)
    for (size_t i = 0; i < groups[g].count; i++) {
      struct hz_lock *lock = lock_at(&groups[g], i);
      if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == self) continue;
      hz_lock(lock);
      lock->taken_for_fork = true;
    }
  atomic_store_explicit(&hz_lock_fork_thread, self, memory_order_relaxed);
}

void hz_locks_after_fork(void) {
  atomic_store_explicit(&hz_lock_fork_thread, NULL, memory_order_relaxed);
  for (size_t g = group_count; g-- > 0;)
    for (size_t i = groups[g].count; i-- > 0;) {
      struct hz_lock *lock = lock_at(&groups[g], i);
      if (!lock->taken_for_fork) continue;
      lock->taken_for_fork = false;
      hz_unlock(lock);
    }
}
