// `larson`: a server whose threads are replaced while their blocks live on.
//
//   larson [threads=4] [min=8] [max=1024] [blocks=1000] [handover=10000] [touch=0]
//          [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// Each of `threads` places has an array of `blocks` blocks. Its thread replaces random ones by new
// ones of min to max bytes; after `handover` replacements it ends and leaves the array to a newly
// created thread, which so frees blocks that a dead thread allocated. The arrays are filled before
// the clock starts and emptied after it has stopped. touch: see blocks.h.
//
// A replacement, a free and a malloc, is one operation. Prints besides the common figures
// threads_made= (all threads of the run).
#include "relay.h"
#include "report.h"

static struct { size_t threads, blocks, handover; } rules;

static const struct argument arguments[] = {
    THREADS_ARGUMENT(&rules.threads, 4),
    SIZE_ARGUMENTS(8, 1024),
    {.key = "blocks", .value = &rules.blocks, .usual = 1000, .least = 1, .most = SLOTS_MOST},
    {.key = "handover", .value = &rules.handover, .usual = 10000, .least = 1, .most = 1 << 30},
    TOUCH_ARGUMENT(0),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

static void take(struct runner *r, size_t place, uint64_t drawn) {
  size_t bytes = draw_size(drawn, block_rules.min, block_rules.max);
  slots_take(&r->worker.witness, &r->slots, place, bytes);
}

static void fill(struct runner *r) {
  for (size_t i = 0; i < rules.blocks; i++) take(r, i, draw(&r->worker.random));
}

static bool replace_many(struct runner *r) {
  for (size_t left = rules.handover; left > 0;) {
    size_t batch = pace_next(&r->worker.pace, left);
    if (batch == 0) return false;
    left -= batch;
    for (size_t i = 0; i < batch; i++) {
      uint64_t drawn = draw(&r->worker.random);
      size_t place = draw_place(drawn, rules.blocks);
      slots_drop(&r->worker.witness, &r->slots, place);
      take(r, place, drawn);
    }
  }
  return true;
}

static uint64_t count_ops(const struct runner *r) {
  return r->worker.pace.done;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules_check();
  relay.prepare = fill;
  relay.live = replace_many;
  relay.ops = count_ops;
  uint64_t lives = relay_run(rules.threads, rules.blocks);
  struct figures figures = figures_of_crew();
  figures_rest(&figures);
  report(&figures, "threads_made=%llu", (unsigned long long)lives);
  return 0;
}
