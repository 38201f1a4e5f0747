// From the first call to a published table: see dispatch/start.h.
//
// Runs inside somebody's malloc, mostly before any constructor: no allocation, no stdio, no dlsym.
#include "dispatch/start.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "config/options.h"
#include "core/core.h"
#include "core/log.h"
#include "core/misuse.h"
#include "core/os.h"
#include "core/plain.h"
#include "dispatch/active.h"
#include "dispatch/aside.h"
#include "dispatch/boot.h"
#include "dispatch/exact.h"
#include "dispatch/fork.h"
#include "dispatch/registry.h"
#include "dispatch/rules.h"

enum { EXIT_NO_MEMORY = 71, EXIT_CONFIG = 78 }; // EX_OSERR and EX_CONFIG of sysexits.h
enum { MAX_GROUPS = 16, MAX_PROFILES = 64 };

struct hz_process hz_process = {.program = "?"};

uint64_t hz_now_ns(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// ---- Who we are ---------------------------------------------------------------------------------

// The name it was called by: /usr/bin/redis-server, not what the symbolic link leads to. A program
// that was executed through a descriptor has only the link's name.
static const char *program_name(void) {
  static char link[HZ_PATH_BYTES];
  const char *called = (const char *)getauxval(AT_EXECFN);
  if (called != NULL && !hz_plain_begins(called, "/dev/fd/") && !hz_plain_begins(called, "/proc/"))
    return hz_plain_last_part(called);
  const ssize_t length = readlink("/proc/self/exe", link, sizeof link - 1);
  return length > 0 ? hz_plain_last_part(link) : "?";
}

// ---- Configuration ------------------------------------------------------------------------------

static void load_config(void) {
  static struct hz_option_group groups[MAX_GROUPS];
  static struct hz_profile_entry profiles[MAX_PROFILES];
  struct hz_config_input input = {
      .environment = (const char *const *)environ,
      .program = hz_process.program,
      .secure = getauxval(AT_SECURE) != 0,
      .groups = groups,
      .profiles = profiles,
  };
  groups[input.group_count++] = hz_common_options;
  for (size_t i = 0; i < hz_line_catalog_count; i++) {
    const struct hz_line_info *info = hz_line_catalog[i];
    HZ_CHECK(input.group_count < MAX_GROUPS);
    HZ_CHECK(input.profile_count + info->profile_count <= MAX_PROFILES);
    groups[input.group_count++] = (struct hz_option_group){info->options, info->option_count};
    for (size_t k = 0; k < info->profile_count; k++)
      profiles[input.profile_count++] =
          (struct hz_profile_entry){.line = info->name, .profile = &info->profiles[k]};
  }
  hz_config_load(&input, &hz_process.config);
}

static void obey_strict(void) {
  const struct hz_config *config = &hz_process.config;
  if (!config->strict || config->problems == 0) return;
  hz_log("%s does not start: the configuration has %u problem%s and HAKOZUNA_STRICT is set",
         hz_process.program, config->problems, config->problems == 1 ? "" : "s");
  _exit(EXIT_CONFIG);
}

// ---- The line -----------------------------------------------------------------------------------

static bool start_line(const struct hz_line *line) {
  const struct hz_core_options core = {
      .reserve_bytes = hz_common.arena_reserve,
      .purge_idle_ms = hz_common.purge_idle_ms,
      .run_cache_bytes = hz_common.cache_run_bytes,
      .run_batch = (unsigned)hz_common.cache_run_batch,
      .run_transfer = hz_common.cache_run_transfer,
      .large_cache_bytes = hz_common.cache_large_bytes,
  };
  hz_misuse_action = (int)hz_common.on_misuse;
  hz_misuse_profile(hz_process.config.profile->profile->name);
  return hz_core_start(&core) && line->start();
}

static void publish(const struct hz_line *line) {
  hz_process.options[0] = hz_common_options;
  hz_process.options[1] = (struct hz_option_group){line->info->options, line->info->option_count};
  hz_process.line = line;
  const struct hz_table *table = hz_line_table(line);
  hz_active_publish(hz_common.stats_exact ? hz_exact_start(table) : table, &hz_rules);
}

static void step_aside(void) {
  if (hz_step_aside()) return;
  hz_log("no memory, and no other allocator to leave it to");
  _exit(EXIT_NO_MEMORY);
}

// The neighbours come first: where a sanitizer is starting, no function of libc may be called.
void hz_start(void) {
  const int saved = errno;
  hz_os_start();
  hz_neighbours_read(&hz_process.neighbours);
  if (hz_process.neighbours.aside != HZ_ASIDE_NO) {
    step_aside();
    return;
  }
  hz_process.start_ns = hz_now_ns();
  hz_process.program = program_name();
  load_config();
  obey_strict();
  const struct hz_line *line = hz_line_named(hz_process.config.profile->line);
  if (start_line(line)) {
    publish(line);
    hz_fork_start();
  } else {
    hz_process.neighbours.aside = HZ_ASIDE_NO_MEMORY;
    step_aside();
  }
  errno = saved;
}

void hz_process_begin(void) {
  if (hz_process.neighbours.aside == HZ_ASIDE_NO) return;
  hz_aside_explain(program_name(), &hz_process.neighbours);
}

const char *hz_process_profile(void) {
  hz_boot();
  return hz_process.line != NULL ? hz_process.config.profile->profile->name : "none";
}
