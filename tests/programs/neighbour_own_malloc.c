// A program that brings its own allocator: a replacement from outside has to leave it alone.
//
// Its blocks come from one static array and carry a mark that its free insists on.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

enum { POOL_BYTES = 16 << 20 };
static const uint64_t MARK = 0x6d696e65206d696e;

struct header {
  uint64_t mark;
  size_t bytes;
};

static _Alignas(16) unsigned char pool[POOL_BYTES];
static size_t used;
static unsigned long frees;

void *malloc(size_t bytes) {
  size_t whole = (bytes + sizeof(struct header) + 15) & ~(size_t)15;
  if (bytes > POOL_BYTES || whole > POOL_BYTES - used) return NULL;
  struct header *header = (struct header *)(pool + used);
  used += whole;
  *header = (struct header){MARK, bytes};
  return header + 1;
}

void free(void *p) {
  if (p == NULL) return;
  struct header *header = (struct header *)p - 1;
  CHECK(header->mark == MARK, "free(%p): not a block of this program", p);
  frees++;
}

void *calloc(size_t n, size_t bytes) {
  if (bytes != 0 && n > POOL_BYTES / bytes) return NULL;
  return malloc(n * bytes); // the pool is never used twice
}

void *realloc(void *p, size_t bytes) {
  void *moved = malloc(bytes);
  if (p == NULL || moved == NULL) return moved;
  size_t was = ((struct header *)p - 1)->bytes;
  memcpy(moved, p, was < bytes ? was : bytes);
  free(p);
  return moved;
}

int main(void) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *stream = open_memstream(&text, &bytes);
  for (int i = 0; i < 1000; i++) fprintf(stream, "%d ", i);
  fclose(stream);
  CHECK(text >= (char *)pool && text < (char *)pool + POOL_BYTES,
        "libc's block is not of the pool");
  free(text);
  free(strdup("a word"));
  CHECK(frees > 1, "free was called %lu times", frees);
  say("own %zu\nok\n", bytes);
  return 0;
}
