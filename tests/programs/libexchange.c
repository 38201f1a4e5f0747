// A library that hands blocks to its caller and frees blocks of its caller: for home_dlopen.
#define _GNU_SOURCE 1
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *exchange_give(size_t bytes) {
  void *p = malloc(bytes);
  if (p != NULL) memset(p, 3, bytes);
  return p;
}

// True when the block is one that this library's own malloc knows.
int exchange_take(void *p, size_t bytes) {
  int known = malloc_usable_size(p) >= bytes;
  p = realloc(p, bytes + 100);
  free(p);
  return known && p != NULL;
}

char *exchange_duplicate(const char *text) {
  return strdup(text);
}
