// The threads of a program: all begin at once, each stamps its own begin and end, and what they saw
// is added up. One thread alone is the main thread, as in programs that know no threads.
#ifndef HZ_BENCH_CREW_H
#define HZ_BENCH_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>

#include "blocks.h"
#include "draw.h"
#include "pace.h"
#include "resident.h"
#include "state.h"

// STACK_BYTES also holds the thread-local variables of preloaded libraries.
enum { THREADS_MOST = 1024, STACK_BYTES = 1 << 20, STACK_TOUCHED_BYTES = 64 * 1024 };

#define THREADS_ARGUMENT(threads, usually)                                                         \
  { .key = "threads", .value = (threads), .usual = (usually), .least = 1, .most = THREADS_MOST }

// The first member of a program's own worker.
struct worker {
  _Alignas(PAD) pthread_t thread;
  uint64_t random;
  uint64_t ops;
  uint64_t begin_ns, end_ns;
  struct pace pace;
  struct witness witness;
};

static struct {
  size_t count, worker_bytes;
  char *workers;
  long before_kib;                   // resident before the workers began
  struct rusage usage_before, usage; // the process's before the workers began, and when all ended
  pthread_barrier_t barrier;
  _Atomic uint64_t begin_ns; // of the first worker; 0: none has begun
} crew;

static inline void *crew_worker(size_t i) {
  return crew.workers + i * crew.worker_bytes;
}

// worker_bytes: of the program's own kind of worker, a multiple of PAD by its alignment.
static inline void crew_map(size_t count, size_t worker_bytes) {
  crew.count = count;
  crew.worker_bytes = worker_bytes;
  crew.workers = state_map(count * worker_bytes);
  pthread_barrier_init(&crew.barrier, NULL, (unsigned)count);
  for (size_t i = 0; i < count; i++) {
    struct worker *w = crew_worker(i);
    w->random = draw_begin((uint32_t)i);
    w->witness = witness_begin(i);
  }
}

// The time of the first caller, which comes back to all of them. *first: 0 before.
static inline uint64_t crew_first_ns(_Atomic uint64_t *first, uint64_t time_ns) {
  uint64_t found = 0;
  return atomic_compare_exchange_strong(first, &found, time_ns) ? time_ns : found;
}

// All wait for each other. The deadline is the same for all: the first one's begin and the limit.
static inline void worker_begin(struct worker *w) {
  pthread_barrier_wait(&crew.barrier);
  w->begin_ns = now_ns();
  w->pace = pace_begin(crew_first_ns(&crew.begin_ns, w->begin_ns), 1);
}

static inline void worker_end(struct worker *w, uint64_t ops) {
  w->end_ns = now_ns();
  w->ops = ops;
}

// On a stack from the harness, resident beforehand, so that it is not taken for the allocator's.
// Only here: the threads of a relay (relay.h) run on the C library's stacks, which count.
static inline void crew_start_thread(struct worker *w, char *stack, void *(*work)(void *)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK_BYTES);
  int error = pthread_create(&w->thread, &attributes, work, w);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    fail(EXIT_BROKEN, "a thread (of %zu) could not be created: %s", crew.count, strerror(error));
  }
}

static inline char *crew_map_stacks(void) {
  size_t bytes = crew.count * STACK_BYTES;
  char *stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) fail(EXIT_BROKEN, "stacks could not be mapped: %s", strerror(errno));
  for (size_t i = 1; i <= crew.count; i++) {
    memset(stacks + i * STACK_BYTES - STACK_TOUCHED_BYTES, 0, STACK_TOUCHED_BYTES);
  }
  return stacks;
}

// What the process has and has used, before the first worker's thread is made.
static inline void crew_note_begin(void) {
  crew.before_kib = resident_kib();
  getrusage(RUSAGE_SELF, &crew.usage_before);
}

// After the last worker's thread has ended.
static inline void crew_note_end(void) {
  getrusage(RUSAGE_SELF, &crew.usage);
}

static inline void crew_run_threads(void *(*work)(void *), char *stacks) {
  for (size_t i = 0; i < crew.count; i++) {
    crew_start_thread(crew_worker(i), stacks + i * STACK_BYTES, work);
  }
  for (size_t i = 0; i < crew.count; i++) {
    pthread_join(((struct worker *)crew_worker(i))->thread, NULL);
  }
}

// Runs `work` with each worker. It calls worker_begin and worker_end, and afterwards, untimed, it
// frees what it still has.
static inline void crew_run(void *(*work)(void *)) {
  char *stacks = crew.count == 1 ? NULL : crew_map_stacks();
  crew_note_begin();
  if (crew.count == 1) {
    work(crew_worker(0));
  } else {
    crew_run_threads(work, stacks);
  }
  crew_note_end();
}

#endif
