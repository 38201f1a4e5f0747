// `hakozuna run`: starts a program under our library, or under another one, and comes back with its
// exit code. What is asked for on the command line is checked before anything starts.
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/allocators.h"
#include "tools/command.h"
#include "tools/find.h"
#include "tools/launch.h"
#include "tools/preload.h"
#include "tools/program.h"
#include "tools/settings.h"
#include "tools/text.h"

struct request {
  const char *profile, *config, *stats, *allocator; // NULL: not given
  char *options;                                    // "a.b=c,d.e=f" or NULL
  char **command;
};

// What the request adds to the program's environment, NULL-terminated.
struct additions {
  char *entries[5];
  size_t count;
};

static const struct argp_option options[] = {
    {"profile", 'p', "NAME", 0, "Profile to run under (see `hakozuna profiles`)", 0},
    {"config", 'c', "FILE", 0, "Configuration file to read instead of the usual ones", 0},
    {"stats", 's', "WHAT", OPTION_ARG_OPTIONAL,
     "Report at exit: text (the default), json, text:PATH or json:PATH; in PATH, %p stands for the "
     "process id, %e for the program",
     0},
    {"option", 'o', "SECTION.KEY=VALUE", 0, "Set an option; may be given again", 0},
    {"allocator", 'a', "WHICH", 0,
     "Another allocator, to compare with: system (nothing is preloaded), jemalloc, tcmalloc, "
     "mimalloc, mimalloc3, snmalloc, tcmalloc-google, or the path of a library",
     0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct request *request = state->input;
  switch (key) {
  case 'p':
    request->profile = argument;
    return 0;
  case 'c':
    request->config = argument;
    return 0;
  case 's':
    request->stats = argument ? argument : "text";
    return 0;
  case 'a':
    request->allocator = argument;
    return 0;
  case 'o':
    request->options =
        request->options ? hz_text("%s,%s", request->options, argument) : hz_text("%s", argument);
    return 0;
  case ARGP_KEY_ARG: // the program; what follows is its own
    request->command = &state->argv[state->next - 1];
    state->next = state->argc;
    return 0;
  case ARGP_KEY_NO_ARGS:
    argp_error(state, "no program is given to run");
    return EINVAL;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

// The library may write its report after the program has changed its folder.
static char *stats_setting(const char *stats) {
  const char *path = strchr(stats, ':');
  if (!path || path[1] == '/' || path[1] == '\0') return hz_text("HAKOZUNA_STATS=%s", stats);
  char folder[PATH_MAX] = "";
  if (!getcwd(folder, sizeof folder)) return hz_text("HAKOZUNA_STATS=%s", stats);
  return hz_text("HAKOZUNA_STATS=%.*s:%s/%s", (int)(path - stats), stats, folder, path + 1);
}

// Turns the request into variables. Returns an exit code.
static int gather(const struct request *request, struct additions *additions) {
  char file[PATH_MAX] = "/dev/null"; // for the check below: the usual files are not in question
  if (request->config) {
    int failed = hz_readable_file("--config", request->config, file);
    if (failed) return failed;
  }
  additions->entries[additions->count++] = hz_text("HAKOZUNA_CONFIG=%s", file);
  struct hz_found_profile found;
  if (request->profile && !hz_profile_find(request->profile, &found)) return HZ_EXIT_CONFIG;
  if (request->profile)
    additions->entries[additions->count++] = hz_text("HAKOZUNA_PROFILE=%s", request->profile);
  if (request->stats) additions->entries[additions->count++] = stats_setting(request->stats);
  if (request->options)
    additions->entries[additions->count++] = hz_text("HAKOZUNA_OPTIONS=%s", request->options);
  return HZ_EXIT_OK;
}

// Whether the command line's own settings are right. Problems elsewhere (a system-wide file) are
// left to the library, which tells them and goes on: they must not keep a service from starting.
static int check(const struct additions *additions, const char *program) {
  struct hz_config_input input = hz_settings_input();
  struct hz_config config;
  input.environment = (const char *const *)additions->entries;
  input.program = program;
  hz_config_load(&input, &config);
  if (config.problems == 0) return HZ_EXIT_OK;
  hz_log("%s was not started; correct what the line above names.", program);
  return HZ_EXIT_CONFIG;
}

// The entries stay part of the environment and are never freed.
static void set(const struct request *request, const struct additions *additions) {
  // Options add up: those of the command line come last and win.
  const char *before = getenv("HAKOZUNA_OPTIONS");
  char *joined = NULL;
  if (request->options && before && *before)
    joined = hz_text("HAKOZUNA_OPTIONS=%s,%s", before, request->options);
  for (size_t i = request->config ? 0 : 1; i < additions->count; i++) putenv(additions->entries[i]);
  if (joined) putenv(joined);
}

// One line where the loader will not load the library: nobody else would tell.
static void warn_if_not_loaded(const char *path, const char *library) {
  struct hz_findings findings = {.count = 0};
  hz_program_check(path, HZ_PROGRAM_LOADING, &findings);
  for (size_t i = 0; i < findings.count; i++) {
    const struct hz_finding *row = &findings.rows[i];
    if (row->verdict != HZ_WRONG) continue;
    hz_log("%s, so it runs without %s. %s", row->found, library, row->advice);
    return;
  }
}

static int preload(const char *path, const char *library) {
  char *joined = hz_preload_join(getenv("LD_PRELOAD"), library);
  if (!joined || setenv("LD_PRELOAD", joined, 1) != 0) {
    hz_log("out of memory.");
    return HZ_EXIT_SYSTEM;
  }
  free(joined);
  warn_if_not_loaded(path, library);
  return HZ_EXIT_OK;
}

static int prepare_ours(const struct request *request, const char *path) {
  struct additions additions = {.count = 0};
  char library[PATH_MAX];
  const char *slash = strrchr(path, '/');
  int failed = gather(request, &additions);
  if (!failed) failed = check(&additions, slash ? slash + 1 : path);
  if (!failed) failed = hz_library_require(library);
  if (!failed) failed = hz_library_check(library);
  if (failed) return failed;
  set(request, &additions);
  return preload(path, library);
}

static int prepare_other(const struct request *request, const char *path) {
  char library[PATH_MAX];
  if (request->profile || request->config || request->stats || request->options) {
    hz_log("--profile, --config, --stats and --option are for hakozuna's own library; with "
           "--allocator %s it is not loaded, so nothing would read them. Leave one side out.",
           request->allocator);
    return HZ_EXIT_USAGE;
  }
  if (strcmp(request->allocator, "system") != 0) {
    int failed = hz_allocator_locate("--allocator", request->allocator, library);
    return failed ? failed : preload(path, library);
  }
  if (hz_preload_allocator(getenv("LD_PRELOAD"), library))
    hz_log("LD_PRELOAD names %s already, which serves the program instead of the system's "
           "allocator. Unset it to measure the system's.",
           library);
  return HZ_EXIT_OK;
}

// As shells say it. Returns an exit code.
static int find_program(const char *name, char *path) {
  int state = hz_program_find(name, path);
  if (state == HZ_EXIT_NOT_FOUND)
    hz_log("%s: there is no such program%s.", name, strchr(name, '/') ? "" : " in PATH");
  if (state == HZ_EXIT_CANNOT_RUN) hz_log("%s: cannot be executed: %m.", name);
  return state;
}

int hz_cmd_run(int argc, char **argv) {
  static const struct argp parser = {
      .options = options,
      .parser = parse,
      .args_doc = "[--] PROGRAM [ARG...]",
      .doc = "Runs a program under the allocator library and returns its exit code."
             "\vThe library goes into LD_PRELOAD behind what watches allocations (heaptrack, a "
             "sanitizer) and before other allocators; what was there stays.\n\n" HZ_EXIT_CODES_DOC};
  struct request request = {.profile = NULL};
  char path[PATH_MAX];
  if (argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &request)) return HZ_EXIT_USAGE;
  int failed = find_program(request.command[0], path);
  if (!failed)
    failed = request.allocator ? prepare_other(&request, path) : prepare_ours(&request, path);
  return failed ? failed : hz_launch(path, request.command);
}
