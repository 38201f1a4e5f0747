// The `remote` lanes: threads that allocate, and free what their neighbour allocated.
//
//   remote THREADS STEPS WS MIN MAX REMOTE RING TOUCH [fallback]
//
// Each of THREADS threads owns WS slots and does STEPS steps. A step draws a slot: empty, then it
// gets a block of MIN to MAX bytes; full, then the block is freed here or, in REMOTE of 100 cases,
// handed to the next thread through a ring of RING entries (a power of two). Before each step of
// its own a thread frees everything that it finds in its ring. A full ring makes a thread drain its
// own ring and yield until there is room, so that every allocator does the same remote work; with
// `fallback` it frees the block here instead, and the share printed is smaller. TOUCH > 0 writes
// the first TOUCH bytes of each block (at most its size) and verifies them when it is freed.
//
// A step is one operation. Time runs from the first worker's start to the last one's end, both
// stamped by the workers, and an end comes after everything handed over was freed. All state of
// the harness is mapped, touched beforehand and padded to 128 bytes, so that no allocator's layout
// decides what shares a cache line. Prints mops (million operations per second), seconds, remote
// (per cent of the frees that were handed over), heap_kib (peak RSS above that before the workers
// began). Exit code 1: a block's bytes were not what was written.
//
// By hand: gcc -O2 -pthread -o /tmp/remote bench/remote.c
//          && /tmp/remote 16 500000 400 16 32768 90 65536 0
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAD = 128, MAX_THREADS = 1024, DRAIN_PAUSE_NS = 50000 };

struct lane {
  size_t threads, steps, ws, min, max, remote, ring, touch;
  bool fallback;
};
static struct lane lane;

// One producer (the thread before), one consumer. Counts only grow; entries are taken modulo ring.
struct ring {
  _Alignas(PAD) _Atomic uint64_t head; // written by the producer, release; read by the consumer
  uint64_t tail_seen;                  // the producer's last view of tail
  _Atomic bool closed;                 // the producer has ended
  _Alignas(PAD) _Atomic uint64_t tail; // written by the consumer, release; read by the producer
  _Alignas(PAD) void **entries;        // constant
};

struct worker {
  _Alignas(PAD) pthread_t thread;
  struct ring *in, *out;
  void **slots;
  uint64_t random;
  uint64_t frees, handed, stamp, damaged;
  double begin, end;
};

static pthread_barrier_t barrier;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t draw(uint64_t *state) { // xorshift64
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

// A touched block describes itself: its first word is a stamp, the second the words written, the
// others repeat the stamp. A freed block's stamp is cleared: whoever owns it too will notice.
static void write_block(struct worker *w, void *p, size_t bytes) {
  uint64_t *words = p, stamp = ++w->stamp * 0x9e3779b97f4a7c15u | 1;
  size_t n = (bytes < lane.touch ? bytes : lane.touch) / sizeof *words;
  words[0] = stamp;
  words[1] = n;
  for (size_t i = 2; i < n; i++) words[i] = stamp;
}

static void verify_block(struct worker *w, void *p) {
  uint64_t *words = p, stamp = words[0];
  size_t n = words[1];
  bool good = (stamp & 1) != 0 && n >= 2 && n <= lane.touch / sizeof *words;
  for (size_t i = 2; good && i < n; i++) good = words[i] == stamp;
  if (!good) w->damaged++;
  words[0] = 0;
}

static void *take_block(struct worker *w, size_t bytes) {
  void *p = malloc(bytes);
  if (p == NULL) {
    fprintf(stderr, "remote: malloc(%zu) returned NULL\n", bytes);
    exit(1);
  }
  if (lane.touch != 0) write_block(w, p, bytes);
  return p;
}

static void free_block(struct worker *w, void *p) {
  if (lane.touch != 0) verify_block(w, p);
  free(p);
}

// Frees what the neighbour has handed over. Returns how many.
static inline uint64_t drain(struct worker *w) {
  struct ring *in = w->in;
  uint64_t tail = atomic_load_explicit(&in->tail, memory_order_relaxed);
  uint64_t head = atomic_load_explicit(&in->head, memory_order_acquire);
  uint64_t found = head - tail;
  if (found == 0) return 0;
  for (; tail != head; tail++) free_block(w, in->entries[tail & (lane.ring - 1)]);
  atomic_store_explicit(&in->tail, tail, memory_order_release);
  return found;
}

static inline bool push(struct ring *out, void *p) {
  uint64_t head = atomic_load_explicit(&out->head, memory_order_relaxed);
  if (head - out->tail_seen == lane.ring) {
    out->tail_seen = atomic_load_explicit(&out->tail, memory_order_acquire);
    if (head - out->tail_seen == lane.ring) return false;
  }
  out->entries[head & (lane.ring - 1)] = p;
  atomic_store_explicit(&out->head, head + 1, memory_order_release);
  return true;
}

static void hand_over(struct worker *w, void *p) {
  while (!push(w->out, p)) {
    if (lane.fallback) {
      free_block(w, p);
      return;
    }
    drain(w);
    sched_yield();
  }
  w->handed++;
}

// The draw's bits: 0..19 the slot, 20..43 the size, 44..63 local or remote.
static void step(struct worker *w) {
  uint64_t r = draw(&w->random);
  void **slot = &w->slots[((r & 0xfffff) * lane.ws) >> 20];
  if (*slot == NULL) {
    size_t span = lane.max - lane.min + 1;
    *slot = take_block(w, lane.min + ((((r >> 20) & 0xffffff) * span) >> 24));
    return;
  }
  w->frees++;
  if (((r >> 44) * 100) >> 20 < lane.remote) {
    hand_over(w, *slot);
  } else {
    free_block(w, *slot);
  }
  *slot = NULL;
}

static void *work(void *argument) {
  struct worker *w = argument;
  pthread_barrier_wait(&barrier);
  w->begin = now();
  for (size_t i = 0; i < lane.steps; i++) {
    drain(w);
    step(w);
  }
  atomic_store_explicit(&w->out->closed, true, memory_order_release); // pairs with the load below
  const struct timespec pause = {.tv_nsec = DRAIN_PAUSE_NS};
  for (;;) {
    bool closed = atomic_load_explicit(&w->in->closed, memory_order_acquire);
    if (drain(w) == 0 && closed) break;
    if (!closed) nanosleep(&pause, NULL); // leaves the cores to those that still work
  }
  w->end = now();
  for (size_t i = 0; i < lane.ws; i++) {
    if (w->slots[i] != NULL) free_block(w, w->slots[i]);
  }
  return NULL;
}

// Mapped and written once, so that it is part of the RSS before the workers begin.
static void *map_state(size_t bytes) {
  void *p =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) {
    perror("remote: mmap of the harness's state");
    exit(1);
  }
  return p;
}

static size_t padded(size_t bytes) {
  return (bytes + PAD - 1) & ~(size_t)(PAD - 1);
}

static struct worker *prepare(void) {
  size_t slot_bytes = padded(lane.ws * sizeof(void *)),
         ring_bytes = padded(lane.ring * sizeof(void *));
  struct worker *workers = map_state(lane.threads * sizeof *workers);
  struct ring *rings = map_state(lane.threads * sizeof *rings);
  char *slots = map_state(lane.threads * slot_bytes),
       *entries = map_state(lane.threads * ring_bytes);
  for (size_t i = 0; i < lane.threads; i++) {
    rings[i].entries = (void **)(entries + i * ring_bytes);
    workers[i].in = &rings[i];
    workers[i].out = &rings[(i + 1) % lane.threads];
    workers[i].slots = (void **)(slots + i * slot_bytes);
    workers[i].random = 0x2545f4914f6cdd1du * (i + 1);
    workers[i].stamp = (uint64_t)i << 40;
  }
  return workers;
}

// Resident KiB now: the second number of /proc/self/statm, in pages.
static long resident_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long pages = 0;
  if (file != NULL) {
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
  }
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int report(const struct worker *workers, long before_kib) {
  double begin = workers[0].begin, end = workers[0].end;
  uint64_t frees = 0, handed = 0, damaged = 0;
  for (size_t i = 0; i < lane.threads; i++) {
    if (workers[i].begin < begin) begin = workers[i].begin;
    if (workers[i].end > end) end = workers[i].end;
    frees += workers[i].frees;
    handed += workers[i].handed;
    damaged += workers[i].damaged;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double operations = (double)lane.threads * (double)lane.steps;
  printf("mops=%.3f seconds=%.3f remote=%.1f heap_kib=%ld\n", operations / 1e6 / (end - begin),
         end - begin, frees == 0 ? 0.0 : 100.0 * (double)handed / (double)frees,
         usage.ru_maxrss - before_kib);
  if (damaged == 0) return 0;
  fprintf(stderr, "remote: %llu blocks were damaged between their write and their free\n",
          (unsigned long long)damaged);
  return 1;
}

static bool parse(int argc, char **argv) {
  size_t *fields[] = {&lane.threads, &lane.steps,  &lane.ws,   &lane.min,
                      &lane.max,     &lane.remote, &lane.ring, &lane.touch};
  if (argc != 9 && argc != 10) return false;
  for (size_t i = 0; i < 8; i++) {
    char *end;
    *fields[i] = strtoull(argv[i + 1], &end, 10);
    if (*end != '\0') return false;
  }
  if (argc == 10 && strcmp(argv[9], "fallback") != 0) return false;
  lane.fallback = argc == 10;
  bool counts = lane.threads >= 1 && lane.threads <= MAX_THREADS && lane.steps >= 1 && lane.ws >= 1;
  bool sizes = lane.min <= lane.max && lane.max < 1u << 30;
  bool ring = lane.ring >= 1 && (lane.ring & (lane.ring - 1)) == 0;
  bool touch = lane.touch == 0 || (lane.touch >= 16 && lane.min >= 16);
  return counts && sizes && ring && touch && lane.ws < 1u << 20 && lane.remote <= 100;
}

int main(int argc, char **argv) {
  if (!parse(argc, argv)) {
    fprintf(stderr,
            "remote: expected: remote THREADS STEPS WS MIN MAX REMOTE RING TOUCH [fallback], "
            "with REMOTE 0 to 100, RING a power of two, TOUCH 0 or at least 16 (then MIN too)\n");
    return 2;
  }
  struct worker *workers = prepare();
  pthread_barrier_init(&barrier, NULL, (unsigned)lane.threads);
  long before_kib = resident_kib();
  for (size_t i = 0; i < lane.threads; i++) {
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
      fprintf(stderr, "remote: thread %zu of %zu could not be created\n", i + 1, lane.threads);
      return 1;
    }
  }
  for (size_t i = 0; i < lane.threads; i++) pthread_join(workers[i].thread, NULL);
  return report(workers, before_kib);
}
