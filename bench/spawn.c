// Runs one command again and again under several environments, in turn, and prints medians: the
// stop-watch of every comparison in this folder.
//
//   spawn [-k KEY]... [-t SECONDS] ROUNDS 'NAME [VARIABLE=VALUE]...'... -- COMMAND ARGUMENT...
//
// Each quoted word is a variant: a name and what it adds to the environment; `EXE=PATH` replaces
// the program. In each round every variant runs once, so that a change of the machine's mood meets
// them all. A line per variant: name, median, least and greatest of each `KEY=number` that the
// command prints on stdout, then of wall_us (from before the spawn to after the wait), rss_kib
// (peak, as wait4 says), minor faults. A command that fails, or is killed after SECONDS (120), is
// named on stderr, its variant prints "failed", and the exit code is 1.
//
// The launcher is linked statically because a child's ru_maxrss begins with its parent's.
// By hand: gcc -O1 -static -o /tmp/spawn bench/spawn.c
//          && /tmp/spawn 300 'plain' 'ours LD_PRELOAD=/tmp/hz/libhakozuna.so' -- true
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MAX_VARIANTS = 32, MAX_KEYS = 8, MAX_ROUNDS = 2000, MAX_ADDED = 16, OUTPUT_BYTES = 4096 };
enum { WALL_US, RSS_KIB, FAULTS, FIXED_FIGURES, MAX_FIGURES = FIXED_FIGURES + MAX_KEYS };

struct variant {
  const char *name;
  const char *exe; // NULL: the command's own
  char *added[MAX_ADDED];
  size_t added_count;
  bool failed;
};

static struct variant variants[MAX_VARIANTS];
static size_t variant_count;
static const char *keys[MAX_KEYS];
static size_t key_count;
static size_t rounds;
static unsigned limit_s = 120;
static double figures[MAX_VARIANTS][MAX_FIGURES][MAX_ROUNDS];
static volatile sig_atomic_t running_child;

static _Noreturn void usage(const char *problem) {
  fprintf(
      stderr,
      "spawn: %s; expected: spawn [-k KEY]... [-t SECONDS] ROUNDS 'NAME [VARIABLE=VALUE]...'... "
      "-- COMMAND ARGUMENT...\n",
      problem);
  exit(2);
}

static void kill_child(int signal) {
  (void)signal;
  if (running_child > 0) kill((pid_t)running_child, SIGKILL);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// Cuts "NAME A=1 B=2" at its blanks, in place.
static void add_variant(char *word) {
  if (variant_count == MAX_VARIANTS) usage("too many variants");
  struct variant *v = &variants[variant_count++];
  char *rest = NULL;
  v->name = strtok_r(word, " ", &rest);
  if (v->name == NULL) usage("a variant without a name");
  for (char *item; (item = strtok_r(NULL, " ", &rest)) != NULL;) {
    if (strchr(item, '=') == NULL) usage("a variant's variable without =");
    if (strncmp(item, "EXE=", 4) == 0) {
      v->exe = item + 4;
    } else {
      if (v->added_count == MAX_ADDED) usage("too many variables in a variant");
      v->added[v->added_count++] = item;
    }
  }
}

// The launcher's environment with the variant's variables first: getenv and ld.so take the first,
// programs that take the last get no second one.
static char **environment_of(const struct variant *v) {
  static char *list[4096];
  size_t n = 0;
  for (size_t i = 0; i < v->added_count; i++) list[n++] = v->added[i];
  for (char **e = environ; *e != NULL && n < 4095; e++) {
    bool replaced = false;
    for (size_t i = 0; i < v->added_count; i++) {
      size_t name_bytes = (size_t)(strchr(v->added[i], '=') - v->added[i]) + 1;
      if (strncmp(*e, v->added[i], name_bytes) == 0) replaced = true;
    }
    if (!replaced) list[n++] = *e;
  }
  list[n] = NULL;
  return list;
}

// Reads the child's stdout to its end; keeps what fits.
static void read_output(int fd, char *text) {
  size_t length = 0;
  char spill[OUTPUT_BYTES];
  for (;;) {
    bool full = length == OUTPUT_BYTES - 1;
    ssize_t got =
        full ? read(fd, spill, sizeof spill) : read(fd, text + length, OUTPUT_BYTES - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (!full) length += (size_t)got;
  }
  text[length] = '\0';
}

// The number after "KEY=" at the start of a word. False: it is not there.
static bool find_figure(const char *text, const char *key, double *figure) {
  size_t bytes = strlen(key);
  for (const char *at = text; (at = strstr(at, key)) != NULL; at += bytes) {
    bool word_start = at == text || at[-1] == ' ' || at[-1] == '\n' || at[-1] == '\t';
    if (word_start && at[bytes] == '=') {
      char *end;
      *figure = strtod(at + bytes + 1, &end);
      return end != at + bytes + 1;
    }
  }
  return false;
}

// Starts the command with stdout going to a pipe; returns the pid and the pipe's reading end.
static pid_t start(const struct variant *v, char **command, int *output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    perror("spawn: pipe");
    exit(1);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const char *exe = v->exe != NULL ? v->exe : command[0];
  pid_t pid;
  int error = posix_spawnp(&pid, exe, &actions, NULL, command, environment_of(v));
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    fprintf(stderr, "spawn: %s: %s\n", exe, strerror(error));
    exit(1);
  }
  *output = ends[0];
  return pid;
}

// One run of one variant: fills its figures of this round, or marks it failed.
static void run_once(size_t index, size_t round, char **command) {
  struct variant *v = &variants[index];
  char text[OUTPUT_BYTES];
  int output, status;
  struct rusage usage;
  double begin = now_us();
  pid_t pid = start(v, command, &output);
  running_child = pid;
  alarm(limit_s);
  read_output(output, text);
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  double end = now_us();
  alarm(0);
  running_child = 0;
  close(output);
  figures[index][WALL_US][round] = end - begin;
  figures[index][RSS_KIB][round] = (double)usage.ru_maxrss;
  figures[index][FAULTS][round] = (double)usage.ru_minflt;
  for (size_t k = 0; k < key_count; k++) {
    if (!find_figure(text, keys[k], &figures[index][FIXED_FIGURES + k][round])) v->failed = true;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) v->failed = true;
  if (v->failed) {
    fprintf(stderr, "spawn: %s, round %zu: %s %d; its output: %s\n", v->name, round + 1,
            WIFEXITED(status) ? "exit code" : "ended by signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), text);
  }
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_number(int width, double value) {
  printf(value >= 1000 ? " %*.0f" : " %*.4g", width, value);
}

static void print_figure(double *values) {
  qsort(values, rounds, sizeof *values, compare_doubles);
  print_number(11, (values[(rounds - 1) / 2] + values[rounds / 2]) / 2);
  print_number(9, values[0]);
  print_number(9, values[rounds - 1]);
}

static void print_table(void) {
  static const char *const fixed[FIXED_FIGURES] = {"wall_us", "rss_kib", "faults"};
  printf("%-20s", "# variant");
  for (size_t k = 0; k < key_count; k++) printf(" %11s %9s %9s", keys[k], "min", "max");
  for (size_t f = 0; f < FIXED_FIGURES; f++) printf(" %11s %9s %9s", fixed[f], "min", "max");
  printf("\n");
  for (size_t i = 0; i < variant_count; i++) {
    printf("%-20s", variants[i].name);
    if (variants[i].failed) {
      printf(" failed\n");
      continue;
    }
    for (size_t k = 0; k < key_count; k++) print_figure(figures[i][FIXED_FIGURES + k]);
    for (size_t f = 0; f < FIXED_FIGURES; f++) print_figure(figures[i][f]);
    printf("\n");
  }
}

static char **parse(int argc, char **argv) {
  int option;
  while ((option = getopt(argc, argv, "+k:t:")) != -1) {
    if (option == 'k' && key_count < MAX_KEYS) {
      keys[key_count++] = optarg;
    } else if (option == 't' && atoi(optarg) > 0) {
      limit_s = (unsigned)atoi(optarg);
    } else {
      usage("an option that is not understood");
    }
  }
  if (optind < argc) rounds = strtoul(argv[optind++], NULL, 10);
  if (rounds < 1 || rounds > MAX_ROUNDS) usage("ROUNDS must be 1 to 2000");
  while (optind < argc && strcmp(argv[optind], "--") != 0) add_variant(argv[optind++]);
  if (variant_count == 0) usage("no variant");
  if (optind + 1 >= argc) usage("no command");
  return argv + optind + 1;
}

int main(int argc, char **argv) {
  char **command = parse(argc, argv);
  // Without SA_RESTART, so that a wait that is never satisfied ends with the child's death alone.
  struct sigaction action = {.sa_handler = kill_child};
  sigaction(SIGALRM, &action, NULL);
  bool failed = false;
  for (size_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < variant_count; i++) {
      if (!variants[i].failed) run_once(i, round, command);
    }
  }
  print_table();
  for (size_t i = 0; i < variant_count; i++) failed |= variants[i].failed;
  return failed ? 1 : 0;
}
