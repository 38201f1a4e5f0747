// Forks while eight threads allocate. Arguments: threads, signal, stdio, exec, or atfork and the
// path of a library with fork handlers to load first.
//
// threads, atfork: 100 children, each allocating, freeing and resizing inherited blocks, and some
// starting a thread.
// signal: forks inside a signal handler that interrupts malloc. stdio: forks while threads allocate
// under the locks of stdio streams, which fork takes as well. exec: vfork, posix_spawn and popen.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/check.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"

enum { THREADS = 8, FORKS = 100, INHERITED = 500, CHILD_SECONDS = 60 };
static const size_t LARGE_BYTES = (size_t)20 << 20, LARGER_BYTES = (size_t)60 << 20;

extern char **environ;
static _Atomic bool stop;
static void *inherited[INHERITED];
static void *inherited_large;

static void allocate_a_while(struct random_state *random, unsigned calls) {
  void *blocks[64] = {0};
  size_t sizes[64] = {0};
  for (unsigned call = 0; call < calls; call++) {
    unsigned i = (unsigned)random_between(random, 0, 63);
    size_t top = (size_t)32 << random_between(random, 0, call % 50 == 0 ? 16 : 9);
    if (blocks[i] != NULL && pattern_intact(blocks[i], sizes[i], sizes[i], i) != sizes[i]) {
      FAIL("a block of %zu bytes changed", sizes[i]);
    }
    free(blocks[i]);
    sizes[i] = random_between(random, 1, top);
    blocks[i] = malloc(sizes[i]);
    CHECK(blocks[i] != NULL, "no block of %zu bytes", sizes[i]);
    pattern_fill(blocks[i], sizes[i], i);
  }
  for (unsigned i = 0; i < 64; i++) free(blocks[i]);
}

static void *allocate_until_told(void *seed) {
  struct random_state random = random_start((uint64_t)(uintptr_t)seed);
  while (!stop) allocate_a_while(&random, 100);
  return NULL;
}

static void *allocate_once(void *seed) {
  struct random_state random = random_start((uint64_t)(uintptr_t)seed);
  allocate_a_while(&random, 500);
  return NULL;
}

// A large block that grows keeps its contents here, and its place in the parent.
static void grow_inherited(void) {
  void *larger = realloc(inherited_large, LARGER_BYTES);
  CHECK(larger != NULL, "no block of %zu bytes in the child", LARGER_BYTES);
  size_t intact = pattern_intact(larger, LARGE_BYTES, LARGE_BYTES, 1);
  CHECK(intact == LARGE_BYTES, "byte %zu of an inherited block changed", intact);
  free(larger);
}

static void child(int number) {
  alarm(CHILD_SECONDS); // a hang becomes a death
  for (int i = 0; i < INHERITED; i++) free(inherited[i]);
  if (number % 5 == 0) grow_inherited();
  allocate_once((void *)(intptr_t)number);
  if (number % 4 == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate_once, NULL) == 0, "no thread in the child");
    pthread_join(thread, NULL);
  }
  if (number % 3 == 0) exit(0);
  _exit(0);
}

static void wait_for(pid_t pid, const char *what) {
  int status;
  while (waitpid(pid, &status, 0) < 0) CHECK(errno == EINTR, "waitpid: %s", strerror(errno));
  CHECK(!WIFSIGNALED(status), "%s died of signal %d", what, WTERMSIG(status));
  CHECK(WEXITSTATUS(status) == 0, "%s ended with %d", what, WEXITSTATUS(status));
}

static void fork_many(void) {
  for (int i = 0; i < INHERITED; i++) inherited[i] = malloc((size_t)i * 37);
  inherited_large = malloc(LARGE_BYTES);
  CHECK(inherited_large != NULL, "no block of %zu bytes", LARGE_BYTES);
  pattern_fill(inherited_large, LARGE_BYTES, 1);
  for (int number = 0; number < FORKS; number++) {
    pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) child(number);
    wait_for(pid, "a child");
  }
  size_t intact = pattern_intact(inherited_large, LARGE_BYTES, LARGE_BYTES, 1);
  CHECK(intact == LARGE_BYTES, "byte %zu of the parent's block changed", intact);
}

static void with_threads(void (*body)(void)) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, allocate_until_told, (void *)i) == 0, "no thread");
  }
  body();
  stop = true;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

// ---- signal

static volatile sig_atomic_t forks_in_handler;

static void fork_in_handler(int signal_number) {
  (void)signal_number;
  int saved = errno;
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(pid, NULL, 0);
  forks_in_handler++;
  errno = saved;
}

// Another process sends the signals, so that they arrive anywhere in the work of this one.
static pid_t start_sender(void) {
  pid_t parent = getpid(), pid = fork();
  CHECK(pid >= 0, "fork: %s", strerror(errno));
  if (pid > 0) return pid;
  alarm(CHILD_SECONDS);
  while (getppid() == parent && kill(parent, SIGUSR1) == 0) usleep(300);
  _exit(0);
}

static void fork_inside_signals(void) {
  struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pid_t sender = start_sender();
  struct random_state random = random_start(1);
  while (forks_in_handler < FORKS) allocate_a_while(&random, 100);
  kill(sender, SIGKILL);
  waitpid(sender, NULL, 0);
}

// ---- stdio

enum { LONGEST_LINE = 8 << 20 }; // from a cached size to one that is mapped
enum { PAUSE_US = 100 };         // stdio's locks are unfair: everybody must have a chance
static char lines_path[64];      // /proc/self/fd/N: the file itself has no name any more

static void write_lines(void) {
  char template[] = "/tmp/forks.XXXXXX";
  int fd = mkstemp(template);
  CHECK(fd >= 0, "cannot make a file in /tmp: %s", strerror(errno));
  unlink(template);
  FILE *file = fdopen(fd, "w");
  for (size_t bytes = 100; bytes <= LONGEST_LINE; bytes *= 8) {
    for (size_t i = 1; i < bytes; i++) putc('x', file);
    putc('\n', file);
  }
  fflush(file);
  snprintf(lines_path, sizeof lines_path, "/proc/self/fd/%d", fd);
}

// getline allocates while it holds the lock of its stream.
static void *read_lines(void *unused) {
  FILE *file = fopen(lines_path, "r");
  CHECK(file != NULL, "cannot open %s", lines_path);
  while (!stop) {
    char *line = NULL;
    size_t room = 0;
    if (getline(&line, &room, file) < 0) rewind(file);
    free(line);
    usleep(PAUSE_US);
  }
  fclose(file);
  return unused;
}

// fflush(NULL) holds the lock of the list of streams while it waits for each of them.
static void *flush_everything(void *unused) {
  while (!stop) {
    fflush(NULL);
    usleep(PAUSE_US);
  }
  return unused;
}

static void fork_among_streams(void) {
  pthread_t threads[THREADS];
  write_lines();
  alarm(CHILD_SECONDS); // a deadlock becomes a death
  for (int i = 0; i < THREADS; i++) {
    int error = pthread_create(&threads[i], NULL, i == 0 ? flush_everything : read_lines, NULL);
    CHECK(error == 0, "no thread");
  }
  for (int number = 0; number < FORKS; number++) {
    pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) _exit(0);
    wait_for(pid, "a child");
  }
  stop = true;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

// ---- exec

static void exec_many(void) {
  char *const arguments[] = {"true", NULL};
  for (int i = 0; i < 60; i++) {
    pid_t pid = vfork();
    if (pid == 0) {
      execve("/bin/true", arguments, environ);
      _exit(127);
    }
    wait_for(pid, "a program after vfork");
    int error = posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ);
    CHECK(error == 0, "posix_spawn: %s", strerror(error));
    wait_for(pid, "a spawned program");
    FILE *pipe = popen("echo 42", "r");
    char line[8] = "";
    CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL, "popen gave nothing");
    CHECK(strcmp(line, "42\n") == 0 && pclose(pipe) == 0, "popen gave '%s'", line);
  }
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "atfork") == 0 && argc == 3) {
    CHECK(dlopen(argv[2], RTLD_NOW) != NULL, "dlopen failed: %s", dlerror());
    with_threads(fork_many);
  } else if (strcmp(what, "threads") == 0) {
    with_threads(fork_many);
  } else if (strcmp(what, "signal") == 0) {
    fork_inside_signals();
  } else if (strcmp(what, "stdio") == 0) {
    fork_among_streams();
  } else if (strcmp(what, "exec") == 0) {
    with_threads(exec_many);
  } else {
    FAIL("usage: forks threads|signal|stdio|exec|atfork LIBRARY");
  }
  say("ok\n");
  return 0;
}
