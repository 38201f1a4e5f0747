// Turns names into variants: where each one's library is, which version it is, or why it cannot
// take part.
#include "tools/bench/variant.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/version.h"
#include "lines/catalog.h"
#include "tools/allocators.h"
#include "tools/command.h"
#include "tools/elf_file.h"
#include "tools/find.h"
#include "tools/print.h"
#include "tools/settings.h"
#include "tools/text.h"

static bool takes_part(const struct hz_variants *variants, const char *name) {
  for (size_t i = 0; i < variants->count; i++)
    if (strcmp(variants->rows[i].name, name) == 0) return true;
  return false;
}

// Appends a row with a name and empty texts. NULL after a sentence: it is there already, or there
// are too many.
static struct hz_variant *add(struct hz_variants *variants, const char *name) {
  if (takes_part(variants, name)) {
    hz_log("%s is named twice; each allocator needs a name of its own.", name);
    return NULL;
  }
  if (variants->count == HZ_VARIANTS_MOST) {
    hz_log("%s is one allocator too many; at most %d take part.", name, HZ_VARIANTS_MOST);
    return NULL;
  }
  struct hz_variant *row = &variants->rows[variants->count++];
  *row = (struct hz_variant){.name = hz_text("%s", name),
                             .library = hz_text("%s", ""),
                             .profile = hz_text("%s", ""),
                             .about = hz_text("%s", "")};
  return row;
}

// The first line of a stream, without its end; "" where there is none. To be freed.
static char *first_line(FILE *in) {
  char line[256] = "";
  if (in && !fgets(line, sizeof line, in)) line[0] = '\0';
  line[strcspn(line, "\n")] = '\0';
  return hz_text("%s", line);
}

// What a command prints, first line; "" where it fails. To be freed.
static char *ask(const char *command) {
  FILE *in = popen(command, "re");
  char *line = first_line(in);
  if (in) pclose(in);
  return line;
}

// The Debian package that the file belongs to, or what bench/peers.sh wrote beside what it built.
static char *about_library(const struct hz_allocator *allocator, const char *path) {
  char *command, *about;
  if (allocator->built) {
    char *file = hz_text("%.*sabout", (int)(strrchr(path, '/') + 1 - path), path);
    FILE *in = fopen(file, "re");
    about = first_line(in);
    if (in) fclose(in);
    free(file);
    return about;
  }
  command = hz_text("dpkg-query -W -f '${Package} ${Version}\\n' "
                    "$(dpkg-query -S '%s' 2>/dev/null | cut -d : -f 1) 2>/dev/null",
                    path);
  about = ask(command);
  free(command);
  return about;
}

static int add_known(struct hz_variants *variants, const struct hz_allocator *allocator) {
  struct hz_variant *row = add(variants, allocator->name);
  if (!row) return HZ_EXIT_USAGE;
  row->setting = allocator->setting;
  char path[PATH_MAX], real[PATH_MAX], sentence[PATH_MAX + 256];
  if (!hz_allocator_find(allocator, path) || !realpath(path, real)) {
    hz_allocator_advice(allocator, sentence, sizeof sentence);
    row->missing = hz_text("%s", sentence);
    return HZ_EXIT_OK;
  }
  hz_text_replace(&row->library, hz_text("%s", real));
  hz_text_replace(&row->about, about_library(allocator, path));
  return hz_library_check(real);
}

static int add_glibc(struct hz_variants *variants) {
  struct hz_variant *row = add(variants, "glibc");
  if (!row) return HZ_EXIT_USAGE;
  hz_text_replace(&row->about, hz_text("glibc %s", gnu_get_libc_version()));
  return HZ_EXIT_OK;
}

static int add_profile(struct hz_variants *variants, const char *name) {
  struct hz_variant *row = add(variants, name);
  char library[PATH_MAX], real[PATH_MAX];
  if (!row) return HZ_EXIT_USAGE;
  int failed = hz_library_require(library);
  if (failed) return failed;
  hz_text_replace(&row->library, hz_text("%s", realpath(library, real) ? real : library));
  hz_text_replace(&row->profile, hz_text("%s", name));
  row->asked = true;
  hz_text_replace(&row->about, hz_text("hakozuna %s, commit %s", HZ_VERSION, hz_commit));
  return HZ_EXIT_OK;
}

int hz_variants_add_others(struct hz_variants *variants) {
  int failed = takes_part(variants, "glibc") ? HZ_EXIT_OK : add_glibc(variants);
  const struct hz_allocator *allocator;
  for (size_t i = 0; !failed && (allocator = hz_allocator_named(i)) != NULL; i++)
    if (!takes_part(variants, allocator->name)) failed = add_known(variants, allocator);
  return failed;
}

int hz_variants_add_lines(struct hz_variants *variants) {
  int failed = HZ_EXIT_OK;
  for (size_t i = 0; !failed && i < hz_line_catalog_count; i++)
    failed = add_profile(variants, hz_line_catalog[i]->profiles[0].name);
  return failed;
}

static int add_by_name(struct hz_variants *variants, const char *name) {
  if (strcmp(name, "glibc") == 0 || strcmp(name, "system") == 0) return add_glibc(variants);
  const struct hz_allocator *allocator;
  for (size_t i = 0; (allocator = hz_allocator_named(i)) != NULL; i++)
    if (strcmp(allocator->name, name) == 0) return add_known(variants, allocator);
  struct hz_found_profile found;
  if (hz_profile_find(name, &found)) return add_profile(variants, name);
  hz_log("Besides profiles, there are glibc, jemalloc, tcmalloc, mimalloc, mimalloc3, snmalloc "
         "and tcmalloc-google; "
         "--peer NAME=PATH adds any other library.");
  return HZ_EXIT_CONFIG;
}

int hz_variants_add_list(struct hz_variants *variants, const char *list) {
  char *copy = hz_text("%s", list), *rest = copy, *name;
  int failed = HZ_EXIT_OK;
  while (!failed && (name = strsep(&rest, ", ")) != NULL)
    if (*name) {
      failed = add_by_name(variants, name);
      if (!failed) variants->rows[variants->count - 1].asked = true;
    }
  free(copy);
  return failed;
}

int hz_variants_add_peer(struct hz_variants *variants, const char *argument) {
  const char *equals = strchr(argument, '=');
  char real[PATH_MAX];
  if (!equals || equals == argument || equals[1] == '\0') {
    hz_log("--peer %s is not understood; expected NAME=PATH, a name of your choice and a shared "
           "library.",
           argument);
    return HZ_EXIT_USAGE;
  }
  if (!realpath(equals + 1, real)) {
    hz_log("--peer %s: %m; expected the path of a shared library after the =.", argument);
    return HZ_EXIT_NO_FILE;
  }
  int failed = hz_library_check(real);
  if (failed) return failed;
  char *name = hz_text("%.*s", (int)(equals - argument), argument);
  struct hz_variant *row = add(variants, name);
  free(name);
  if (!row) return HZ_EXIT_USAGE;
  hz_text_replace(&row->library, hz_text("%s", real));
  row->asked = true;
  return HZ_EXIT_OK;
}

bool hz_variant_can_serve(const struct hz_variant *variant) {
  if (!*variant->library) return true;
  struct hz_elf_file file;
  bool known = hz_elf_open(&file, variant->library) == HZ_ELF_READ && file.symbol_count > 0;
  bool serves = !known || (hz_elf_defines(&file, "malloc") && hz_elf_defines(&file, "free"));
  hz_elf_close(&file);
  return serves;
}

void hz_variants_free(struct hz_variants *variants) {
  for (size_t i = 0; i < variants->count; i++) {
    struct hz_variant *row = &variants->rows[i];
    free(row->name);
    free(row->library);
    free(row->profile);
    free(row->about);
    free(row->missing);
  }
  variants->count = 0;
}
