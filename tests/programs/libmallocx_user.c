// A library that takes blocks by mallocx and returns them by free: for neighbours_test.
#include <stdlib.h>

void *mallocx(size_t bytes, int flags);

__attribute__((constructor)) static void load(void) {
  free(mallocx(100, 0));
}
