// Runs with blocks that others have freed, on their way to their owners.
//
// Who sets `queued` brings the run to its owner's queue, or takes care of it there and then.
// `queued` is of the slab, not of the run: who comes late finds another run there, or none, and
// leaves it in peace. A thread sends the runs of one owner as a chain, so that the two meet in the
// queue's cache line once per chain; a chain that waits holds up to HZ5_CHAIN_SLABS.
#include "lines/hz5/hz5_model.h"

#include "core/counter.h"

static bool is_queued(struct hz5_slab *run) {
  return atomic_load_explicit(&run->queued, memory_order_seq_cst) == hz5_forks;
}
// True: we are to take care of it.
static bool set_queued(struct hz5_slab *run) {
  return !is_queued(run) &&
         atomic_exchange_explicit(&run->queued, hz5_forks, memory_order_seq_cst) != hz5_forks;
}

void hz5_unqueue(struct hz5_slab *run) {
  atomic_store_explicit(&run->queued, 0, memory_order_seq_cst);
}

// ---- Sending ------------------------------------------------------------------------------------

// Runs from `first` to `last`, linked by next_queued. False: nobody will come for them.
static bool push(struct hz5_heap *heap, uint32_t first, struct hz5_slab *last) {
  uint32_t top = atomic_load_explicit(&heap->queue, memory_order_relaxed);
  do {
    if (top == HZ5_CLOSED) return false;
    atomic_store_explicit(&last->next_queued, top, memory_order_relaxed);
    // Release pairs with the acquire of who takes the queue.
  } while (!atomic_compare_exchange_weak_explicit(&heap->queue, &top, first, memory_order_release,
                                                  memory_order_relaxed));
  return true;
}

// A slab that is not the first one of a run is nobody's.
static uint32_t owner_of_run(struct hz5_slab *run) {
  const uint32_t owner = atomic_load_explicit(&run->owner, memory_order_seq_cst);
  return run->at == 0 ? owner : HZ5_NOBODY;
}

// The run, whose `queued` we have set, may have blocks that others have freed: its owner is to
// know.
static void announce(struct hz5_slab *run) {
  for (;;) {
    const uint32_t owner = owner_of_run(run);
    if (owner <= HZ5_VACANT) {
      hz5_unqueue(run);
      // It may be a heap's again meanwhile, and who freed a block of it relied on us.
      if (owner_of_run(run) <= HZ5_VACANT || !set_queued(run)) return;
    } else {
      struct hz5_heap *heap = owner >= HZ5_TOKENS ? hz5_heap_of(owner) : NULL;
      if (heap != NULL && push(heap, hz5_name(run), run)) return;
      if (hz5_pool_absorb(run, owner)) return;
    }
  }
}

// Runs from `first` to `last`, whichever heaps they belong to by now.
static void announce_each(uint32_t first, uint32_t last) {
  for (uint32_t name = first, next; name != 0; name = name == last ? 0 : next) {
    next = atomic_load_explicit(&hz5_named(name)->next_queued, memory_order_relaxed);
    announce(hz5_named(name));
  }
}

// What comes behind `last` when push has failed is the receiver's, not ours.
static void send(struct hz5_chain *chain) {
  if (chain->slabs == 0) return;
  const struct hz5_chain sent = *chain;
  chain->slabs = 0;
  hz_count(HZ_COUNT_remote_batches, sent.runs);
  if (!push(hz5_heap_of(sent.token), sent.first, hz5_named(sent.last)))
    announce_each(sent.first, sent.last);
}

void hz5_send(struct hz5_heap *heap) {
  for (unsigned i = 0; i < HZ5_CHAINS; i++) send(&heap->chains[i]);
}

static void append(struct hz5_chain *chain, uint32_t token, struct hz5_slab *run) {
  if (chain->slabs != 0 && chain->token != token) send(chain);
  if (chain->slabs == 0) *chain = (struct hz5_chain){.token = token, .last = hz5_name(run)};
  atomic_store_explicit(&run->next_queued, chain->first, memory_order_relaxed);
  chain->first = hz5_name(run);
  chain->runs++;
  chain->slabs += hz5_class(run)->slabs;
}

void hz5_queue(struct hz5_heap *heap, struct hz5_slab *run) {
  if (!set_queued(run)) return;
  const uint32_t owner = owner_of_run(run);
  if (heap == NULL || owner < HZ5_TOKENS) {
    hz_count(HZ_COUNT_remote_batches, 1);
    announce(run);
    return;
  }
  struct hz5_chain *chain = &heap->chains[(owner >> HZ5_GENERATION_BITS) % HZ5_CHAINS];
  append(chain, owner, run);
  if (chain->slabs < HZ5_CHAIN_SLABS) return;
  send(chain);
  hz5_collect(heap);
  hz5_slow_path_done(heap);
}

// ---- Taking in ----------------------------------------------------------------------------------

static void take_in(struct hz5_heap *heap, uint32_t name) {
  uint32_t runs = 0, blocks = 0;
  for (; name != 0; runs++) {
    struct hz5_slab *run = hz5_named(name);
    name = atomic_load_explicit(&run->next_queued, memory_order_relaxed);
    // It was ours when it was put here.
    if (owner_of_run(run) != heap->token) {
      announce(run);
      continue;
    }
    hz5_unqueue(run);
    blocks += hz5_run_take_in(&heap->listed[run->class_id], run);
  }
  if (runs != 0) hz_count(HZ_COUNT_collected, runs);
  if (blocks != 0) hz_count(HZ_COUNT_remote_frees, blocks);
}

void hz5_collect(struct hz5_heap *heap) {
  hz5_after_fork();
  if (atomic_load_explicit(&heap->queue, memory_order_relaxed) == 0) return;
  take_in(heap, atomic_exchange_explicit(&heap->queue, 0, memory_order_acquire));
}

void hz5_queue_close(struct hz5_heap *heap) {
  hz5_send(heap);
  take_in(heap, atomic_exchange_explicit(&heap->queue, HZ5_CLOSED, memory_order_acquire));
}

// ---- Forks --------------------------------------------------------------------------------------

uint32_t hz5_forks = 1;
static _Atomic uint32_t forks_seen = 1;

void hz5_queue_leave(struct hz5_heap *heap) {
  const uint32_t first = atomic_exchange_explicit(&heap->queue, HZ5_CLOSED, memory_order_acquire);
  if (first != HZ5_CLOSED) announce_each(first, 0);
}

static HZ_SLOW void queue_again(void) {
  for (struct hz5_slab *run = NULL, *next = hz5_run_next(run); (run = next) != NULL;) {
    next = hz5_run_next(run);
    uint32_t queued = atomic_load_explicit(&run->queued, memory_order_seq_cst);
    if (queued != 0 && queued != hz5_forks) hz5_queue(NULL, run);
  }
}

void hz5_after_fork(void) {
  if (hz_likely(atomic_load_explicit(&forks_seen, memory_order_relaxed) == hz5_forks)) return;
  if (atomic_exchange_explicit(&forks_seen, hz5_forks, memory_order_relaxed) != hz5_forks)
    queue_again();
}
