// The work of the programs with slots: a step draws one of a thread's slots; full, its block is
// freed; empty, it gets one, in the way that the program is about.
#ifndef HZ_BENCH_MIXED_H
#define HZ_BENCH_MIXED_H

#include "crew.h"
#include "report.h"
#include "slots.h"

struct mixed_worker {
  struct worker worker;
  struct slots slots;
};

static struct { size_t threads, ws; } mixed_rules;

// Fills the slot `place`; the size comes from the draw.
typedef void mixed_take(struct mixed_worker *w, size_t place, uint64_t drawn);

#define MIXED_ARGUMENTS(usual_ws)                                                                  \
  THREADS_ARGUMENT(&mixed_rules.threads, 1), {                                                     \
    .key = "ws", .value = &mixed_rules.ws, .usual = (usual_ws), .least = 1, .most = SLOTS_MOST     \
  }

// Always inlined, so that `take` is no call through a pointer.
static inline __attribute__((always_inline)) void mixed_work(struct mixed_worker *w,
                                                             mixed_take *take) {
  worker_begin(&w->worker);
  for (size_t batch; (batch = pace_next(&w->worker.pace, PACE_BATCH)) != 0;) {
    for (size_t i = 0; i < batch; i++) {
      uint64_t drawn = draw(&w->worker.random);
      size_t place = draw_place(drawn, w->slots.count);
      if (w->slots.blocks[place] != NULL) {
        slots_drop(&w->worker.witness, &w->slots, place);
      } else {
        take(w, place, drawn);
      }
    }
  }
  worker_end(&w->worker, w->worker.pace.done);
  slots_drop_all(&w->worker.witness, &w->slots);
}

// Maps the state, runs `work` with each worker and reads memory at rest.
static inline struct figures mixed_run(void *(*work)(void *)) {
  crew_map(mixed_rules.threads, sizeof(struct mixed_worker));
  for (size_t i = 0; i < mixed_rules.threads; i++) {
    ((struct mixed_worker *)crew_worker(i))->slots = slots_map(mixed_rules.ws);
  }
  crew_run(work);
  struct figures figures = figures_of_crew();
  figures_rest(&figures);
  return figures;
}

#endif
