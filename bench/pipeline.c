// `pipeline`: producers that only allocate and consumers that only free.
//
//   pipeline [pairs=1] [min=16] [max=2048] [ring=4096] [touch=0] [seconds=0.5 | steps=N]
//            [rest_ms=10]
//
// Each pair is a producer and a consumer, two threads, with a ring of `ring` entries (a power of
// two) between them. The producer yields while the ring is full; the consumer, while it is empty,
// yields a few times and then sleeps, so that the cores go to those who work. touch: see blocks.h.
//
// A block that was allocated and freed is one operation; a step is a block that a producer makes.
// Prints besides the common figures live_peak_kib=, by which peak_kib is to be judged: the most
// bytes asked for and not yet freed. Producer and consumer count the bytes that they have made and
// freed (the consumer draws the same sizes again). Each producer adds up all pairs when its ring is
// full and after each 256 blocks. It reads `made` before `freed`: the sum may be too small, as it
// is when the reader was interrupted between the two, but never too large.
#include <sched.h>

#include "crew.h"
#include "report.h"
#include "ring.h"

enum { CONSUMER_BATCH = 64, CONSUMER_YIELDS = 16, CONSUMER_PAUSE_NS = 50000 };

static struct { size_t pairs, ring; } rules;

static const struct argument arguments[] = {
    {.key = "pairs", .value = &rules.pairs, .usual = 1, .least = 1, .most = THREADS_MOST / 2},
    SIZE_ARGUMENTS(16, 2048),
    RING_ARGUMENT(&rules.ring, 4096),
    TOUCH_ARGUMENT(0),
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

// Each count is written by one thread; relaxed, for they order nothing.
struct belt {
  struct ring ring;
  _Alignas(PAD) _Atomic uint64_t made_bytes;  // the producer's
  _Alignas(PAD) _Atomic uint64_t freed_bytes; // the consumer's
};
static struct belt *belts;

struct pipeline_worker {
  struct worker worker;
  struct belt *belt;
  bool produces;
  uint64_t live_peak;
};

static inline size_t draw_bytes(struct worker *w) {
  return draw_size(draw(&w->random), block_rules.min, block_rules.max);
}

static inline void count_bytes(_Atomic uint64_t *count, size_t bytes) {
  uint64_t now = atomic_load_explicit(count, memory_order_relaxed);
  atomic_store_explicit(count, now + bytes, memory_order_relaxed);
}

static void sample_live(struct pipeline_worker *w) {
  uint64_t live = 0;
  for (size_t i = 0; i < rules.pairs; i++) {
    // Acquire keeps the second load behind the first.
    uint64_t made = atomic_load_explicit(&belts[i].made_bytes, memory_order_acquire);
    uint64_t freed = atomic_load_explicit(&belts[i].freed_bytes, memory_order_relaxed);
    if (made > freed) live += made - freed;
  }
  if (live > w->live_peak) w->live_peak = live;
}

static void make_block(struct pipeline_worker *w) {
  uint64_t stamp;
  size_t bytes = draw_bytes(&w->worker);
  void *p = block_take(&w->worker.witness, bytes, &stamp);
  count_bytes(&w->belt->made_bytes, bytes);
  if (ring_push(&w->belt->ring, p, stamp)) return;
  sample_live(w);
  while (!ring_push(&w->belt->ring, p, stamp)) sched_yield();
}

static void produce(struct pipeline_worker *w) {
  for (size_t batch; (batch = pace_next(&w->worker.pace, PACE_BATCH)) != 0;) {
    for (size_t i = 0; i < batch; i++) make_block(w);
    sample_live(w);
  }
  ring_close(&w->belt->ring);
  worker_end(&w->worker, 0); // the consumer counts
}

static size_t free_blocks(struct pipeline_worker *w) {
  size_t freed = ring_drain(&w->belt->ring, &w->worker.witness, CONSUMER_BATCH);
  size_t bytes = 0;
  for (size_t i = 0; i < freed; i++) bytes += draw_bytes(&w->worker);
  count_bytes(&w->belt->freed_bytes, bytes);
  return freed;
}

static void consume(struct pipeline_worker *w) {
  const struct timespec pause = {.tv_nsec = CONSUMER_PAUSE_NS};
  uint64_t blocks = 0;
  for (size_t empty = 0;;) {
    bool closed = ring_is_closed(&w->belt->ring);
    size_t freed = free_blocks(w);
    blocks += freed;
    empty = freed == 0 ? empty + 1 : 0;
    if (empty == 0) continue;
    if (closed) break;
    if (empty <= CONSUMER_YIELDS) {
      sched_yield();
    } else {
      nanosleep(&pause, NULL);
    }
  }
  worker_end(&w->worker, blocks);
}

static void *work(void *argument) {
  struct pipeline_worker *w = argument;
  worker_begin(&w->worker);
  if (w->produces) {
    produce(w);
  } else {
    consume(w);
  }
  return NULL;
}

static void prepare(void) {
  crew_map(2 * rules.pairs, sizeof(struct pipeline_worker));
  belts = state_map(rules.pairs * sizeof *belts);
  for (size_t i = 0; i < rules.pairs; i++) {
    belts[i].ring.entries = slots_map(rules.ring);
    for (size_t side = 0; side < 2; side++) {
      struct pipeline_worker *w = crew_worker(2 * i + side);
      w->belt = &belts[i];
      w->produces = side == 0;
      w->worker.random = draw_begin(i); // the same sizes on both sides
    }
  }
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules_check();
  ring_check(rules.ring);
  prepare();
  crew_run(work);
  struct figures figures = figures_of_crew();
  uint64_t live_peak = 0;
  for (size_t i = 0; i < crew.count; i++) {
    const struct pipeline_worker *w = crew_worker(i);
    if (w->live_peak > live_peak) live_peak = w->live_peak;
  }
  figures_rest(&figures);
  report(&figures, "live_peak_kib=%llu", (unsigned long long)(live_peak / 1024));
  return 0;
}
