// One loop of malloc and free, and what a pair costs in time.
//
//   pair [loop=single] [pairs=10000000]      prints "pairs=N ns=TIME_PER_PAIR served=PATH"
//
// loop=single, batch, slots: the local loops of loops.h. loop=remote: one thread allocates 100
// blocks of 16 to 1024 bytes and hands them over; a second one frees them and hands the empty array
// back. They take strict turns and sleep in between, so that the instructions are the same in every
// run. Meant for callgrind: the difference of two runs over that of their pairs is the instructions
// of a pair.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "clock.h"
#include "loops.h"
#include "proof.h"

enum { SINGLE, BATCH, SLOTS, REMOTE };

static size_t loop, pairs;

static const struct argument arguments[] = {
    {.key = "loop", .value = &loop, .words = "single batch slots remote"},
    {.key = "pairs", .value = &pairs, .usual = 10000000, .least = 1, .most = (size_t)1 << 40},
};

// Whose turn it is owns the blocks; the semaphores hand them over.
static struct {
  void *blocks[HZ_LOOP_BATCH];
  sem_t full, empty;
} handover;

static void wait_for(sem_t *turn) {
  while (sem_wait(turn) != 0) {
  }
}

static void *free_batches(void *unused) {
  for (size_t done = 0; done < pairs; done += HZ_LOOP_BATCH) {
    wait_for(&handover.full);
    for (size_t i = 0; i < HZ_LOOP_BATCH; i++) free(handover.blocks[i]);
    sem_post(&handover.empty);
  }
  return unused;
}

// Returns the pairs done.
static size_t run_remote(void) {
  pthread_t consumer;
  uint64_t seed = 1;
  size_t done = 0;
  sem_init(&handover.full, 0, 0);
  sem_init(&handover.empty, 0, 0);
  int error = pthread_create(&consumer, NULL, free_batches, NULL);
  if (error != 0) fail(EXIT_BROKEN, "a thread could not be created: %s", strerror(error));
  for (; done < pairs; done += HZ_LOOP_BATCH) {
    for (size_t i = 0; i < HZ_LOOP_BATCH; i++) {
      handover.blocks[i] = malloc(16 + hz_loop_draw(&seed) % 1009);
    }
    sem_post(&handover.full);
    wait_for(&handover.empty);
  }
  pthread_join(consumer, NULL);
  return done;
}

static size_t run_loop(void) {
  if (loop == BATCH) return hz_loop_batch(pairs, malloc, free);
  if (loop == SLOTS) return hz_loop_slots(pairs, malloc, free);
  return loop == SINGLE ? hz_loop_single(pairs, malloc, free) : run_remote();
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  uint64_t begin_ns = now_ns();
  size_t done = run_loop();
  uint64_t end_ns = now_ns();
  printf("pairs=%zu ns=%.3f served=%s\n", done, (double)(end_ns - begin_ns) / (double)done,
         proof_find());
  return 0;
}
