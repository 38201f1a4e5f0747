// Both ends of the question whether the library takes over: hz_self_check starts a child and reads
// its answer, hz_cmd_self_check is that child. The answer is one line of words between tabs.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/preload.h"
#include "tools/print.h"
#include "tools/self_check.h"

// ---- The child ----------------------------------------------------------------------------------

// Where an address lies: the name of its line in /proc/self/maps, "" for anonymous memory.
// name: 512 bytes.
static bool mapping_of(const void *address, char *name) {
  char line[PATH_MAX + 128];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && !found && fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    int at = 0;
    name[0] = '\0';
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n%511[^\n]", &start, &end, &at, name) < 2) continue;
    found = (uintptr_t)address >= start && (uintptr_t)address < end;
  }
  if (maps) fclose(maps);
  return found;
}

static int not_served(const char *reason) {
  printf("not served\t%s\n", reason);
  return HZ_EXIT_FOUND;
}

// A function by name; ISO C has no cast from a data pointer to a function pointer.
static const char *ask(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  const char *(*function)(void);
  memcpy(&function, &symbol, sizeof function);
  const char *answer = symbol ? function() : NULL;
  return answer ? answer : "";
}

int hz_cmd_self_check(int argc, char **argv) {
  (void)argc;
  (void)argv;
  Dl_info library, malloc_place;
  void *version = dlsym(RTLD_DEFAULT, "hakozuna_version");
  void *entry = dlsym(RTLD_DEFAULT, "malloc");
  if (!version || !dladdr(version, &library)) return not_served("the loader did not load it");
  if (!entry || !dladdr(entry, &malloc_place)) return not_served("there is no malloc to be found");
  if (library.dli_fbase != malloc_place.dli_fbase) {
    printf("not served\tmalloc comes from %s, which was loaded before it\n",
           malloc_place.dli_fname);
    return HZ_EXIT_FOUND;
  }
  // The symbol is ours; a block from glibc's heap would mean that the library stepped aside.
  char place[512];
  void *block = malloc(64);
  bool mapped = block && mapping_of(block, place);
  free(block);
  if (!mapped) return not_served("malloc(64) gave no block");
  if (strcmp(place, "[heap]") == 0) return not_served("its malloc hands out glibc's own blocks");
  printf("served\t%s\t%s\t%s\n", library.dli_fname, ask("hakozuna_version"),
         ask("hakozuna_profile"));
  return HZ_EXIT_OK;
}

// ---- The parent ---------------------------------------------------------------------------------

static _Noreturn void become_child(const char *library, int out) {
  char *joined = hz_preload_join(getenv("LD_PRELOAD"), library);
  if (joined) setenv("LD_PRELOAD", joined, 1);
  setenv("HAKOZUNA_STATS", "off", 1); // no report between the lines of the answer
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execl("/proc/self/exe", "hakozuna", "self-check", (char *)NULL);
  dprintf(STDERR_FILENO, "the check could not be started: %s\n", strerror(errno));
  _exit(HZ_EXIT_CANNOT_RUN);
}

static void copy(char *to, size_t bytes, const char *from) {
  hz_format(to, bytes, "%s", from ? from : "");
}

// The answer, or what the loader or the library said instead of it or before it.
static void read_answer(FILE *in, struct hz_self_check *result) {
  char line[2048];
  while (fgets(line, sizeof line, in)) {
    line[strcspn(line, "\n")] = '\0';
    char *rest, *word = strtok_r(line, "\t", &rest);
    if (word && strcmp(word, "served") == 0) {
      result->served = true;
      copy(result->path, sizeof result->path, strtok_r(NULL, "\t", &rest));
      copy(result->version, sizeof result->version, strtok_r(NULL, "\t", &rest));
      copy(result->profile, sizeof result->profile, strtok_r(NULL, "\t", &rest));
    } else if (word && strcmp(word, "not served") == 0 && !result->reason[0]) {
      copy(result->reason, sizeof result->reason, strtok_r(NULL, "\t", &rest));
    } else if (word && !result->reason[0]) {
      copy(result->reason, sizeof result->reason, word);
    }
  }
}

void hz_self_check(const char *library, struct hz_self_check *result) {
  *result = (struct hz_self_check){.served = false};
  int ends[2];
  fflush(NULL);
  pid_t child = pipe(ends) == 0 ? fork() : -1;
  if (child < 0) {
    copy(result->reason, sizeof result->reason, strerror(errno));
    return;
  }
  if (child == 0) become_child(library, ends[1]);
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  if (in) read_answer(in, result);
  if (in) fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  if (result->served || result->reason[0]) return;
  hz_format(result->reason, sizeof result->reason, "the check ended by %s %d without an answer",
            WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}
