// Threads under a limit: created until the system refuses, each allocating until it is refused, all
// of it again and again. Nothing may crash, hang or stay lost.
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

enum { MOST_THREADS = 200, ROUNDS = 15, BLOCKS = 400 };

static void *allocate_until_refused(void *argument) {
  size_t bytes = (size_t)(uintptr_t)argument;
  void *blocks[BLOCKS];
  int count = 0;
  while (count < BLOCKS && (blocks[count] = malloc(bytes)) != NULL) {
    memset(blocks[count], count, bytes);
    count++;
  }
  if (count < BLOCKS) CHECK(errno == ENOMEM, "the refusal set errno %d, expected ENOMEM", errno);
  for (int i = 0; i < count; i++) {
    CHECK(((char *)blocks[i])[bytes - 1] == (char)i, "a block of %zu bytes changed", bytes);
    free(blocks[i]);
  }
  return (void *)(intptr_t)count;
}

// Returns how many blocks the threads got, and counts the threads.
static int storm(int round, int *threads) {
  pthread_t ids[MOST_THREADS];
  int created = 0, got = 0;
  for (; created < MOST_THREADS; created++) {
    size_t bytes = (size_t)100 << (created + round) % 13; // 100 bytes to 400 KiB
    int error = pthread_create(&ids[created], NULL, allocate_until_refused, (void *)bytes);
    if (error == 0) continue;
    CHECK(error == EAGAIN || error == ENOMEM, "pthread_create: %s", strerror(error));
    break;
  }
  for (int i = 0; i < created; i++) {
    void *count;
    CHECK(pthread_join(ids[i], &count) == 0, "a thread cannot be joined");
    got += (int)(intptr_t)count;
  }
  *threads += created;
  return got;
}

int main(void) {
  int threads = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int got = storm(round, &threads);
    CHECK(got > 0, "round %d: no thread got a block", round);
    void *after = malloc(1 << 20);
    CHECK(after != NULL, "round %d: 1 MiB cannot be had after all threads have ended", round);
    free(after);
  }
  say("%d threads\nok\n", threads);
  return 0;
}
