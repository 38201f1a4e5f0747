// Allocates in every size under a filter that kills the process at any system call outside of a
// short list: memory, futex, clock, write, leaving. Three threads do so, each under its own filter.
//
// rt_sigprocmask is on the list because libc itself calls it when a thread ends.
#define _GNU_SOURCE 1
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/support/check.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"

enum { BLOCKS = 3000, THREADS = 3 };

#define ALLOW(number)                                                                              \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void forbid_all_but_memory(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(__NR_mmap),
      ALLOW(__NR_munmap),
      ALLOW(__NR_mprotect),
      ALLOW(__NR_madvise),
      ALLOW(__NR_mremap),
      ALLOW(__NR_futex),
      ALLOW(__NR_getpid),
      ALLOW(__NR_clock_gettime),
      ALLOW(__NR_write),
      ALLOW(__NR_exit),
      ALLOW(__NR_exit_group),
      ALLOW(__NR_rt_sigreturn),
      ALLOW(__NR_rt_sigprocmask),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS was refused");
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "the filter was refused");
}

// Sizes from 16 bytes to 8 MiB, the big ones seldom.
static size_t any_size(struct random_state *random) {
  size_t top = (size_t)16 << random_between(random, 0, 9);
  if (random_between(random, 0, 999) == 0) top = (size_t)8 << 20;
  return random_between(random, 1, top);
}

static void work(uint64_t seed) {
  static _Thread_local void *blocks[BLOCKS];
  static _Thread_local size_t sizes[BLOCKS];
  struct random_state random = random_start(seed);
  for (unsigned call = 0; call < 10 * BLOCKS; call++) {
    unsigned i = (unsigned)random_between(&random, 0, BLOCKS - 1);
    size_t bytes = any_size(&random);
    if (blocks[i] != NULL && pattern_intact(blocks[i], sizes[i], sizes[i], i) != sizes[i]) {
      FAIL("a block of %zu bytes changed", sizes[i]);
    }
    blocks[i] = call % 3 == 0 ? realloc(blocks[i], bytes) : (free(blocks[i]), malloc(bytes));
    CHECK(blocks[i] != NULL, "no block of %zu bytes", bytes);
    pattern_fill(blocks[i], sizes[i] = bytes, i);
  }
  for (unsigned i = 0; i < BLOCKS; i++) free(blocks[i]);
  malloc_trim(0);
}

static void *confined(void *seed) {
  forbid_all_but_memory();
  work((uint64_t)(uintptr_t)seed);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, confined, (void *)(i + 1)) == 0, "no thread");
  }
  forbid_all_but_memory();
  work(99);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  say("ok\n");
  return 0;
}
