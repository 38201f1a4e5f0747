// Threads in every number and size. Argument: small_stacks, least_stacks, in_turn, in_crews or
// destructors.
//
// small_stacks, least_stacks: 1,000 live threads with stacks of 64 KiB or of the least that the
// system allows, each freeing what its neighbour allocated. in_turn: 10,000 short threads one after
// another, half of their blocks freed by the main thread. in_crews: 10,000 short threads, eight at
// a time, half of their blocks freed by those that come next. Both: the last 9,000 need no memory
// that the first 1,000 did not need. destructors: keys whose destructors allocate and free in all
// rounds of thread exit.
#define _GNU_SOURCE 1
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/memory.h"

enum { MANY = 1000, EACH = 12 };

static pthread_barrier_t everybody_has;
static char *blocks[MANY][EACH];

static size_t nth_size(unsigned i) {
  return (size_t)24 << i % EACH;
} // 24 bytes to 48 KiB

static void *allocate_and_free_neighbours(void *argument) {
  unsigned number = (unsigned)(uintptr_t)argument;
  for (unsigned i = 0; i < EACH; i++) {
    blocks[number][i] = malloc(nth_size(i));
    CHECK(blocks[number][i] != NULL, "thread %u got no block of %zu bytes", number, nth_size(i));
    blocks[number][i][0] = (char)number;
    blocks[number][i][nth_size(i) - 1] = (char)number;
  }
  pthread_barrier_wait(&everybody_has);
  unsigned other = (number + 1) % MANY;
  for (unsigned i = 0; i < EACH; i++) {
    CHECK(blocks[other][i][0] == (char)other && blocks[other][i][nth_size(i) - 1] == (char)other,
          "a block of thread %u changed", other);
    free(blocks[other][i]);
  }
  return NULL;
}

static void thousand_threads(size_t stack_bytes) {
  static pthread_t threads[MANY];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int error = pthread_attr_setstacksize(&attributes, stack_bytes);
  CHECK(error == 0, "a stack of %zu bytes is refused: %s", stack_bytes, strerror(error));
  pthread_barrier_init(&everybody_has, NULL, MANY);
  for (uintptr_t i = 0; i < MANY; i++) {
    error = pthread_create(&threads[i], &attributes, allocate_and_free_neighbours, (void *)i);
    CHECK(error == 0, "thread %u with a stack of %zu bytes: %s", (unsigned)i, stack_bytes,
          strerror(error));
  }
  for (int i = 0; i < MANY; i++) pthread_join(threads[i], NULL);
}

static size_t least_stack(void) {
  long least = sysconf(_SC_THREAD_STACK_MIN);
  return least > 16384 ? (size_t)least : 16384;
}

// ---- short threads

enum { SHORT_THREADS = 10000, SETTLED = 1000, CREW = 8 };

// What the process needs at the moment. The kernel counts resident pages a little late, and which
// threads meet is chance; committed memory comes 4 MiB at a time, and records with it. It shows if
// each of the last 9,000 threads loses 256 bytes.
struct need {
  size_t peak, writable;
};
enum { PEAK_SLACK = 2 << 20, WRITABLE_SLACK = 5 << 20 };

static struct need need_now(void) {
  return (struct need){memory_peak(), memory_status("VmData:")};
}

static void require_same_need(struct need before) {
  struct need after = need_now();
  say("at thread %d: peak %zu KiB, writable %zu KiB; at thread %d: %zu KiB, %zu KiB\n", SETTLED,
      before.peak / 1024, before.writable / 1024, SHORT_THREADS, after.peak / 1024,
      after.writable / 1024);
  CHECK(after.peak <= before.peak + PEAK_SLACK, "the peak grew with the number of threads");
  CHECK(after.writable <= before.writable + WRITABLE_SLACK,
        "committed memory grew with the number of threads");
}

// Every second block is freed, the others are left in `kept`.
static void *live_shortly(void *kept) {
  char **mine = kept;
  for (unsigned i = 0; i < 2 * EACH; i++) {
    char *p = malloc(nth_size(i));
    CHECK(p != NULL, "no block of %zu bytes", nth_size(i));
    p[0] = 1;
    if (i % 2 == 0) {
      free(p);
    } else {
      mine[i / 2] = p;
    }
  }
  return NULL;
}

static void free_kept(char **kept) {
  for (int i = 0; i < EACH; i++) {
    free(kept[i]);
    kept[i] = NULL;
  }
}

static void short_threads_in_turn(void) {
  struct need before = {0, 0};
  for (int i = 0; i < SHORT_THREADS; i++) {
    char *kept[EACH];
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, live_shortly, kept) == 0, "no thread number %d", i);
    pthread_join(thread, NULL);
    free_kept(kept);
    if (i == SETTLED) before = need_now();
  }
  require_same_need(before);
}

// A member's place in the crew is handed down: so are the blocks that the last member left there.
static void *relieve(void *place) {
  free_kept(place);
  return live_shortly(place);
}

static void short_threads_in_crews(void) {
  static char *kept[CREW][EACH];
  struct need before = {0, 0};
  for (int i = 0; i < SHORT_THREADS; i += CREW) {
    pthread_t crew[CREW];
    for (int j = 0; j < CREW; j++)
      CHECK(pthread_create(&crew[j], NULL, relieve, kept[(i / CREW + j) % CREW]) == 0,
            "no thread number %d", i + j);
    for (int j = 0; j < CREW; j++) pthread_join(crew[j], NULL);
    if (i == SETTLED) before = need_now();
  }
  for (int j = 0; j < CREW; j++) free_kept(kept[j]);
  require_same_need(before);
}

// ---- destructors

enum { KEYS = 8 };
static pthread_key_t keys[KEYS];
static _Atomic int destructor_calls;

// A value is a block whose first byte counts the rounds that are left.
static void destroy(void *value) {
  char *p = value;
  int rounds_left = p[0];
  destructor_calls++;
  for (unsigned i = 0; i < EACH; i++) {
    char *other = realloc(malloc(nth_size(i)), nth_size(i) * 2);
    CHECK(other != NULL, "no memory in a destructor");
    memset(other, 9, nth_size(i) * 2);
    free(other);
  }
  free(p);
  if (rounds_left == 0) return;
  char *next = malloc(100000);
  CHECK(next != NULL, "no memory in a destructor");
  next[0] = (char)(rounds_left - 1);
  for (int i = 0; i < KEYS; i++) {
    if (pthread_getspecific(keys[i]) == NULL) {
      pthread_setspecific(keys[i], next);
      return;
    }
  }
  free(next);
}

static void *end_with_values(void *allocates_before) {
  for (int i = 0; i < KEYS; i++) {
    char *p = allocates_before != NULL ? malloc(50) : calloc(1, 70000);
    CHECK(p != NULL, "no memory");
    p[0] = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
    pthread_setspecific(keys[i], p);
  }
  return NULL;
}

static void destructors_in_all_rounds(void) {
  size_t before = 0;
  for (int i = 0; i < KEYS; i++) pthread_key_create(&keys[i], destroy);
  for (int round = 0; round < 1000; round++) {
    pthread_t pair[2];
    for (int i = 0; i < 2; i++) {
      CHECK(pthread_create(&pair[i], NULL, end_with_values, i == 0 ? NULL : pair) == 0,
            "no thread");
    }
    for (int i = 0; i < 2; i++) pthread_join(pair[i], NULL);
    if (round == 100) before = memory_resident();
  }
  size_t after = memory_resident();
  CHECK(destructor_calls >= 1000 * 2 * KEYS, "only %d destructor calls", destructor_calls);
  CHECK(after < before + (16 << 20), "thread exits left %zu KiB behind", (after - before) / 1024);
}

int main(int argc, char **argv) {
  const char *what = argc == 2 ? argv[1] : "";
  if (strcmp(what, "small_stacks") == 0) {
    thousand_threads(65536);
  } else if (strcmp(what, "least_stacks") == 0) {
    thousand_threads(least_stack());
  } else if (strcmp(what, "in_turn") == 0) {
    short_threads_in_turn();
  } else if (strcmp(what, "in_crews") == 0) {
    short_threads_in_crews();
  } else if (strcmp(what, "destructors") == 0) {
    destructors_in_all_rounds();
  } else {
    FAIL("usage: home_threads small_stacks|least_stacks|in_turn|in_crews|destructors");
  }
  say("ok\n");
  return 0;
}
