// `plateau`: a peak, then nearly everything is freed; how much memory stays, and for how long.
//
//   plateau [mib=64] [threads=1] [min=16] [max=4096] [touch=1073741824] [keep=2] [seed=1]
//           [seconds=0.5 | steps=N] [rest_ms=1000]
//
// A step is a round: the threads allocate blocks of min to max bytes until `mib` MiB are live
// (asked for), wait until all have theirs, and free all but `keep` of 100, drawn, in the order of
// allocation. A further round begins with the free of what the round before kept. Then the threads
// end and the process idles for rest_ms, with a small request each millisecond (resident.h). touch:
// see blocks.h; without the word blocks are written and read back in whole, so that `mib` MiB are
// resident at the peak, and much of the time is that.
//
// A malloc or a free is one operation; the clock stops before the idle time. Prints besides the
// common figures live_kib= (bytes still live during the idle time, as asked for), and resident
// memory above that before the first round: rest0_kib= at once, rest1_kib= after a thirtieth of the
// idle time, rest_kib= at its end.
#include "crew.h"
#include "report.h"
#include "slots.h"

enum { EARLY_SHARE = 30 }; // the first of so many parts of the idle time

static struct { size_t threads, mib, keep; } rules;

static const struct argument arguments[] = {
    {.key = "mib", .value = &rules.mib, .usual = 64, .least = 1, .most = 1 << 16},
    THREADS_ARGUMENT(&rules.threads, 1),
    SIZE_ARGUMENTS(16, 4096),
    TOUCH_ARGUMENT(BLOCK_MOST),
    {.key = "keep", .value = &rules.keep, .usual = 2, .most = 100},
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(1000),
};

struct plateau_worker {
  struct worker worker;
  struct slots slots; // as many as the share of mib takes
  uint64_t kept_bytes, ops;
};

// Constant after it was set by the first worker before a barrier; read by all behind it.
static bool another_round;

static size_t share_bytes(void) {
  return rules.mib * 1024 * 1024 / rules.threads;
}

static inline size_t draw_bytes(uint64_t drawn) {
  return draw_size(drawn, block_rules.min, block_rules.max);
}

// The sizes of a round come from a state of their own: each round asks for the same ones.
static size_t count_blocks(uint64_t random) {
  size_t count = 0;
  for (size_t bytes = 0; bytes < share_bytes(); count++) bytes += draw_bytes(draw(&random));
  return count;
}

static void fill(struct plateau_worker *w, uint64_t random) {
  for (size_t i = 0; i < w->slots.count; i++) {
    slots_take(&w->worker.witness, &w->slots, i, draw_bytes(draw(&random)));
  }
  w->ops += w->slots.count;
}

static void free_kept(struct plateau_worker *w) {
  for (size_t i = 0; i < w->slots.count; i++) w->ops += w->slots.blocks[i] != NULL;
  slots_drop_all(&w->worker.witness, &w->slots);
}

// Draws for the choice on, and the sizes along, to know how many bytes stay.
static void free_most(struct plateau_worker *w, uint64_t random) {
  w->kept_bytes = 0;
  for (size_t i = 0; i < w->slots.count; i++) {
    size_t bytes = draw_bytes(draw(&random));
    if (draw_case(draw(&w->worker.random), 100) < rules.keep) {
      w->kept_bytes += bytes;
    } else {
      slots_drop(&w->worker.witness, &w->slots, i);
      w->ops++;
    }
  }
}

static void *work(void *argument) {
  struct plateau_worker *w = argument;
  uint64_t sizes = w->worker.random;
  worker_begin(&w->worker);
  for (;;) {
    if (argument == crew_worker(0)) another_round = pace_next(&w->worker.pace, 1) != 0;
    pthread_barrier_wait(&crew.barrier);
    if (!another_round) break;
    free_kept(w);
    fill(w, sizes);
    pthread_barrier_wait(&crew.barrier);
    free_most(w, sizes);
  }
  worker_end(&w->worker, w->ops);
  return NULL;
}

static void prepare(void) {
  crew_map(rules.threads, sizeof(struct plateau_worker));
  for (size_t i = 0; i < rules.threads; i++) {
    struct plateau_worker *w = crew_worker(i);
    w->slots = slots_map(count_blocks(w->worker.random));
  }
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules_check();
  prepare();
  crew_run(work);
  long at_once_kib = resident_above(resident_kib(), crew.before_kib);
  size_t early_ms = resident_rules.rest_ms / EARLY_SHARE;
  resident_idle(early_ms);
  long early_kib = resident_above(resident_kib(), crew.before_kib);
  resident_rules.rest_ms -= early_ms;
  struct figures figures = figures_of_crew();
  figures_rest(&figures);
  uint64_t kept_bytes = 0;
  for (size_t i = 0; i < rules.threads; i++) {
    struct plateau_worker *w = crew_worker(i);
    kept_bytes += w->kept_bytes;
    slots_drop_all(&figures.witness, &w->slots);
  }
  report(&figures, "live_kib=%llu rest0_kib=%ld rest1_kib=%ld",
         (unsigned long long)(kept_bytes / 1024), at_once_kib, early_kib);
  return 0;
}
