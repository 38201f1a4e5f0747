// A library that would use mallocx if there is one, and finds out by a weak reference: no reason
// for anybody to step aside. For neighbours_test.
#include <stdlib.h>

__attribute__((weak)) void *mallocx(size_t bytes, int flags);

int mallocx_is_there(void) {
  return mallocx != NULL;
}
