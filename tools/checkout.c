#include "tools/checkout.h"

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
static bool climb(char *folder) {
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

// The executable's way up leads there because Bazel builds it inside the checkout's tree.
int hz_checkout_find(char *folder) {
  if (getcwd(folder, PATH_MAX) && climb(folder)) return HZ_EXIT_OK;
  if (realpath("/proc/self/exe", folder) && climb(folder)) return HZ_EXIT_OK;
  hz_log("there is no checkout here; `hakozuna bench` runs the programs of its folder bench. Go to "
         "a checkout and start it there.");
  return HZ_EXIT_NO_FILE;
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

int hz_checkout_run_script(const char *name, char **argv) {
  char folder[PATH_MAX], script[2 * PATH_MAX], library[PATH_MAX], self[PATH_MAX];
  int failed = hz_checkout_find(folder);
  if (failed) return failed;
  hz_format(script, sizeof script, "%s/bench/%s.sh", folder, name);
  if (argv[1] && strcmp(argv[1], "--help") == 0) return print_comment(script);
  failed = hz_library_require(library);
  if (failed) return failed;
  // What the caller has set counts.
  setenv("HAKOZUNA_LIB", library, 0);
  if (realpath("/proc/self/exe", self)) setenv("HAKOZUNA_CLI", self, 0);
  argv[0] = script;
  return hz_launch(script, argv);
}
