// `zeroed`: calloc, and whether its blocks are zero.
//
//   zeroed [threads=1] [ws=400] [min=16] [max=32768] [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// A step draws one of a thread's `ws` slots: full, its block is freed; empty, it gets one of min to
// max bytes by calloc. Every byte is verified to be zero, then the whole block is written with a
// pattern that is read back before the free (blocks.h), so that memory comes back dirty. Two steps,
// a calloc and a free, are one operation; much of its time is the reading and writing.
#include "mixed.h"

static const struct argument arguments[] = {
    MIXED_ARGUMENTS(400), SIZE_ARGUMENTS(16, 32768), SEED_ARGUMENT,
    PACE_ARGUMENTS,       REST_ARGUMENT(10),
};

static void verify_zero(const unsigned char *p, size_t bytes) {
  const uint64_t *words = (const uint64_t *)(const void *)p;
  uint64_t found = 0;
  for (size_t i = 0; i < bytes / sizeof *words; i++) found |= words[i];
  for (size_t i = bytes & ~(sizeof *words - 1); i < bytes; i++) found |= p[i];
  if (found == 0) return;
  size_t at = 0;
  while (p[at] == 0) at++;
  fail(EXIT_BROKEN, "calloc of %zu bytes returned %p with %#x at offset %zu; expected: zero", bytes,
       (const void *)p, p[at], at);
}

static void take(struct mixed_worker *w, size_t place, uint64_t drawn) {
  size_t bytes = draw_size(drawn, block_rules.min, block_rules.max);
  void *p = calloc(1, bytes);
  block_accept(p, bytes, BLOCK_ALIGNMENT, "calloc");
  verify_zero(p, bytes);
  slots_put(&w->slots, place, p, block_mark(&w->worker.witness, p, bytes));
}

static void *work(void *argument) {
  mixed_work(argument, take);
  return NULL;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules.touch = (block_rules.max + 7) & ~(size_t)7; // all of it
  block_rules_check();
  struct figures figures = mixed_run(work);
  figures.ops /= 2;
  report(&figures, "%s", "");
  return 0;
}
