// `hakozuna doctor`: one row per thing that can keep the library from serving a program, each with
// what to do about it. The checks are in system.c and program.c; here they are put together.
#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/version.h"
#include "tools/command.h"
#include "tools/elf_file.h"
#include "tools/find.h"
#include "tools/findings.h"
#include "tools/program.h"
#include "tools/self_check.h"
#include "tools/settings.h"
#include "tools/system.h"

struct request {
  const char *program; // NULL: none
  bool json;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct request *request = state->input;
  switch (key) {
  case 'j':
    request->json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (request->program) argp_error(state, "one PROGRAM at most, \"%s\" is a second", argument);
    request->program = argument;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static void check_takeover(const char *library, struct hz_findings *findings) {
  struct hz_self_check child;
  hz_self_check(library, &child);
  if (!child.served) {
    hz_found(findings, HZ_WRONG, "takes over",
             "Look at LD_PRELOAD and at the rows below; the library must come before any other "
             "allocator.",
             "no: %s", child.reason);
    return;
  }
  hz_found(findings, HZ_OK, "takes over", NULL, "a child's malloc is served by profile %s",
           child.profile);
  if (strcmp(child.version, HZ_VERSION) != 0)
    hz_found(findings, HZ_NOTE, "version", "Install both from the same build.",
             "the library is %s, this command %s", child.version, HZ_VERSION);
}

static void check_library(struct hz_findings *findings) {
  char path[PATH_MAX];
  if (!hz_library_find(path)) {
    hz_found(findings, HZ_WRONG, "library",
             "Build it with `./hakozuna` in a checkout, or install it beside this command.",
             "libhakozuna.so is missing; looked in %s", path);
    return;
  }
  struct hz_elf_file file;
  enum hz_elf_state state = hz_elf_open(&file, path);
  bool loadable = state == HZ_ELF_READ && file.machine == hz_elf_own_machine();
  if (loadable)
    hz_found(findings, HZ_OK, "library", NULL, "%s, 64 bits, %s", path,
             hz_elf_machine_name(file.machine));
  else
    hz_found(findings, HZ_WRONG, "library", "Build or install it again.",
             "%s is no whole 64-bit library for this machine", path);
  hz_elf_close(&file);
  if (strpbrk(path, " :"))
    hz_found(findings, HZ_WRONG, "library", "Move it to a folder without.",
             "its path has a space or a colon, which LD_PRELOAD cannot hold");
  else if (loadable) check_takeover(path, findings);
}

enum { PROBLEMS_SHOWN = 10 };

struct problems {
  struct hz_findings *findings;
  unsigned count;
};

static void add_problem(void *context, const char *sentence) {
  struct problems *problems = context;
  if (problems->count++ < PROBLEMS_SHOWN)
    hz_found(problems->findings, HZ_WRONG, "configuration",
             "`hakozuna config check` lists all problems; the library goes on without them.", "%s",
             sentence);
}

static void check_configuration(struct hz_findings *findings) {
  struct hz_config_input input = hz_settings_input();
  struct hz_config config;
  struct problems problems = {findings, 0};
  input.problem = add_problem;
  input.context = &problems;
  hz_config_load(&input, &config);
  if (config.problems == 0)
    hz_found(findings, HZ_OK, "configuration", NULL, "profile %s (%s), file: %s",
             config.profile->profile->name, config.profile_source,
             config.file[0] ? config.file : "none");
}

int hz_cmd_doctor(int argc, char **argv) {
  static const struct argp parser = {
      .options = options,
      .parser = parse,
      .args_doc = "[PROGRAM]",
      .doc = "Finds out whether the library works here, and what keeps it from serving PROGRAM. "
             "PROGRAM is read, not run."
             "\v" HZ_EXIT_CODES_DOC};
  static struct hz_findings findings;
  struct request request = {.program = NULL};
  if (argp_parse(&parser, argc, argv, 0, NULL, &request)) return HZ_EXIT_USAGE;
  char path[PATH_MAX];
  int missing = request.program ? hz_program_find(request.program, path) : HZ_EXIT_OK;
  if (missing) {
    hz_log("%s: %m; name a program to look at, or none.", request.program);
    return missing;
  }
  check_library(&findings);
  check_configuration(&findings);
  hz_system_check(&findings);
  if (request.program) hz_program_check(path, HZ_PROGRAM_WHOLE, &findings);
  if (request.json) hz_findings_print_json(&findings, stdout);
  else hz_findings_print(&findings, stdout);
  return hz_findings_wrong(&findings) ? HZ_EXIT_FOUND : HZ_EXIT_OK;
}
