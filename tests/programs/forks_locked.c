// Forks while a thread allocates under the lock of a library that takes that lock before each fork:
// the allocator's locks have to come after it. Argument: path of libatfork_lock.so to load late;
// without one it has been preloaded.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/check.h"

enum { FORKS = 300, BLOCKS = 200, BLOCK_BYTES = 100000, PROGRAM_SECONDS = 60 };

static void (*take)(void), (*drop)(void);
static _Atomic bool stop;
static _Atomic unsigned rounds;

static void *allocate_under_lock(void *unused) {
  void *blocks[BLOCKS];
  for (; !stop; rounds++) {
    take();
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BLOCK_BYTES);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    drop();
  }
  return unused;
}

static void find_lock(const char *path) {
  void *library = path != NULL ? dlopen(path, RTLD_NOW) : RTLD_DEFAULT;
  CHECK(path == NULL || library != NULL, "dlopen failed: %s", dlerror());
  take = (void (*)(void))dlsym(library, "atfork_lock_take");
  drop = (void (*)(void))dlsym(library, "atfork_lock_drop");
  CHECK(take != NULL && drop != NULL, "libatfork_lock.so is not loaded: preload or name it");
}

static void fork_one(void) {
  int status;
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: %s", strerror(errno));
  if (pid == 0) _exit(0);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0, "a child ended with status %#x", status);
}

int main(int argc, char **argv) {
  pthread_t thread;
  find_lock(argc > 1 ? argv[1] : NULL);
  CHECK(pthread_create(&thread, NULL, allocate_under_lock, NULL) == 0, "no thread");
  alarm(PROGRAM_SECONDS); // a deadlock becomes a death
  for (int number = 0; number < FORKS; number++) fork_one();
  stop = true;
  pthread_join(thread, NULL);
  CHECK(rounds > 0, "the thread never had the lock");
  say("ok\n");
  return 0;
}
