// The reader of loaded objects, held against dlsym over this very process.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/objects.h"

static const char *const names[] = {"malloc",  "free",    "qsort",         "strtol", "getenv",
                                    "stdout",  "environ", "fopen",         "printf", "open",
                                    "pthread", "no_such", "pthread_create"};

struct search {
  const char *path_part; // NULL: the executable
  bool (*judge)(const struct hz_object *object);
  bool seen, verdict;
};

static bool visit_wanted(const struct hz_object *object, void *context) {
  struct search *search = context;
  const bool wanted = search->path_part == NULL ? object->is_executable
                                                : strstr(object->path, search->path_part) != NULL;
  if (!wanted) return false;
  search->seen = true;
  search->verdict = search->judge(object);
  return true;
}

static void require(const char *path_part, bool (*judge)(const struct hz_object *object)) {
  struct search search = {.path_part = path_part, .judge = judge};
  assert_true(hz_objects_visit(visit_wanted, &search));
  assert_true(search.seen);
  assert_true(search.verdict);
}

static bool agrees_with_dlsym(const struct hz_object *object) {
  void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; i < hz_count_of(names); i++) {
    if (hz_object_definition(object, names[i]) == dlsym(libc, names[i])) continue;
    print_error("%s: %p, dlsym says %p\n", names[i], hz_object_definition(object, names[i]),
                dlsym(libc, names[i]));
    return false;
  }
  return true;
}

static void definitions_in_libc_are_those_of_dlsym(void **state) {
  (void)state;
  require("libc.so", agrees_with_dlsym);
}

static bool is_vdso_clock(const struct hz_object *object) {
  void *at = hz_object_definition(object, "__vdso_getcpu");
  return at != NULL && (uintptr_t)at - object->base < 1 << 20;
}

// Its dynamic section keeps offsets, not addresses.
static void definitions_in_the_kernels_object_are_found(void **state) {
  (void)state;
  require("vdso", is_vdso_clock);
}

static bool imports_dlsym_only(const struct hz_object *object) {
  const char *const yes[] = {"no_such", "dlsym"}, *const no[] = {"no_such", "mallocx"};
  const char *found = hz_object_imports(object, yes, 2);
  return found != NULL && strcmp(found, "dlsym") == 0 && hz_object_imports(object, no, 2) == NULL;
}

static void imports_are_what_the_executable_refers_to(void **state) {
  (void)state;
  require(NULL, imports_dlsym_only);
}

extern int no_such_weak(void) __attribute__((weak));

static bool weak_is_no_import(const struct hz_object *object) {
  const char *const weak[] = {"no_such_weak"};
  return no_such_weak == NULL && hz_object_imports(object, weak, 1) == NULL;
}

static void a_weak_reference_is_no_import(void **state) {
  (void)state;
  require(NULL, weak_is_no_import);
}

// What this test defines itself is "ours" and passed over.
int getpagesize(void);
int getpagesize(void) {
  return -1;
}

static void the_next_definition_is_not_our_own(void **state) {
  (void)state;
  void *next = hz_next_definition("getpagesize");
  assert_ptr_equal(next, dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "getpagesize"));
  assert_ptr_equal(next, hz_next_definition_locked("getpagesize"));
  assert_int_equal(((int (*)(void))next)() > 0, 1);
  assert_null(hz_next_definition("no_such"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(definitions_in_libc_are_those_of_dlsym),
      cmocka_unit_test(definitions_in_the_kernels_object_are_found),
      cmocka_unit_test(imports_are_what_the_executable_refers_to),
      cmocka_unit_test(a_weak_reference_is_no_import),
      cmocka_unit_test(the_next_definition_is_not_our_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
