// Spawning with fork and exec instead of posix_spawn: the child gets back exactly the signal mask
// and the SIGCHLD disposition that we were started with, which is what a program run directly has.
#include "tools/launch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/allocators.h"
#include "tools/command.h"
#include "tools/print.h"

static const char library_name[] = "libhakozuna.so";

// The folder of this executable, links resolved. folder: PATH_MAX bytes.
static void own_folder(char *folder) {
  ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
  folder[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash) *slash = '\0';
}

bool hz_library_find(char *path) {
  struct utsname system;
  uname(&system);
  char multiarch[sizeof system.machine + 32];
  hz_format(multiarch, sizeof multiarch, "/../lib/%s-linux-gnu", system.machine);
  const char *const below[] = {"", "/../lib/hakozuna", "/../lib", multiarch};
  char own[PATH_MAX], candidate[PATH_MAX + 128], looked[PATH_MAX] = "";
  own_folder(own);
  for (size_t i = 0; i < hz_count_of(below); i++) {
    hz_format(candidate, sizeof candidate, "%s%s/%s", own, below[i], library_name);
    if (realpath(candidate, path)) return true;
    size_t used = strlen(looked);
    hz_format(looked + used, sizeof looked - used, "%s%s%s", used ? ", " : "", own, below[i]);
  }
  memcpy(path, looked, sizeof looked);
  return false;
}

int hz_library_require(char *path) {
  if (hz_library_find(path)) return HZ_EXIT_OK;
  hz_log("%s is missing (looked in %s); build it with `./hakozuna` in a checkout, or install it "
         "beside this command.",
         library_name, path);
  return HZ_EXIT_NO_LIBRARY;
}

// Whether exec would take it: a regular file that we may execute.
static int program_state(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0)
    return errno == ENOENT || errno == ENOTDIR ? HZ_EXIT_NOT_FOUND : HZ_EXIT_CANNOT_RUN;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0) return HZ_EXIT_CANNOT_RUN;
  return HZ_EXIT_OK;
}

int hz_program_find(const char *name, char *path) {
  if (strchr(name, '/')) {
    hz_format(path, PATH_MAX, "%s", name);
    return program_state(path);
  }
  const char *folders = getenv("PATH");
  if (!folders) folders = "/bin:/usr/bin"; // what execvp(3) takes
  int answer = HZ_EXIT_NOT_FOUND;
  for (const char *at = folders; *name; at++) {
    size_t length = strcspn(at, ":");
    // An empty folder in PATH is the current one.
    hz_format(path, PATH_MAX, "%.*s/%s", length ? (int)length : 1, length ? at : ".", name);
    int state = program_state(path);
    if (state == HZ_EXIT_OK) return state;
    if (state == HZ_EXIT_CANNOT_RUN) answer = state;
    at += length;
    if (*at == '\0') break;
  }
  errno = answer == HZ_EXIT_NOT_FOUND ? ENOENT : EACCES;
  return answer;
}

// Entries of LD_PRELOAD are separated by spaces or colons (ld.so(8)). Copies the entry at *at and
// moves *at behind it; false at the end.
static bool next_entry(const char **at, char *entry) {
  *at += strspn(*at, " :");
  size_t length = strcspn(*at, " :");
  hz_format(entry, PATH_MAX, "%.*s", (int)hz_min(length, PATH_MAX - 1), *at);
  *at += length;
  return length != 0;
}

static bool same_file(const char *a, const char *b) {
  struct stat first, second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

bool hz_preload_allocator(const char *value, char *entry) {
  for (const char *at = value ? value : ""; next_entry(&at, entry);)
    if (hz_allocator_of(entry)) return true;
  return false;
}

char *hz_preload_join(const char *existing, const char *library) {
  size_t bytes = strlen(library) + (existing ? strlen(existing) : 0) + 3;
  char *joined = calloc(1, bytes);
  if (!joined) return NULL;
  char entry[PATH_MAX];
  bool placed = false;
  for (const char *at = existing ? existing : ""; next_entry(&at, entry);) {
    // What watches malloc (heaptrack, a sanitizer) must come first to see the calls; of the
    // allocators, the first one serves.
    bool allocator = hz_allocator_of(entry) != NULL;
    if (allocator && !placed && !same_file(entry, library))
      strcat(strcat(joined, *joined ? ":" : ""), library);
    if (allocator) placed = true;
    strcat(strcat(joined, *joined ? ":" : ""), entry);
  }
  if (!placed) strcat(strcat(joined, *joined ? ":" : ""), library);
  return joined;
}

// What a person or a supervisor sends to a program to tell it something; SIGKILL and SIGSTOP cannot
// be passed on. Of Ctrl-Z (SIGTSTP) we are told like the program is, and stop only when it does.
static const int forwarded[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                SIGALRM, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

// The terminal sends to the whole group, the program included: passing that on would deliver it
// twice. si_code tells: the kernel's own signals are positive, those of kill(2) and sigqueue(3) not.
static bool is_ours_to_forward(const siginfo_t *info) {
  return info->si_code <= 0;
}

static bool is_terminal_stop(int signal) {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// A shell says "Segmentation fault" of the programs that it runs itself; here nobody else would.
static void tell_death(const char *path, int status) {
  int signal = WTERMSIG(status);
  if (!isatty(STDERR_FILENO) || signal == SIGINT || signal == SIGPIPE) return;
  hz_log("%s was ended by signal %d (%s)%s.", path, signal, strsignal(signal),
         WCOREDUMP(status) ? "; core dumped" : "");
}

// Takes in what became of the program. True: it has ended, *status is final. As process 1 of a
// container we inherit other processes' orphans: they are reaped on the way.
static bool program_ended(pid_t program, int *status) {
  pid_t changed;
  while ((changed = waitpid(-1, status, WNOHANG | WUNTRACED)) > 0) {
    if (changed != program) continue;
    if (!WIFSTOPPED(*status)) return true;
    if (!is_terminal_stop(WSTOPSIG(*status))) continue; // a debugger's or a supervisor's business
    raise(SIGSTOP); // the shell that waits for us sees a stopped job; its `fg` continues us
    kill(program, SIGCONT);
  }
  return false;
}

// `signals` are blocked, so none is lost between two rounds. Returns an exit code.
static int wait_and_forward(const char *path, pid_t program, const sigset_t *signals) {
  int status;
  while (!program_ended(program, &status)) {
    siginfo_t info;
    int signal = sigwaitinfo(signals, &info);
    if (signal > 0 && signal != SIGCHLD && is_ours_to_forward(&info)) kill(program, signal);
  }
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  tell_death(path, status);
  return HZ_EXIT_SIGNAL + WTERMSIG(status);
}

static _Noreturn void become(const char *path, char **argv) {
  execv(path, argv);
  int error = errno;
  // As execvp(3) and every shell do: a text without a first line of its own is a shell script.
  if (error == ENOEXEC) {
    size_t count = 0;
    while (argv[count]) count++;
    char **shell = calloc(count + 2, sizeof *shell);
    if (shell) {
      shell[0] = (char *)(uintptr_t) "sh";
      shell[1] = (char *)(uintptr_t)path;
      for (size_t i = 1; i < count; i++) shell[i + 1] = argv[i];
      execv("/bin/sh", shell);
    }
  }
  hz_log("%s: cannot be executed: %s.", path, strerror(error));
  _exit(error == ENOENT ? HZ_EXIT_NOT_FOUND : HZ_EXIT_CANNOT_RUN);
}

int hz_launch(const char *path, char **argv) {
  sigset_t signals, mask;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (size_t i = 0; i < hz_count_of(forwarded); i++) sigaddset(&signals, forwarded[i]);
  sigprocmask(SIG_BLOCK, &signals, &mask);
  // An inherited SIG_IGN would make the kernel forget our child's exit code.
  struct sigaction inherited;
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &inherited);
  fflush(NULL);
  pid_t program = fork();
  if (program < 0) {
    hz_log("cannot start %s: fork failed: %s.", path, strerror(errno));
    return HZ_EXIT_SYSTEM;
  }
  if (program == 0) {
    sigaction(SIGCHLD, &inherited, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    become(path, argv);
  }
  return wait_and_forward(path, program, &signals);
}
