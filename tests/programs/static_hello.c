// A statically linked program: nothing can be preloaded into it, and nothing must be said in it.
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

int main(void) {
  char *p = malloc(100000);
  CHECK(p != NULL, "no memory");
  memset(p, 1, 100000);
  free(opaque(p));
  say("static\n");
  return 0;
}
