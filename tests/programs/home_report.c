// Ends in ways that make last words difficult. Argument: closed (descriptor 2 closed before exit),
// fork (three descendants that allocate and exit, one of them a grandchild).
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/check.h"

static void allocate(void) {
  for (int i = 0; i < 1000; i++) free(opaque(malloc((size_t)i * 100)));
}

static void fork_and_exit(int depth) {
  pid_t pid = fork();
  CHECK(pid >= 0, "fork failed");
  if (pid == 0) {
    allocate();
    if (depth > 0) fork_and_exit(depth - 1);
    exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0, "a child ended with status %d", status);
}

int main(int argc, char **argv) {
  allocate();
  if (argc == 2 && strcmp(argv[1], "closed") == 0) {
    close(STDERR_FILENO);
  } else if (argc == 2 && strcmp(argv[1], "fork") == 0) {
    fork_and_exit(0);
    fork_and_exit(1);
  } else {
    FAIL("usage: home_report closed|fork");
  }
  say("ok\n");
  return 0;
}
