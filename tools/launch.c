// Spawning with fork and exec instead of posix_spawn: the child gets back exactly the signal mask
// and the SIGCHLD disposition that we were started with, which is what a program run directly has.
#include "tools/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/command.h"

// What a person or a supervisor sends to a program to tell it something; SIGKILL and SIGSTOP cannot
// be passed on. Of Ctrl-Z (SIGTSTP) we are told like the program is, and stop only when it does.
static const int forwarded[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                SIGALRM, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

// The terminal sends to the whole group, the program included: passing that on would deliver it
// twice. The kernel's own signals have a positive si_code, those of kill(2) and sigqueue(3) not.
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

// As execvp(3) and every shell do: a text that the kernel does not know is a shell script.
static void become_script(char *path, char **argv) {
  static char shell[] = "sh";
  size_t count = 0;
  while (argv[count]) count++;
  char **words = calloc(count + 2, sizeof *words);
  if (!words) return;
  words[0] = shell;
  words[1] = path;
  for (size_t i = 1; i < count; i++) words[i + 1] = argv[i];
  execv("/bin/sh", words);
}

static _Noreturn void become(char *path, char **argv) {
  execv(path, argv);
  if (errno == ENOEXEC) become_script(path, argv);
  int error = errno;
  hz_log("%s: cannot be executed: %s.", path, strerror(error));
  _exit(error == ENOENT ? HZ_EXIT_NOT_FOUND : HZ_EXIT_CANNOT_RUN);
}

int hz_launch(char *path, char **argv) {
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
