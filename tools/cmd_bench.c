// `hakozuna bench`: runs a script of a checkout's folder bench with the library that this command
// would preload. The scripts measure and print; this file only finds them.
#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/command.h"
#include "tools/find.h"
#include "tools/launch.h"
#include "tools/print.h"

// Goes up from `folder` (PATH_MAX bytes, changed) to the first one that is a checkout.
static bool find_checkout(char *folder) {
  for (;;) {
    char mark[PATH_MAX + 32], scripts[PATH_MAX + 32];
    hz_format(mark, sizeof mark, "%s/WORKSPACE", folder);
    hz_format(scripts, sizeof scripts, "%s/bench/common.sh", folder);
    if (access(mark, R_OK) == 0 && access(scripts, R_OK) == 0) return true;
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = '\0';
  }
}

// From here upwards, else from this executable upwards: Bazel builds it inside the checkout's tree.
static bool locate(char *folder) {
  if (getcwd(folder, PATH_MAX) && find_checkout(folder)) return true;
  return realpath("/proc/self/exe", folder) && find_checkout(folder);
}

// A script's help is the comment that it begins with.
static int print_comment(const char *script) {
  char line[256];
  FILE *in = fopen(script, "re");
  if (!in) {
    hz_log("%s: %m.", script);
    return HZ_EXIT_NO_FILE;
  }
  while (fgets(line, sizeof line, in) && line[0] == '#')
    if (line[1] != '!') fputs(line[1] == ' ' ? line + 2 : line + 1, stdout);
  fclose(in);
  return HZ_EXIT_OK;
}

static int run_script(const char *name, char **argv) {
  char folder[PATH_MAX], script[2 * PATH_MAX], library[PATH_MAX], self[PATH_MAX];
  if (!locate(folder)) {
    hz_log("there is no checkout here; `hakozuna bench` runs the scripts of its folder bench. Go "
           "to a checkout and start it there.");
    return HZ_EXIT_NO_FILE;
  }
  hz_format(script, sizeof script, "%s/bench/%s.sh", folder, name);
  if (argv[1] && strcmp(argv[1], "--help") == 0) return print_comment(script);
  int failed = hz_library_require(library);
  if (failed) return failed;
  // What the caller has set counts.
  setenv("HAKOZUNA_LIB", library, 0);
  if (realpath("/proc/self/exe", self)) setenv("HAKOZUNA_CLI", self, 0);
  argv[0] = script;
  return hz_launch(script, argv);
}

static int cmd_budgets(int argc, char **argv) {
  (void)argc;
  return run_script("budgets", argv);
}

static int cmd_lanes(int argc, char **argv) {
  (void)argc;
  return run_script("lanes", argv);
}

int hz_cmd_bench(int argc, char **argv) {
  static const struct hz_command commands[] = {
      {"budgets", "measure what the library promises to stay under", cmd_budgets},
      {"lanes", "time threads that free each other's blocks, under every allocator", cmd_lanes},
  };
  return hz_command_dispatch(commands, hz_count_of(commands), "hakozuna bench",
                             "Runs the measurements of a checkout; their arguments follow.", argc,
                             argv);
}
