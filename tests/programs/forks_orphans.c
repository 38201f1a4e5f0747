// Children inherit the caches of threads that they do not have, caught between any two stores: none
// of their blocks may be given out twice or be lost to the wrong heap. Arguments: forks (150),
// seed.
//
// The threads do nothing but fill and empty their caches, so that most forks catch one of them on a
// slow path. A child allocates past everything that it inherited, each block bearing its own
// address.
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/support/check.h"
#include "tests/support/random.h"

enum { THREADS = 6, FILL = 400, FILL_BYTES = 1000, BLOCKS = 6000, ROUNDS = 3, CHILD_SECONDS = 60 };

// What the blocks of a child are told apart by.
struct label {
  const struct label *self;
  unsigned number;
};

static _Atomic bool stop;

static void *fill_and_empty(void *unused) {
  void *blocks[FILL];
  while (!stop) {
    for (int i = 0; i < FILL; i++) blocks[i] = malloc(FILL_BYTES);
    for (int i = 0; i < FILL; i++) free(blocks[i]);
  }
  return unused;
}

// Sizes of the threads' own class and of two others.
static size_t draw_size(struct random_state *random) {
  static const size_t sizes[] = {FILL_BYTES, 900, 500};
  return sizes[random_between(random, 0, 2)];
}

static void allocate_and_compare(struct random_state *random) {
  static struct label *blocks[BLOCKS];
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(draw_size(random));
    CHECK(blocks[i] != NULL, "no block number %u in the child", i);
    *blocks[i] = (struct label){blocks[i], i};
  }
  for (unsigned i = 0; i < BLOCKS; i++) {
    CHECK(blocks[i]->self == blocks[i] && blocks[i]->number == i,
          "block %u of the child was given out again as block %u", i, blocks[i]->number);
  }
  for (unsigned i = 0; i < BLOCKS; i++)
    free(blocks[i * 7 % BLOCKS]); // 7 and BLOCKS share no factor
}

static void child(uint64_t seed) {
  struct random_state random = random_start(seed);
  alarm(CHILD_SECONDS); // a hang becomes a death
  for (int round = 0; round < ROUNDS; round++) allocate_and_compare(&random);
  _exit(0);
}

static void fork_one(int number, uint64_t seed) {
  int status;
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: %s", strerror(errno));
  if (pid == 0) child(seed + (uint64_t)number);
  CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
  CHECK(!WIFSIGNALED(status), "child %d died of signal %d", number, WTERMSIG(status));
  CHECK(WEXITSTATUS(status) == 0, "child %d ended with %d", number, WEXITSTATUS(status));
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  int forks = argc > 1 ? atoi(argv[1]) : 150;
  uint64_t seed = random_seed(argc > 2 ? argv[2] : NULL);
  say("seed %llu, %d forks\n", (unsigned long long)seed, forks);
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, fill_and_empty, NULL) == 0, "no thread");
  }
  for (int number = 0; number < forks; number++) fork_one(number, seed);
  stop = true;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  say("ok\n");
  return 0;
}
