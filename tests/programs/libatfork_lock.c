// A library that holds a lock of its own over a fork, as libraries with state do: for forks_locked.
//
// Preloaded behind an allocator it is initialised first, so that its handler may run after the
// allocator's; loaded later, before.
#define _GNU_SOURCE 1
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void atfork_lock_take(void) {
  pthread_mutex_lock(&lock);
}
void atfork_lock_drop(void) {
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void load(void) {
  pthread_atfork(atfork_lock_take, atfork_lock_drop, atfork_lock_drop);
}
