// `pipeline`: producers that only allocate and consumers that only free.
//
//   pipeline [pairs=1] [min=16] [max=2048] [ring=4096] [touch=0] [seed=1] [seconds=0.5 | steps=N]
//            [rest_ms=10]
//
// Each pair is a producer and a consumer, two threads, with a ring of `ring` entries (a power of
// two) between them. The producer tells the consumer of its blocks in batches, and yields while the
// ring is full; the consumer, while it is empty, yields a few times and then sleeps, so that the
// cores go to those who work. touch: see blocks.h.
//
// A batch, because a consumer that reads a cache line of the ring while the producer still fills it
// slows both down, and the more the faster it is: an allocator that did nothing came out at half
// the speed of one that works.
//
// A block that was allocated and freed is one operation; a step is a block that a producer makes.
// Prints besides the common figures live_peak_kib=, by which peak_kib is to be judged: the most
// bytes asked for and not yet freed. Producer and consumer each count the bytes that they have made
// and are about to free, in a cache line of their own; a block's size goes with it through the
// ring. After each 256 blocks a producer adds up all pairs. It reads `made` before `freed`: the sum
// may be too small, as it is when the reader was interrupted between the two, but never too large.
#include <sched.h>

#include "crew.h"
#include "report.h"
#include "ring.h"

enum { PRODUCER_BATCH = 64, CONSUMER_BATCH = 64, CONSUMER_YIELDS = 16, CONSUMER_PAUSE_NS = 50000 };

static struct { size_t pairs, ring; } rules;

static const struct argument arguments[] = {
    {.key = "pairs", .value = &rules.pairs, .usual = 1, .least = 1, .most = THREADS_MOST / 2},
    SIZE_ARGUMENTS(16, 2048),
    RING_ARGUMENT(&rules.ring, 4096),
    TOUCH_ARGUMENT(0),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

// Each count is written by one thread; relaxed, for they order nothing.
struct belt {
  struct ring ring;
  _Alignas(PAD) _Atomic uint64_t made_bytes;  // the producer's
  _Alignas(PAD) _Atomic uint64_t freed_bytes; // the consumer's
  _Alignas(PAD) uint32_t *sizes;              // of the blocks in the ring, entry by entry
};
static struct belt *belts;

struct pipeline_worker {
  struct worker worker;
  struct belt *belt;
  bool produces;
  uint64_t blocks; // made or freed so far
  uint64_t live_peak;
};

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

// The ring's entry of the worker's block number `block`.
static inline uint32_t *find_size(const struct pipeline_worker *w, uint64_t block) {
  return &w->belt->sizes[block & (rules.ring - 1)];
}

static void make_block(struct pipeline_worker *w) {
  uint64_t stamp;
  size_t bytes = draw_size(draw(&w->worker.random), block_rules.min, block_rules.max);
  void *p = block_take(&w->worker.witness, bytes, &stamp);
  count_bytes(&w->belt->made_bytes, bytes);
  while (!ring_has_room(&w->belt->ring)) {
    ring_publish(&w->belt->ring); // a ring smaller than a batch
    sched_yield();
  }
  *find_size(w, w->blocks++) = (uint32_t)bytes;
  ring_fill(&w->belt->ring, p, stamp);
  if (w->blocks % PRODUCER_BATCH == 0) ring_publish(&w->belt->ring); // the sizes are seen with it
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
  size_t found = ring_count(&w->belt->ring, CONSUMER_BATCH), bytes = 0;
  for (size_t i = 0; i < found; i++) bytes += *find_size(w, w->blocks++);
  if (found != 0) count_bytes(&w->belt->freed_bytes, bytes);
  return ring_drain(&w->belt->ring, &w->worker.witness, found);
}

static void consume(struct pipeline_worker *w) {
  const struct timespec pause = {.tv_nsec = CONSUMER_PAUSE_NS};
  for (size_t empty = 0;;) {
    bool closed = ring_is_closed(&w->belt->ring);
    size_t freed = free_blocks(w);
    empty = freed == 0 ? empty + 1 : 0;
    if (empty == 0) continue;
    if (closed) break;
    if (empty <= CONSUMER_YIELDS) {
      sched_yield();
    } else {
      nanosleep(&pause, NULL);
    }
  }
  worker_end(&w->worker, w->blocks);
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
    belts[i].sizes = state_map(rules.ring * sizeof *belts[i].sizes);
    for (size_t side = 0; side < 2; side++) {
      struct pipeline_worker *w = crew_worker(2 * i + side);
      w->belt = &belts[i];
      w->produces = side == 0;
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
