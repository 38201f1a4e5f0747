// Threads that relieve each other: each place has one thread at a time, which ends after a while
// and leaves its place, and the blocks there, to a new thread. The new one waits until the old one
// is gone, so that it works on what a dead thread has left.
#ifndef HZ_BENCH_RELAY_H
#define HZ_BENCH_RELAY_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crew.h"
#include "slots.h"

// A place. Its present thread owns it.
struct runner {
  struct worker worker;
  struct slots slots;
  pthread_t before; // the thread that had the place last
  uint64_t lives;   // threads so far
};

// live: what one thread does; true: another one shall follow.
static struct {
  void (*prepare)(struct runner *r); // untimed, by the first thread
  bool (*live)(struct runner *r);
  uint64_t (*ops)(const struct runner *r);
  pthread_attr_t attributes;
  sem_t over;
} relay;

static inline void relay_start_thread(struct runner *r, void *(*live)(void *)) {
  pthread_t thread;
  int error = pthread_create(&thread, &relay.attributes, live, r);
  if (error != 0) fail(EXIT_BROKEN, "a thread could not be created: %s", strerror(error));
}

static inline void *relay_live(void *argument) {
  struct runner *r = argument;
  if (r->lives++ == 0) {
    relay.prepare(r);
    worker_begin(&r->worker);
  } else {
    pthread_join(r->before, NULL);
  }
  bool more = relay.live(r);
  r->before = pthread_self();
  if (more) {
    relay_start_thread(r, relay_live); // from here on the place belongs to the new thread
    return NULL;
  }
  worker_end(&r->worker, relay.ops(r));
  slots_drop_all(&r->worker.witness, &r->slots);
  sem_post(&relay.over);
  return NULL;
}

// Runs a relay at each of `count` places with `blocks` slots each. Returns the threads made. Small
// stacks, so that the C library keeps all of them for the next threads; under every allocator they
// count as resident memory, and their making as time and faults.
static inline uint64_t relay_run(size_t count, size_t blocks) {
  crew_map(count, sizeof(struct runner));
  for (size_t i = 0; i < count; i++) ((struct runner *)crew_worker(i))->slots = slots_map(blocks);
  pthread_attr_init(&relay.attributes);
  pthread_attr_setstacksize(&relay.attributes, STACK_BYTES);
  sem_init(&relay.over, 0, 0);
  crew_note_begin();
  for (size_t i = 0; i < count; i++) relay_start_thread(crew_worker(i), relay_live);
  for (size_t i = 0; i < count; i++) {
    while (sem_wait(&relay.over) != 0) {
    }
  }
  uint64_t lives = 0;
  for (size_t i = 0; i < count; i++) {
    struct runner *r = crew_worker(i);
    pthread_join(r->before, NULL);
    lives += r->lives;
  }
  crew_note_end();
  return lives;
}

#endif
