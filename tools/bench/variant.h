// What a program can be run under: a profile of ours, the C library's own allocator, another
// allocator that is installed or was built for comparison, or any library by its path.
#ifndef HZ_TOOLS_BENCH_VARIANT_H
#define HZ_TOOLS_BENCH_VARIANT_H

#include "core/base.h"

enum { HZ_VARIANTS_MOST = 24, HZ_PEERS_MOST = 8 };

struct hz_variant {
  char *name;
  char *library;       // what is preloaded, an absolute path; "": nothing
  char *profile;       // of ours; "": another allocator
  char *about;         // version or package; "" where unknown
  const char *setting; // an environment variable that it wants, NAME=VALUE; NULL: none
  char *missing;       // why it cannot run, a sentence; NULL: it can
  bool asked;          // ours, or named by the user: its failures are the command's
};

struct hz_variants {
  size_t count;
  struct hz_variant rows[HZ_VARIANTS_MOST];
};

// Each of these appends and returns an exit code; after an error the sentence has been printed. An
// allocator that is known and not here is no error: it is appended with `missing` set.

// glibc, and every other allocator that can be asked for by name, as far as they are not in yet.
int hz_variants_add_others(struct hz_variants *variants);

// The default profile of each line.
int hz_variants_add_lines(struct hz_variants *variants);

// What --profiles takes: names separated by commas, of profiles, of known allocators, or "glibc".
int hz_variants_add_list(struct hz_variants *variants, const char *list);

// What --peer takes: NAME=PATH.
int hz_variants_add_peer(struct hz_variants *variants, const char *argument);

// Whether its library defines malloc and free; a file without a table of symbols may. For commands
// that do not say themselves who served them.
bool hz_variant_can_serve(const struct hz_variant *variant);

void hz_variants_free(struct hz_variants *variants);

#endif
