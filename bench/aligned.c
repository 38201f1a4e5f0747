// `aligned`: blocks with an alignment.
//
//   aligned [threads=1] [ws=400] [min=16] [max=4096] [align_max=65536] [touch=0]
//           [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// A step draws one of a thread's `ws` slots: full, its block is freed; empty, it gets one of min to
// max bytes, aligned to a power of two from 16 to align_max, each as often as any other. Blocks
// come from posix_memalign and aligned_alloc, each half of the time; aligned_alloc is asked for a
// multiple of the alignment, as C11 wants it. Every pointer's alignment is checked, touched or not.
// touch: see blocks.h. A step is one operation.
#include "mixed.h"

enum { ALIGN_LEAST = 16, ALIGN_MOST = 1 << 22 };

static size_t align_max;
static size_t alignments; // from ALIGN_LEAST to align_max
static size_t bytes_max;  // the greatest size drawn; block_rules.max is the greatest asked for

static const struct argument arguments[] = {
    MIXED_ARGUMENTS(400),
    SIZE_ARGUMENTS(16, 4096),
    {.key = "align_max",
     .value = &align_max,
     .usual = 65536,
     .least = ALIGN_LEAST,
     .most = ALIGN_MOST},
    TOUCH_ARGUMENT(0),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

static size_t rounded_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

static void take(struct mixed_worker *w, size_t place, uint64_t drawn) {
  size_t bytes = draw_size(drawn, block_rules.min, bytes_max);
  size_t choice = draw_case(drawn, 2 * alignments);
  size_t alignment = (size_t)ALIGN_LEAST << (choice / 2);
  void *p = NULL;
  if (choice % 2 == 0) {
    if (posix_memalign(&p, alignment, bytes) != 0) p = NULL;
    block_accept(p, bytes, alignment, "posix_memalign");
  } else {
    bytes = rounded_up(bytes, alignment);
    p = aligned_alloc(alignment, bytes);
    block_accept(p, bytes, alignment, "aligned_alloc");
  }
  slots_put(&w->slots, place, p, block_mark(&w->worker.witness, p, bytes));
}

static void *work(void *argument) {
  mixed_work(argument, take);
  return NULL;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules_check();
  if ((align_max & (align_max - 1)) != 0) {
    fail(EXIT_USAGE, "align_max=%zu: expected a power of two", align_max);
  }
  for (size_t a = ALIGN_LEAST; a <= align_max; a *= 2) alignments++;
  bytes_max = block_rules.max;
  block_rules.max = rounded_up(bytes_max, align_max);
  struct figures figures = mixed_run(work);
  report(&figures, "%s", "");
  return 0;
}
