// Two processes for each run: this one reads what the command writes and keeps the time limit; the
// keeper between them starts the command, waits for it and reports what the kernel counted.
#include "tools/bench/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/clock.h"
#include "tools/command.h"
#include "tools/text.h"

// The keeper's report.
struct kept {
  int error; // errno of a start that failed; 0: it ran
  int status;
  double wall_s;
  struct rusage usage;
};

// A signal that comes just before a poll does not end it: it is noticed after that long.
enum { NOTICE_MS = 200, GRACE_MS = 1000 };

static volatile sig_atomic_t interrupt; // the signal; 0: none

static void note_interrupt(int signal) {
  interrupt = signal;
}

void hz_catch_interrupts(void) {
  // Without SA_RESTART: a poll that waits for output comes back.
  struct sigaction action = {.sa_handler = note_interrupt};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  // Whoever reads our output may leave; the files are still to be written.
  signal(SIGPIPE, SIG_IGN);
}

int hz_interrupted(void) {
  return interrupt;
}

static double seconds_of(struct timeval t) {
  return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

// ---- in the keeper, for the command

static void set_or_unset(const char *name, const char *value) {
  if (*value) setenv(name, value, 1);
  else unsetenv(name);
}

static void unset_all_of(const char *prefix) {
  size_t bytes = strlen(prefix), i = 0;
  while (environ[i]) {
    const char *variable = environ[i];
    char *name = hz_text("%.*s", (int)strcspn(variable, "="), variable);
    bool unset = strncmp(variable, prefix, bytes) == 0 && unsetenv(name) == 0;
    if (!unset) i++; // else, the next one has moved here
    free(name);
  }
}

// Whether this machine or its user has a configuration file of ours, where config/load.h has it.
// Where there is none, nothing is set: reading even /dev/null touches pages of the library.
static bool has_configuration(void) {
  const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  char *of_user = folder && *folder ? hz_text("%s/hakozuna.ini", folder)
                                    : hz_text("%s/.config/hakozuna.ini", home ? home : "");
  bool has = access(of_user, F_OK) == 0 || access("/etc/hakozuna.ini", F_OK) == 0;
  free(of_user);
  return has;
}

// How users tune the other allocators; the loader's tunables are glibc's.
static const char *const tunings[] = {"MALLOC_", "MIMALLOC_", "TCMALLOC_", "SNMALLOC_",
                                      "GLIBC_TUNABLES"};

// No setting of ours that this process was started with reaches the command, only the variant's; nor
// does a configuration file of the machine, or a tuning of another allocator: nobody would see them
// in the figures.
static void set_environment(const struct hz_measure_order *order) {
  const struct hz_variant *variant = order->variant;
  unset_all_of("HAKOZUNA_");
  unset_all_of("HZ_BENCH_");
  unsetenv("LD_PRELOAD");
  for (size_t i = 0; i < hz_count_of(tunings); i++) unset_all_of(tunings[i]);
  if (variant->setting) putenv((char *)variant->setting);
  if (has_configuration()) setenv("HAKOZUNA_CONFIG", "/dev/null", 1);
  if (order->how == HZ_PRELOADED) {
    set_or_unset("LD_PRELOAD", variant->library);
    set_or_unset("HAKOZUNA_PROFILE", variant->profile);
  } else {
    setenv("HZ_BENCH_PRELOAD", variant->library, 1);
    setenv("HZ_BENCH_PROFILE", variant->profile, 1);
  }
  for (size_t i = 0; order->settings && order->settings[i]; i++) putenv(order->settings[i]);
}

// ---- in the command's process, before it becomes the command

static void set_signals_to_default(void) {
  sigset_t none;
  sigemptyset(&none);
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  sigaction(SIGPIPE, &action, NULL);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

// Never returns. What keeps it from starting is written to `trouble` as an errno.
static _Noreturn void become_command(const struct hz_measure_order *order, const int *ends,
                                     int trouble) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int input = open(order->input ? order->input : "/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(ends[0], STDOUT_FILENO) >= 0 &&
      dup2(ends[1], STDERR_FILENO) >= 0) {
    set_signals_to_default();
    execvp(order->argv[0], order->argv);
  }
  int error = errno;
  ssize_t written = write(trouble, &error, sizeof error);
  _exit(written < 0);
}

// ---- in the keeper

static struct kept start_and_wait(const struct hz_measure_order *order, const int *ends) {
  struct kept kept = {.error = 0};
  int trouble[2];
  if (pipe2(trouble, O_CLOEXEC) != 0) return (struct kept){.error = errno};
  double begin = hz_now_s();
  pid_t command = fork();
  if (command < 0) return (struct kept){.error = errno};
  if (command == 0) become_command(order, ends, trouble[1]);
  close(trouble[1]);
  int error;
  if (read(trouble[0], &error, sizeof error) == sizeof error) kept.error = error;
  while (wait4(command, &kept.status, 0, &kept.usage) < 0 && errno == EINTR) {
  }
  kept.wall_s = hz_now_s() - begin;
  return kept;
}

// The keeper leads the group of all that the command starts, and ends it with itself: what the
// command has left behind would run on beside the next one.
static _Noreturn void keep(const struct hz_measure_order *order, const int *ends, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGTERM, SIG_IGN); // it is for the command, whose end is still to be reported
  set_environment(order);   // here, because each page that the command's process writes is a fault
  struct kept kept = start_and_wait(order, ends);
  if (write(report, &kept, sizeof kept) == sizeof kept) kill(0, SIGKILL);
  _exit(1);
}

// ---- in this process

// Reads what is there; keeps the beginning. False: the end.
static bool read_beginning(int fd, char *text, size_t *length) {
  char spill[HZ_MEASURE_OUTPUT_BYTES];
  ssize_t got = read(fd, spill, sizeof spill);
  if (got <= 0) return got < 0 && errno == EINTR;
  size_t kept = hz_min((size_t)got, HZ_MEASURE_OUTPUT_BYTES - 1 - *length);
  memcpy(text + *length, spill, kept);
  *length += kept;
  return true;
}

// The same, but keeps the end.
static bool read_end(int fd, char *text, size_t *length) {
  char next[HZ_MEASURE_OUTPUT_BYTES / 2];
  ssize_t got = read(fd, next, sizeof next);
  if (got <= 0) return got < 0 && errno == EINTR;
  size_t room = HZ_MEASURE_OUTPUT_BYTES - 1 - *length;
  if ((size_t)got > room) {
    size_t drop = (size_t)got - room;
    memmove(text, text + drop, *length - drop);
    *length -= drop;
  }
  memcpy(text + *length, next, (size_t)got);
  *length += (size_t)got;
  return true;
}

// Until the report is there, the limit is over (false, timed_out) or a signal came (false).
static bool follow(int out, int err, int report, unsigned limit_s, struct hz_measured *m,
                   struct kept *kept, bool *timed_out) {
  double deadline = hz_now_s() + limit_s;
  size_t out_length = 0, err_length = 0;
  struct pollfd fds[] = {{out, POLLIN, 0}, {err, POLLIN, 0}, {report, POLLIN, 0}};
  for (;;) {
    if (hz_interrupted()) return false;
    *timed_out = limit_s && hz_now_s() >= deadline;
    if (*timed_out) return false;
    if (poll(fds, hz_count_of(fds), NOTICE_MS) < 0) continue;
    if (fds[0].revents && !read_beginning(out, m->out, &out_length)) fds[0].fd = -1;
    if (fds[1].revents && !read_end(err, m->err, &err_length)) fds[1].fd = -1;
    // The report comes last: what was written before it is in the pipes by then.
    if (fds[2].revents && !(fds[0].revents & POLLIN) && !(fds[1].revents & POLLIN))
      return read(report, kept, sizeof *kept) == sizeof *kept;
  }
}

static void fill(struct hz_measured *m, const struct kept *kept) {
  m->code = WIFEXITED(kept->status) ? WEXITSTATUS(kept->status) : 128 + WTERMSIG(kept->status);
  if (kept->error) m->code = kept->error == ENOENT ? HZ_EXIT_NOT_FOUND : HZ_EXIT_CANNOT_RUN;
  m->wall_s = kept->wall_s;
  m->user_s = seconds_of(kept->usage.ru_utime);
  m->system_s = seconds_of(kept->usage.ru_stime);
  m->peak_kib = (double)kept->usage.ru_maxrss;
  m->faults = (double)kept->usage.ru_minflt;
}

// The last line that is not empty, in place.
static const char *last_line(char *text) {
  size_t length = strlen(text);
  while (length > 0 && strchr("\n\r ", text[length - 1])) text[--length] = '\0';
  const char *newline = strrchr(text, '\n');
  return newline ? newline + 1 : text;
}

// kept: NULL where the keeper did not come to its report.
static char *describe_failure(const struct hz_measure_order *order, struct hz_measured *m,
                              const struct kept *kept, bool timed_out) {
  const char *program = order->argv[0];
  if (m->interrupted) return NULL;
  if (timed_out) return hz_text("%s was killed after %u s.", program, order->limit_s);
  if (!kept) return hz_text("%s ended the process that watched it, too.", program);
  if (kept->error) return hz_text("%s could not be started: %s.", program, strerror(kept->error));
  if (m->code == 0) return NULL;
  const char *said = last_line(m->err);
  char *how = m->code > 128 ? hz_text("%s was ended by signal %d (%s)", program, m->code - 128,
                                      strsignal(m->code - 128))
                            : hz_text("%s ended with exit code %d", program, m->code);
  char *sentence = *said ? hz_text("%s: %s", how, said) : hz_text("%s and said nothing.", how);
  free(how);
  return sentence;
}

// Descriptors of one run: pairs of a reading and a writing end.
struct pipes {
  int out[2], err[2], report[2];
};

static bool open_pipes(struct pipes *pipes) {
  return pipe2(pipes->out, O_CLOEXEC) == 0 && pipe2(pipes->err, O_CLOEXEC) == 0 &&
         pipe2(pipes->report, O_CLOEXEC) == 0;
}

// Scripts get a moment to remove their folders and to end their servers.
static void end_group(pid_t keeper, int report) {
  struct pollfd reported = {.fd = report, .events = POLLIN};
  kill(-keeper, SIGTERM);
  while (poll(&reported, 1, GRACE_MS) < 0 && errno == EINTR) {
  }
  kill(-keeper, SIGKILL);
}

static void run(const struct hz_measure_order *order, struct hz_measured *m) {
  struct pipes pipes;
  if (order->input && access(order->input, R_OK) != 0) {
    m->failure = hz_text("the input %s cannot be read: %s.", order->input, strerror(errno));
    return;
  }
  if (!open_pipes(&pipes)) {
    m->failure = hz_text("no pipe to read from: %s.", strerror(errno));
    return;
  }
  fflush(NULL);
  pid_t keeper = fork();
  if (keeper < 0) {
    m->failure = hz_text("no process to start in: %s.", strerror(errno));
  } else if (keeper == 0) {
    keep(order, (int[]){pipes.out[1], pipes.err[1]}, pipes.report[1]);
  }
  close(pipes.out[1]);
  close(pipes.err[1]);
  close(pipes.report[1]);
  struct kept kept = {.error = 0};
  bool timed_out = false;
  if (keeper > 0) {
    setpgid(keeper, keeper); // it does the same; whoever comes first
    bool ended =
        follow(pipes.out[0], pipes.err[0], pipes.report[0], order->limit_s, m, &kept, &timed_out);
    if (!ended) end_group(keeper, pipes.report[0]);
    while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR) {
    }
    fill(m, &kept);
    m->interrupted = !ended && !timed_out && hz_interrupted();
    m->failure = describe_failure(order, m, ended ? &kept : NULL, timed_out);
  }
  close(pipes.out[0]);
  close(pipes.err[0]);
  close(pipes.report[0]);
}

// The kernel notes every open of the file: unlike a look at the program's memory map, this misses
// none, however short the program. -1: it cannot.
static int watch_library(const char *library) {
  int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (watch >= 0 && inotify_add_watch(watch, library, IN_OPEN) >= 0) return watch;
  if (watch >= 0) close(watch);
  return -1;
}

void hz_measure(const struct hz_measure_order *order, struct hz_measured *measured) {
  *measured = (struct hz_measured){.failure = NULL};
  const char *library = order->variant->library;
  int watch = *library ? watch_library(library) : -1;
  if (*library && watch < 0) {
    measured->failure =
        hz_text("nobody can be told who opens %s: %s (see inotify(7) for the limits "
                "in /proc/sys/fs/inotify).",
                library, strerror(errno));
    return;
  }
  run(order, measured);
  char events[4096];
  measured->opened = watch >= 0 && read(watch, events, sizeof events) > 0;
  if (watch >= 0) close(watch);
}

// The text behind "KEY=" at the beginning of a word; NULL: there is none.
static const char *find_value(const char *text, const char *key) {
  size_t bytes = strlen(key);
  for (const char *at = text; (at = strstr(at, key)) != NULL; at += bytes) {
    bool begins = at == text || strchr(" \n\t", at[-1]);
    if (begins && at[bytes] == '=') return at + bytes + 1;
  }
  return NULL;
}

bool hz_find_figure(const char *text, const char *key, double *figure) {
  const char *value = find_value(text, key);
  if (!value) return false;
  char *end;
  *figure = strtod(value, &end);
  return end != value && !strchr(" \n\t", *value) && isfinite(*figure);
}

bool hz_find_word(const char *text, const char *key, char *word, size_t bytes) {
  const char *value = find_value(text, key);
  if (!value) return false;
  size_t length = hz_min(strcspn(value, " \n\t"), bytes - 1);
  memcpy(word, value, length);
  word[length] = '\0';
  return true;
}
