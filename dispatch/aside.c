// Links to the next definitions: see dispatch/aside.h.
//
// A name that nobody else defines (free_sized in an old libc, operator new in a C program) keeps
// its rule, which ends in the next malloc or free.
#include "dispatch/aside.h"

#include "core/log.h"
#include "dispatch/active.h"
#include "dispatch/objects.h"
#include "dispatch/rules.h"

static void *next_alloc_zeroed(size_t bytes) {
  return hz_active.family.calloc(1, bytes);
}

// One word of code pointer: an object pointer from the symbol table, as dlsym gives it.
#define HZ_LINK(slot, name)                                                                        \
  do {                                                                                             \
    void *next = hz_next_definition(name);                                                         \
    if (next != NULL) (slot) = (__typeof__(slot))next;                                             \
  } while (0)

static void link_family(struct hz_family *family) {
  *family = hz_rules;
#define HZ_LINK_SLOT(name, result, parameters, arguments) HZ_LINK(family->name, #name);
  HZ_FAMILY(HZ_LINK_SLOT)
#undef HZ_LINK_SLOT
}

bool hz_step_aside(void) {
  struct hz_family family;
  struct hz_table table = {.alloc_zeroed = next_alloc_zeroed};
  link_family(&family);
  HZ_LINK(table.alloc, "malloc");
  HZ_LINK(table.release, "free");
  HZ_LINK(table.usable_size, "malloc_usable_size");
  HZ_LINK(table.alloc_aligned, "memalign");
  HZ_LINK(table.resize, "realloc");
  if (table.alloc == NULL || table.release == NULL || table.usable_size == NULL ||
      table.alloc_aligned == NULL || table.resize == NULL)
    return false;
  hz_active_publish(&table, &family);
  return true;
}

void hz_aside_explain(const char *program, const struct hz_neighbours *neighbours) {
  static const struct {
    const char *before, *after; // of the name that gave it away
  } reasons[] = {
      [HZ_ASIDE_SANITIZER] = {"has a sanitizer (", "), which must see every block itself"},
      [HZ_ASIDE_OWN_MALLOC] = {"brings its own allocator (it defines ", ")"},
      [HZ_ASIDE_BLOCK_FUNCTIONS] = {"uses another allocator's functions beside malloc (", ")"},
  };
  static const char *const runs_on = "; the process runs as without hakozuna";
  if (neighbours->aside == HZ_ASIDE_NO_MEMORY) {
    const char *said[] = {"stepping aside in ", program, ": no address space is left for a heap",
                          runs_on};
    hz_log_pieces(said, hz_count_of(said));
    return;
  }
  const char *said[] = {"stepping aside in ",
                        program,
                        ": ",
                        neighbours->object[0] != '\0' ? neighbours->object : "the executable",
                        " ",
                        reasons[neighbours->aside].before,
                        neighbours->symbol,
                        reasons[neighbours->aside].after,
                        runs_on};
  hz_log_pieces(said, hz_count_of(said));
}
