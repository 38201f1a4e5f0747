#include "tools/bench/machine.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/version.h"
#include "tools/print.h"
#include "tools/text.h"

// The text behind "KEY<blanks>:" in the first line of a file that begins so; "" where there is none.
static void read_field(const char *path, const char *key, char *value, size_t bytes) {
  char line[512];
  *value = '\0';
  FILE *in = fopen(path, "re");
  if (!in) return;
  while (!*value && fgets(line, sizeof line, in)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = '\0';
    hz_format(value, bytes, "%s", colon + 1 + strspn(colon + 1, " \t"));
  }
  fclose(in);
}

// The word in brackets of /sys's list: "always [madvise] never".
static void read_huge_pages(char *mode, size_t bytes) {
  char line[128] = "";
  FILE *in = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
  if (in && !fgets(line, sizeof line, in)) line[0] = '\0';
  if (in) fclose(in);
  const char *open = strchr(line, '[');
  hz_format(mode, bytes, "%.*s", open ? (int)strcspn(open + 1, "]") : 7,
            open ? open + 1 : "unknown");
}

void hz_machine_describe(struct hz_result *result, char *const argv[]) {
  char model[256], huge[64], date[32];
  struct utsname system;
  uname(&system);
  read_field("/proc/cpuinfo", "model name", model, sizeof model);
  read_huge_pages(huge, sizeof huge);
  double gib = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30);
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  hz_text_replace(&result->version, hz_text("%s", HZ_VERSION));
  hz_text_replace(&result->commit, hz_text("%s", hz_commit));
  hz_text_replace(&result->date, hz_text("%s", date));
  hz_text_replace(&result->machine,
                  hz_text("%s, %ld cores, %.0f GiB", *model ? model : system.machine,
                          sysconf(_SC_NPROCESSORS_ONLN), gib));
  hz_text_replace(&result->kernel,
                  hz_text("%s %s, huge pages %s", system.sysname, system.release, huge));
  hz_text_replace(&result->libc, hz_text("glibc %s", gnu_get_libc_version()));
  // The first word is a name with a blank in it: "hakozuna bench".
  char *arguments = hz_text_of_words(argv + 1);
  hz_text_replace(&result->command, hz_text("%s %s", argv[0], arguments));
  free(arguments);
}
