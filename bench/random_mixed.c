// `random_mixed`: blocks allocated and freed at random, by one thread or by several that share
// nothing.
//
//   random_mixed [threads=1] [ws=400] [min=16] [max=2048] [dist=uniform] [touch=0]
//                [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// A step draws one of a thread's `ws` slots: full, its block is freed; empty, it gets one. With
// dist=uniform it has min to max bytes. With dist=app sizes are as programs ask for them, 80 % 16
// to 256 bytes, 15 % 257 to 2048, 5 % 2049 to 32768, whatever min and max say. touch: see blocks.h.
// A step is one operation.
#include "mixed.h"

enum { UNIFORM, APP };

static size_t dist;

static const struct argument arguments[] = {
    MIXED_ARGUMENTS(400),
    SIZE_ARGUMENTS(16, 2048),
    {.key = "dist", .value = &dist, .usual = UNIFORM, .words = "uniform app"},
    TOUCH_ARGUMENT(0),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

static inline size_t choose_size(uint64_t drawn) {
  if (dist == UNIFORM) return draw_size(drawn, block_rules.min, block_rules.max);
  size_t percent = draw_case(drawn, 100);
  if (percent < 80) return draw_size(drawn, 16, 256);
  return percent < 95 ? draw_size(drawn, 257, 2048) : draw_size(drawn, 2049, 32768);
}

static void take(struct mixed_worker *w, size_t place, uint64_t drawn) {
  slots_take(&w->worker.witness, &w->slots, place, choose_size(drawn));
}

static void *work(void *argument) {
  mixed_work(argument, take);
  return NULL;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  if (dist == APP) {
    block_rules.min = 16;
    block_rules.max = 32768;
  }
  block_rules_check();
  struct figures figures = mixed_run(work);
  report(&figures, "%s", "");
  return 0;
}
