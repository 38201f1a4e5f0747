// Looking for other allocators: see dispatch/neighbours.h.
#include "dispatch/neighbours.h"

#include "core/plain.h"
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

static bool decide(struct hz_neighbours *out, enum hz_aside why, const struct hz_object *object,
                   const char *symbol) {
  out->aside = why;
  out->object = object->is_executable ? "" : object->path;
  out->symbol = symbol;
  return true;
}

static const char *first_defined(const struct hz_object *object, const char *const *names,
                                 size_t count) {
  for (size_t i = 0; i < count; i++)
    if (hz_object_definition(object, names[i]) != NULL) return names[i];
  return NULL;
}

// By name: to look a symbol up would map some 100 KiB of libc's tables into every process.
static bool is_libc(const struct hz_object *object) {
  const char *file = hz_plain_last_part(object->path);
  return hz_plain_begins(file, "libc.so.6") || hz_plain_begins(file, "ld-linux");
}

// A library whose malloc would have been used without us.
static void note_replaced(struct survey *survey, const struct hz_object *object) {
  struct hz_neighbours *out = survey->out;
  if (out->replaced < HZ_REPLACED_NAMED) out->replaced_paths[out->replaced] = object->path;
  out->replaced++;
  if (first_defined(object, block_functions, hz_count_of(block_functions)) != NULL)
    survey->has_block_functions = true;
}

// True: there is a reason to step aside.
static bool survey_object(const struct hz_object *object, void *context) {
  struct survey *survey = context;
  if (object->is_ours) {
    survey->past_ours = true;
    return false;
  }
  if (is_libc(object)) return false;
  const char *sanitizer = first_defined(object, sanitizers, hz_count_of(sanitizers));
  if (sanitizer != NULL) return decide(survey->out, HZ_ASIDE_SANITIZER, object, sanitizer);
  if (hz_object_definition(object, "malloc") == NULL) return false;
  if (survey->past_ours) {
    note_replaced(survey, object);
    return false;
  }
  if (object->is_executable ||
      hz_object_imports(object, memory_sources, hz_count_of(memory_sources)) != NULL)
    return decide(survey->out, HZ_ASIDE_OWN_MALLOC, object, "malloc");
  return false;
}

// What an allocator's own objects use of it does not count.
static bool uses_block_functions(const struct hz_object *object, void *context) {
  if (object->is_ours || hz_object_definition(object, "malloc") != NULL) return false;
  const char *name = hz_object_imports(object, block_functions, hz_count_of(block_functions));
  return name != NULL && decide(context, HZ_ASIDE_BLOCK_FUNCTIONS, object, name);
}

void hz_neighbours_read(struct hz_neighbours *out) {
  struct survey survey = {.out = out};
  if (!hz_objects_visit(survey_object, &survey) && survey.has_block_functions)
    hz_objects_visit(uses_block_functions, out);
}
