// Each check answers one question with one row. `doctor CMD` prints them all; `run` prints those
// that say the library will not be used.
#include "tools/program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/allocators.h"
#include "tools/command.h"
#include "tools/elf_file.h"
#include "tools/find.h"
#include "tools/print.h"

enum { SCRIPT_DEPTH = 4 }; // the kernel's own limit on scripts run by scripts (fs/exec.c)

// ld.so ignores LD_PRELOAD where AT_SECURE is set: where running the file raises privileges.
static void check_privileges(const char *path, struct hz_findings *findings) {
  static const char advice[] =
      "The dynamic loader ignores LD_PRELOAD here. Put the library's path into /etc/ld.so.preload, "
      "or give the service its rights in another way (systemd: AmbientCapabilities=).";
  struct stat status;
  if (stat(path, &status) != 0) return;
  bool user = (status.st_mode & S_ISUID) && status.st_uid != getuid();
  // Without the group's execute bit S_ISGID means something else (mandatory locks).
  bool group =
      (status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid();
  bool capabilities = getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
  if (user || group)
    hz_found(findings, HZ_WRONG, "privileges", advice, "%s is set%s: it runs with another identity",
             path, user ? "uid" : "gid");
  else if (capabilities)
    hz_found(findings, HZ_WRONG, "privileges", advice, "%s has file capabilities", path);
  else hz_found(findings, HZ_OK, "privileges", NULL, "none are raised by running it");
}

static void check_linkage(const char *path, const struct hz_elf_file *file,
                          struct hz_findings *findings) {
  if (!file->interpreter)
    hz_found(
        findings, HZ_WRONG, "linkage",
        "Nothing can be preloaded into it. Link it dynamically, or link the allocator into it.",
        "%s is statically linked", path);
  else if (strstr(file->interpreter, "ld-musl"))
    hz_found(findings, HZ_WRONG, "linkage",
             "The library needs glibc. Use a build of the program for glibc.",
             "%s is linked against musl (%s)", path, file->interpreter);
  else if (access(file->interpreter, X_OK) != 0)
    hz_found(findings, HZ_WRONG, "linkage", "Install the C library that the program was built for.",
             "%s asks for the loader %s, which is not here", path, file->interpreter);
  else hz_found(findings, HZ_OK, "linkage", NULL, "dynamic, by %s", file->interpreter);
  if (file->go)
    hz_found(findings, HZ_NOTE, "language", "The library serves its C code alone (cgo).",
             "%s is a Go program: Go code has its own heap", path);
}

static const char *first_defined(const struct hz_elf_file *file, const char *const *names) {
  for (; *names; names++)
    if (hz_elf_defines(file, *names)) return *names;
  return NULL;
}

static const char *first_imported(const struct hz_elf_file *file, const char *const *names) {
  for (; *names; names++)
    if (hz_elf_imports(file, *names)) return *names;
  return NULL;
}

static const char *first_needed(const struct hz_elf_file *file, const char *const *prefixes) {
  for (; *prefixes; prefixes++) {
    const char *name;
    for (size_t i = 0; (name = hz_elf_needed(file, i)); i++)
      if (strncmp(name, *prefixes, strlen(*prefixes)) == 0) return name;
  }
  return NULL;
}

static const char aside[] = "The library steps aside in it and says so in one line; the program "
                            "keeps the allocator that it brings.";

// Sanitizers and allocators inside the executable: the library leaves the program to them.
static bool check_own_allocator(const char *path, const struct hz_elf_file *file,
                                struct hz_findings *findings) {
  static const char *const sanitizers[] = {"__asan_init",   "__tsan_init", "__msan_init",
                                           "__hwasan_init", "__lsan_init", NULL};
  static const char *const runtimes[] = {"libasan.so", "libtsan.so",  "libhwasan.so",
                                         "liblsan.so", "libclang_rt", NULL};
  static const char *const names[] = {"malloc", NULL};
  const char *found = first_defined(file, sanitizers);
  if (!found) found = first_imported(file, sanitizers);
  if (!found) found = first_needed(file, runtimes);
  if (found) {
    hz_found(findings, HZ_WRONG, "allocator", aside, "%s is built with a sanitizer (%s)", path,
             found);
    return true;
  }
  found = first_defined(file, names);
  if (found) hz_found(findings, HZ_WRONG, "allocator", aside, "%s defines %s itself", path, found);
  return found != NULL;
}

// Libraries that bring malloc are replaced; functions of theirs whose blocks our free would get, or
// the other way round, are not.
static void check_allocator(const char *path, const struct hz_elf_file *file,
                            struct hz_findings *findings) {
  static const char *const foreign[] = {
      "mallocx",   "rallocx",   "xallocx", "sallocx",   "dallocx",     "sdallocx",
      "je_malloc", "je_calloc", "je_free", "tc_malloc", "tc_free",     "tc_new",
      "mi_malloc", "mi_calloc", "mi_free", "mi_new",    "mi_heap_new", NULL};
  if (check_own_allocator(path, file, findings)) return;
  const char *found = first_imported(file, foreign);
  if (found) {
    hz_found(findings, HZ_WRONG, "allocator", aside,
             "%s uses functions of one particular allocator (%s)", path, found);
    return;
  }
  const char *name;
  for (size_t i = 0; (name = hz_elf_needed(file, i)); i++) {
    const struct hz_allocator *other = hz_allocator_of(name);
    if (!other) continue;
    hz_found(findings, HZ_NOTE, "allocator", "The preloaded library takes its place.",
             "%s is linked with %s (%s)", path, other->name, name);
    return;
  }
  hz_found(findings, HZ_OK, "allocator", NULL, "the C library's, which can be replaced");
}

static void check_elf(const char *path, enum hz_program_question question,
                      struct hz_findings *findings) {
  struct hz_elf_file file;
  enum hz_elf_state state = hz_elf_open(&file, path);
  bool native = state == HZ_ELF_READ && file.machine == hz_elf_own_machine();
  if (native) {
    hz_found(findings, HZ_OK, "program", NULL, "%s, 64 bits, %s", path,
             hz_elf_machine_name(file.machine));
    check_linkage(path, &file, findings);
    if (question == HZ_PROGRAM_WHOLE && file.interpreter) check_allocator(path, &file, findings);
  } else if (state == HZ_ELF_READ || state == HZ_ELF_OTHER) {
    hz_found(findings, HZ_WRONG, "program", "The library is for 64-bit programs of this machine.",
             "%s is a program of %u bits for %s", path, file.bits,
             hz_elf_machine_name(file.machine));
  } else if (state == HZ_ELF_NO_FILE) {
    hz_found(findings, HZ_NOTE, "program", "Without reading the file nothing more can be said.",
             "%s cannot be read: %s", path, strerror(errno));
  } else {
    hz_found(findings, HZ_WRONG, "program", "Reinstall or rebuild it.", "%s is %s", path,
             state == HZ_ELF_NONE ? "a script of scripts, too deep for the kernel"
                                  : "a damaged ELF file");
  }
  hz_elf_close(&file);
}

// The program that runs a script: the word after "#!", or after "env" what PATH has for the next
// word. interpreter: PATH_MAX bytes. False: not a script.
static bool script_interpreter(const char *path, char *interpreter) {
  char line[256] = ""; // as much as the kernel reads (BINPRM_BUF_SIZE)
  FILE *file = fopen(path, "re");
  bool script = file && fgets(line, sizeof line, file) && line[0] == '#' && line[1] == '!';
  if (file) fclose(file);
  if (!script) return false;
  char *rest, *word = strtok_r(line + 2, " \t\n", &rest);
  if (!word) return false;
  hz_format(interpreter, PATH_MAX, "%s", word);
  const char *slash = strrchr(word, '/');
  if (strcmp(slash ? slash + 1 : word, "env") != 0) return true;
  do word = strtok_r(NULL, " \t\n", &rest);
  while (word && (word[0] == '-' || strchr(word, '=')));
  if (word) hz_program_find(word, interpreter);
  return true;
}

// As shells and execvp(3) do: what the kernel does not know is taken for a shell script.
static bool is_bare_script(const char *path) {
  struct hz_elf_file file;
  bool bare = hz_elf_open(&file, path) == HZ_ELF_NONE;
  hz_elf_close(&file);
  return bare;
}

void hz_program_check(const char *path, enum hz_program_question question,
                      struct hz_findings *findings) {
  char program[PATH_MAX], interpreter[PATH_MAX] = "/bin/sh";
  hz_format(program, sizeof program, "%s", path);
  for (unsigned depth = 0; depth < SCRIPT_DEPTH; depth++) {
    if (!script_interpreter(program, interpreter) && !is_bare_script(program)) break;
    hz_found(findings, HZ_OK, "script", NULL, "%s is run by %s", program, interpreter);
    memcpy(program, interpreter, sizeof program);
  }
  check_privileges(program, findings);
  check_elf(program, question, findings);
}
