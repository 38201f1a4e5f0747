// One function per row of `doctor` about the system; hz_system_check at the end is the list.
#include "tools/system.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/allocators.h"
#include "tools/preload.h"
#include "tools/print.h"

// The first line of a file without its newline. False: not readable, or empty.
static bool read_line(const char *path, char *line, int bytes) {
  FILE *file = fopen(path, "re");
  bool read = file && fgets(line, bytes, file);
  if (file) fclose(file);
  if (read) line[strcspn(line, "\n")] = '\0';
  return read;
}

// The number behind "name:" in /proc/self/status; -1: not there.
static long status_number(const char *name) {
  char line[256];
  long number = -1;
  FILE *file = fopen("/proc/self/status", "re");
  while (file && fgets(line, sizeof line, file)) {
    size_t length = strlen(name);
    if (strncmp(line, name, length) == 0 && line[length] == ':') number = atol(line + length + 1);
  }
  if (file) fclose(file);
  return number;
}

static void size_text(uint64_t bytes, char *text, size_t room) {
  if (bytes >= HZ_GIB) hz_format(text, room, "%.1f GiB", (double)bytes / (double)HZ_GIB);
  else hz_format(text, room, "%.1f MiB", (double)bytes / (double)HZ_MIB);
}

static void check_versions(struct hz_findings *findings) {
  struct utsname system;
  uname(&system);
  hz_found(findings, HZ_OK, "kernel", NULL, "%s %s, %s", system.sysname, system.release,
           system.machine);
  hz_found(findings, HZ_OK, "C library", NULL, "glibc %s", gnu_get_libc_version());
}

static void check_overcommit(struct hz_findings *findings) {
  static const char *const modes[] = {"heuristic", "always granted"};
  char mode[16];
  if (!read_line("/proc/sys/vm/overcommit_memory", mode, sizeof mode)) return;
  unsigned number = (unsigned)atoi(mode);
  if (number < hz_count_of(modes))
    hz_found(findings, HZ_OK, "overcommit", NULL, "%u (%s)", number, modes[number]);
  else
    hz_found(findings, HZ_NOTE, "overcommit",
             "Memory counts against the limit as soon as it may be written to; malloc fails with "
             "ENOMEM at CommitLimit of /proc/meminfo.",
             "%u (strict accounting)", number);
}

static void check_huge_pages(struct hz_findings *findings) {
  char modes[64];
  if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", modes, sizeof modes)) return;
  if (strstr(modes, "[always]"))
    hz_found(findings, HZ_NOTE, "huge pages",
             "Sparse heaps of any allocator may hold more memory than they use. If RSS matters "
             "more than speed: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
             "transparent ones: %s", modes);
  else hz_found(findings, HZ_OK, "huge pages", NULL, "transparent ones: %s", modes);
}

static void check_limit(struct hz_findings *findings, const char *name, int resource,
                        const char *advice) {
  struct rlimit limit;
  if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return;
  char text[32];
  size_text(limit.rlim_cur, text, sizeof text);
  if (limit.rlim_cur == RLIM_INFINITY) hz_found(findings, HZ_OK, name, NULL, "unlimited");
  else hz_found(findings, HZ_NOTE, name, advice, "limited to %s", text);
}

static void check_maps(struct hz_findings *findings) {
  enum { KERNEL_DEFAULT = 65530 }; // include/linux/mm.h: DEFAULT_MAX_MAP_COUNT
  char text[32];
  if (!read_line("/proc/sys/vm/max_map_count", text, sizeof text)) return;
  bool usual = atol(text) >= KERNEL_DEFAULT;
  hz_found(findings, usual ? HZ_OK : HZ_NOTE, "max_map_count",
           usual ? NULL
                 : "Programs with very many large blocks may be refused memory early; the "
                   "kernel's default is 65530.",
           "%s", text);
}

// The smallest memory.max from our group up to the root (cgroup v2), or the v1 limit.
// UINT64_MAX: none.
static uint64_t cgroup_limit(void) {
  char group[PATH_MAX] = "", path[2 * PATH_MAX], line[64];
  uint64_t limit = UINT64_MAX;
  bool unified = read_line("/proc/self/cgroup", group, sizeof group) && !strncmp(group, "0::/", 4);
  char *folder = unified ? group + 3 : group + strlen(group);
  for (;;) {
    hz_format(path, sizeof path, "/sys/fs/cgroup%s/memory.max", folder);
    if (read_line(path, line, sizeof line) && line[0] >= '0' && line[0] <= '9')
      limit = hz_min(limit, strtoull(line, NULL, 10));
    char *slash = strrchr(folder, '/');
    if (!slash) break;
    *slash = '\0';
  }
  if (read_line("/sys/fs/cgroup/memory/memory.limit_in_bytes", line, sizeof line)) {
    uint64_t old = strtoull(line, NULL, 10);
    if (old < (uint64_t)1 << 60) limit = hz_min(limit, old); // v1 writes a huge number for "none"
  }
  return limit;
}

static void check_cgroup(struct hz_findings *findings) {
  uint64_t limit = cgroup_limit();
  char text[32];
  size_text(limit, text, sizeof text);
  if (limit == UINT64_MAX) hz_found(findings, HZ_OK, "memory limit", NULL, "none by a cgroup");
  else hz_found(findings, HZ_OK, "memory limit", NULL, "%s by a cgroup", text);
}

static void check_seccomp(struct hz_findings *findings) {
  long mode = status_number("Seccomp");
  if (mode < 0) return;
  if (mode == 0) hz_found(findings, HZ_OK, "seccomp", NULL, "no filter");
  else
    hz_found(findings, HZ_NOTE, "seccomp",
             "After its start the library needs mmap, munmap, mprotect, madvise, mremap, futex, "
             "getpid, clock_gettime and write; refused calls cost memory, not correctness.",
             "a filter is active (mode %ld)", mode);
}

static void check_tracer(struct hz_findings *findings) {
  long tracer = status_number("TracerPid");
  if (tracer > 0)
    hz_found(findings, HZ_NOTE, "tracer", "It sees every system call and changes all timings.",
             "process %ld traces this one (strace, gdb, ...)", tracer);
  else hz_found(findings, HZ_OK, "tracer", NULL, "none");
}

static void check_preload(struct hz_findings *findings) {
  static const char advice[] = "`hakozuna run` puts its library before other allocators and behind "
                               "everything else, and keeps what is there.";
  const char *value = getenv("LD_PRELOAD");
  char entry[PATH_MAX], line[PATH_MAX];
  if (!value || !*value) hz_found(findings, HZ_OK, "LD_PRELOAD", NULL, "not set");
  else if (hz_preload_allocator(value, entry))
    hz_found(findings, HZ_NOTE, "LD_PRELOAD", advice, "it names an allocator already: %s", entry);
  else hz_found(findings, HZ_NOTE, "LD_PRELOAD", advice, "it is set already: %s", value);
  if (read_line("/etc/ld.so.preload", line, sizeof line))
    hz_found(findings, HZ_NOTE, "ld.so.preload",
             "What is named there is loaded into every program, behind LD_PRELOAD.",
             "/etc/ld.so.preload names %s", line);
}

// Settings for other allocators, which people set once and forget.
static void check_environment(struct hz_findings *findings) {
  static const char *const names[] = {"MALLOC_ARENA_MAX",       "MALLOC_CONF",     "GLIBC_TUNABLES",
                                      "MALLOC_TRIM_THRESHOLD_", "MALLOC_PERTURB_", "MALLOC_CHECK_"};
  for (size_t i = 0; i < hz_count_of(names); i++) {
    const char *value = getenv(names[i]);
    if (!value || (i == 2 && !strstr(value, "glibc.malloc"))) continue;
    hz_found(findings, HZ_NOTE, "environment",
             "It tunes another allocator and has no effect under this library.", "%s=%s", names[i],
             value);
  }
}

static void check_secure(struct hz_findings *findings) {
  if (getauxval(AT_SECURE))
    hz_found(findings, HZ_WRONG, "privileges", "Run it without set-id bits and file capabilities.",
             "this command itself runs in secure mode, where LD_PRELOAD is ignored");
}

void hz_system_check(struct hz_findings *findings) {
  check_versions(findings);
  check_overcommit(findings);
  check_huge_pages(findings);
  check_limit(findings, "address space", RLIMIT_AS,
              "The library reserves less of it than usual (arena.reserve is halved until it fits); "
              "memory ends at the limit as with any allocator.");
  check_limit(findings, "data size", RLIMIT_DATA,
              "It counts what the library makes writable, as it counts the heap of any allocator.");
  check_maps(findings);
  check_cgroup(findings);
  check_seccomp(findings);
  check_tracer(findings);
  check_preload(findings);
  check_environment(findings);
  check_secure(findings);
}
