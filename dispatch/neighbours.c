// Looking for other allocators: see dispatch/neighbours.h.
#include "dispatch/neighbours.h"

#include <stdio.h>
#include <string.h>

#include "dispatch/objects.h"

static const char *const sanitizers[] = {
    "__asan_init", "__hwasan_init", "__lsan_init", "__memprof_init", "__msan_init", "__tsan_init",
};

// What else an allocator offers that gives, takes or measures a block. Functions that only tell or
// tune (mallctl, nallocx, malloc_stats_print) are harmless, and redis-server imports those.
static const char *const block_functions[] = {
    "mallocx",     "rallocx",     "xallocx",     "sallocx",           "dallocx",
    "sdallocx",    "je_malloc",   "je_calloc",   "je_realloc",        "je_free",
    "je_mallocx",  "je_sdallocx", "tc_malloc",   "tc_calloc",         "tc_realloc",
    "tc_memalign", "tc_free",     "tc_new",      "tc_delete",         "tc_malloc_size",
    "mi_malloc",   "mi_calloc",   "mi_realloc",  "mi_free",           "mi_zalloc",
    "mi_new",      "mi_strdup",   "mi_heap_new", "mi_malloc_aligned", "mi_usable_size",
};

// How an allocator gets memory. A library that defines malloc and uses neither passes calls on to
// the next malloc, which is ours: a heap profiler.
static const char *const memory_sources[] = {"mmap", "mmap64", "sbrk", "brk"};

struct survey {
  struct hz_neighbours *out;
  bool past_ours;
  bool has_block_functions; // of a library that replaces malloc too
};

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static const char *display_name(const struct hz_object *object) {
  return object->is_executable ? "the executable" : object->path;
}

static const char *first_defined(const struct hz_object *object, const char *const *names,
                                 size_t count) {
  for (size_t i = 0; i < count; i++)
    if (hz_object_definition(object, names[i]) != NULL) return names[i];
  return NULL;
}

static bool is_libc(const struct hz_object *object) {
  return hz_object_definition(object, "gnu_get_libc_version") != NULL;
}

// A library whose malloc would have been used without us.
static void note_replaced(struct hz_neighbours *out, const struct hz_object *object) {
  const char *name = base_name(object->path);
  const size_t used = strlen(out->replaced_names);
  const size_t room = sizeof out->replaced_names - used;
  const char *comma = used != 0 ? ", " : "";
  out->replaced++;
  if (strlen(comma) + strlen(name) < room)
    snprintf(out->replaced_names + used, room, "%s%s", comma, name);
}

static bool defines_block_functions(const struct hz_object *object) {
  return first_defined(object, block_functions, hz_count_of(block_functions)) != NULL;
}

// True: there is a reason to step aside.
static bool survey_object(const struct hz_object *object, void *context) {
  struct survey *survey = context;
  struct hz_neighbours *out = survey->out;
  if (object->is_ours) {
    survey->past_ours = true;
    return false;
  }
  const char *sanitizer = first_defined(object, sanitizers, hz_count_of(sanitizers));
  if (sanitizer != NULL) {
    snprintf(out->reason, sizeof out->reason,
             "a sanitizer has to see every block itself (%s is defined in %s)", sanitizer,
             display_name(object));
    return true;
  }
  if (is_libc(object) || hz_object_definition(object, "malloc") == NULL) return false;
  if (survey->past_ours) {
    note_replaced(out, object);
    survey->has_block_functions |= defines_block_functions(object);
    return false;
  }
  if (!object->is_executable &&
      !hz_object_imports(object, memory_sources, hz_count_of(memory_sources)))
    return false;
  snprintf(out->reason, sizeof out->reason, "%s brings its own allocator (it defines malloc)",
           object->is_executable ? "the executable" : object->path);
  return true;
}

// Only where a replaced allocator offers block functions: the ones of its own objects do not count.
static bool uses_block_functions(const struct hz_object *object, void *context) {
  struct hz_neighbours *out = context;
  if (object->is_ours || hz_object_definition(object, "malloc") != NULL) return false;
  if (!hz_object_imports(object, block_functions, hz_count_of(block_functions))) return false;
  snprintf(out->reason, sizeof out->reason,
           "%s uses block functions of its own allocator (such as mallocx) beside malloc: %s",
           display_name(object), out->replaced_names);
  return true;
}

void hz_neighbours_read(struct hz_neighbours *out) {
  *out = (struct hz_neighbours){.step_aside = false};
  struct survey survey = {.out = out};
  out->step_aside = hz_objects_visit(survey_object, &survey);
  if (!out->step_aside && survey.has_block_functions)
    out->step_aside = hz_objects_visit(uses_block_functions, out);
}
