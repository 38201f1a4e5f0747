// The one place that takes a value of LD_PRELOAD apart and puts it together again.
#include "tools/preload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/allocators.h"
#include "tools/print.h"

// Entries of LD_PRELOAD are separated by spaces or colons (ld.so(8)). Copies the entry at *at and
// moves *at behind it; false at the end.
static bool next_entry(const char **at, char *entry) {
  *at += strspn(*at, " :");
  size_t length = strcspn(*at, " :");
  hz_format(entry, PATH_MAX, "%.*s", (int)hz_min(length, PATH_MAX - 1), *at);
  *at += length;
  return length != 0;
}

static bool same_file(const char *a, const char *b) {
  struct stat first, second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

bool hz_preload_allocator(const char *value, char *entry) {
  for (const char *at = value ? value : ""; next_entry(&at, entry);)
    if (hz_allocator_of(entry)) return true;
  return false;
}

char *hz_preload_join(const char *existing, const char *library) {
  size_t bytes = strlen(library) + (existing ? strlen(existing) : 0) + 3;
  char *joined = calloc(1, bytes);
  if (!joined) return NULL;
  char entry[PATH_MAX];
  bool placed = false;
  for (const char *at = existing ? existing : ""; next_entry(&at, entry);) {
    // What watches malloc (heaptrack, a sanitizer) must come first to see the calls; of the
    // allocators, the first one serves.
    bool allocator = hz_allocator_of(entry) != NULL;
    if (allocator && !placed && !same_file(entry, library))
      strcat(strcat(joined, *joined ? ":" : ""), library);
    if (allocator) placed = true;
    strcat(strcat(joined, *joined ? ":" : ""), entry);
  }
  if (!placed) strcat(strcat(joined, *joined ? ":" : ""), library);
  return joined;
}
