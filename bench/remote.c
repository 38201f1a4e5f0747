// The `remote` lanes: threads that allocate, and free what their neighbour allocated.
//
//   remote [threads=16] [ws=400] [min=16] [max=2048] [remote=90] [ring=65536] [touch=0]
//          [fallback=0] [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// Each thread owns `ws` slots. A step draws a slot: empty, then it gets a block of min to max
// bytes; full, then the block is freed here or, in `remote` of 100 cases, handed to the next thread
// through a ring of `ring` entries (a power of two). Before each step of its own a thread frees
// everything that it finds in its ring. A full ring makes a thread drain its own ring and yield
// until there is room, so that every allocator does the same remote work; with fallback=1 it frees
// the block here instead, and the share printed is smaller. touch: see blocks.h.
//
// A step is one operation. Time runs from the first worker's start to the last one's end, both
// stamped by the workers, and an end comes after everything handed over was freed. Prints besides
// the common figures remote= (per cent of the frees that were handed over).
#include <sched.h>

#include "crew.h"
#include "report.h"
#include "ring.h"
#include "slots.h"

enum { DRAIN_PAUSE_NS = 50000 };

static struct { size_t threads, ws, remote, ring, fallback; } rules;

static const struct argument arguments[] = {
    THREADS_ARGUMENT(&rules.threads, 16),
    {.key = "ws", .value = &rules.ws, .usual = 400, .least = 1, .most = SLOTS_MOST},
    SIZE_ARGUMENTS(16, 2048),
    {.key = "remote", .value = &rules.remote, .usual = 90, .most = 100},
    RING_ARGUMENT(&rules.ring, 65536),
    TOUCH_ARGUMENT(0),
    {.key = "fallback", .value = &rules.fallback, .most = 1},
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

struct remote_worker {
  struct worker worker;
  struct slots slots;
  struct ring *in, *out;
  uint64_t frees, handed;
};

static inline size_t drain(struct remote_worker *w) {
  return ring_drain(w->in, &w->worker.witness, rules.ring);
}

static void hand_over(struct remote_worker *w, void *p, uint64_t stamp) {
  while (!ring_push(w->out, p, stamp)) {
    if (rules.fallback != 0) {
      block_drop(&w->worker.witness, p, stamp);
      return;
    }
    drain(w);
    sched_yield();
  }
  w->handed++;
}

static void step(struct remote_worker *w) {
  uint64_t drawn = draw(&w->worker.random);
  size_t place = draw_place(drawn, rules.ws);
  if (w->slots.blocks[place] == NULL) {
    size_t bytes = draw_size(drawn, block_rules.min, block_rules.max);
    slots_take(&w->worker.witness, &w->slots, place, bytes);
    return;
  }
  w->frees++;
  if (draw_case(drawn, 100) < rules.remote) {
    hand_over(w, w->slots.blocks[place], slots_stamp(&w->slots, place));
    w->slots.blocks[place] = NULL;
  } else {
    slots_drop(&w->worker.witness, &w->slots, place);
  }
}

// Frees what the neighbour still hands over, until it has ended.
static void drain_to_end(struct remote_worker *w) {
  const struct timespec pause = {.tv_nsec = DRAIN_PAUSE_NS};
  for (;;) {
    bool closed = ring_is_closed(w->in);
    if (drain(w) == 0 && closed) break;
    if (!closed) nanosleep(&pause, NULL); // leaves the cores to those that still work
  }
}

static void *work(void *argument) {
  struct remote_worker *w = argument;
  worker_begin(&w->worker);
  for (size_t batch; (batch = pace_next(&w->worker.pace, PACE_BATCH)) != 0;) {
    for (size_t i = 0; i < batch; i++) {
      drain(w);
      step(w);
    }
  }
  ring_close(w->out);
  drain_to_end(w);
  worker_end(&w->worker, w->worker.pace.done);
  slots_drop_all(&w->worker.witness, &w->slots);
  return NULL;
}

static void prepare(void) {
  crew_map(rules.threads, sizeof(struct remote_worker));
  struct ring *rings = state_map(rules.threads * sizeof *rings);
  for (size_t i = 0; i < rules.threads; i++) {
    struct remote_worker *w = crew_worker(i);
    rings[i].entries = slots_map(rules.ring);
    w->slots = slots_map(rules.ws);
    w->in = &rings[i];
    w->out = &rings[(i + 1) % rules.threads];
  }
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules_check();
  ring_check(rules.ring);
  prepare();
  crew_run(work);
  struct figures figures = figures_of_crew();
  uint64_t frees = 0, handed = 0;
  for (size_t i = 0; i < rules.threads; i++) {
    const struct remote_worker *w = crew_worker(i);
    frees += w->frees;
    handed += w->handed;
  }
  figures_rest(&figures);
  report(&figures, "remote=%.1f", frees == 0 ? 0.0 : 100.0 * (double)handed / (double)frees);
  return 0;
}
