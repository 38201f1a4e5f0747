// `churn`: threads that come and go.
//
//   churn [threads=4] [blocks=100] [remote=20] [min=16] [max=2048] [touch=0]
//         [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// At each of `threads` places one thread is alive at a time. It frees what the thread before left,
// allocates `blocks` blocks of min to max bytes, frees them but for `remote` per cent, which it
// leaves to the next thread, and ends; a new one is created. touch: see blocks.h.
//
// A step is a thread's life. An operation is a malloc and its free; with few blocks a life is
// mostly the creation and the end of a thread, in which the allocator has its part (it sets up and
// takes down what it keeps per thread). Prints besides the common figures threads_made= and
// kthreads_s= (thousand threads per second).
#include "relay.h"
#include "report.h"

static struct { size_t threads, blocks, remote; } rules;

static const struct argument arguments[] = {
    THREADS_ARGUMENT(&rules.threads, 4),
    {.key = "blocks", .value = &rules.blocks, .usual = 100, .least = 1, .most = SLOTS_MOST},
    {.key = "remote", .value = &rules.remote, .usual = 20, .most = 100},
    SIZE_ARGUMENTS(16, 2048),
    TOUCH_ARGUMENT(0),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

static void prepare_nothing(struct runner *r) {
  (void)r;
}

// The clock is read once per life, which is little beside a thread's creation.
static bool live(struct runner *r) {
  struct witness *witness = &r->worker.witness;
  if (pace_next(&r->worker.pace, 1) == 0) return false;
  slots_drop_all(witness, &r->slots);
  for (size_t i = 0; i < rules.blocks; i++) {
    size_t bytes = draw_size(draw(&r->worker.random), block_rules.min, block_rules.max);
    slots_take(witness, &r->slots, i, bytes);
  }
  for (size_t i = 0; i < rules.blocks; i++) {
    if (draw_case(draw(&r->worker.random), 100) >= rules.remote) slots_drop(witness, &r->slots, i);
  }
  return true;
}

static uint64_t count_ops(const struct runner *r) {
  return r->worker.pace.done * rules.blocks;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules_check();
  relay.prepare = prepare_nothing;
  relay.live = live;
  relay.ops = count_ops;
  uint64_t lives = relay_run(rules.threads, rules.blocks);
  struct figures figures = figures_of_crew();
  figures_rest(&figures);
  report(&figures, "threads_made=%llu kthreads_s=%.3f", (unsigned long long)lives,
         (double)lives / 1e3 / figures_seconds(&figures));
  return 0;
}
