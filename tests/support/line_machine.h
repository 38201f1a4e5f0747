// One line of the allocator on the machine of tests/support/fake_os.h: started with its defaults or
// a profile, used through struct hz_line, and asked at the end whether anything was lost.
//
// Which line: the includer has defined `line`, a pointer to its struct hz_line: a constant, or a
// variable that is set before anything here is called.
#ifndef TESTS_SUPPORT_LINE_MACHINE_H
#define TESTS_SUPPORT_LINE_MACHINE_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "core/counter.h"
#include "core/misuse.h"
#include "core/thread.h"
#include "lines/line.h"
#include "tests/support/check.h"
#include "tests/support/fake_os.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"

// ---- Start --------------------------------------------------------------------------------------

static struct hz_core_options core_options = {
    .reserve_bytes = HZ_GIB,
    .purge_idle_ms = 500,
    .run_cache_bytes = 4 * HZ_MIB,
    .run_batch = 1,
    .large_cache_bytes = 64 * HZ_MIB,
};

static inline void option_set(const char *section, const char *key, uint64_t value) {
  if (strcmp(section, "purge") == 0) core_options.purge_idle_ms = value;
  else if (strcmp(key, "run_bytes") == 0) core_options.run_cache_bytes = value;
  else if (strcmp(key, "run_batch") == 0) core_options.run_batch = (unsigned)value;
  else if (strcmp(key, "run_transfer") == 0) core_options.run_transfer = value;
  else if (strcmp(key, "large_bytes") == 0) core_options.large_cache_bytes = value;
  for (size_t i = 0; i < line->info->option_count; i++) {
    const struct hz_option *row = &line->info->options[i];
    if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0) *row->dest = value;
  }
}

static inline void options_default(void) {
  for (size_t i = 0; i < line->info->option_count; i++)
    *line->info->options[i].dest = line->info->options[i].value;
}

static inline void options_profile(const struct hz_profile *profile) {
  options_default();
  for (const struct hz_setting *s = profile->settings; s->section != NULL; s++)
    option_set(s->section, s->key, s->value);
}

// With the options as they are.
static inline void line_start_as_set(void) {
  fake_os_install();
  hz_misuse_action = HZ_MISUSE_IGNORE;
  CHECK(hz_core_start(&core_options), "core does not start");
  CHECK(line->start(), "the line does not start");
}

static inline void line_start(void) {
  options_default();
  line_start_as_set();
}

// ---- Use ----------------------------------------------------------------------------------------

static inline void *take(size_t bytes) {
  return hz_line_table(line)->alloc(bytes);
}
static inline void give(void *p) {
  hz_line_table(line)->release(p);
}
static inline uint64_t count(enum hz_counter counter) {
  return hz_counter_read(counter);
}
static inline struct hz_gauges gauges(void) {
  struct hz_gauges now;
  line->gauges(&now);
  return now;
}

// A slow path of this thread after so much time; nothing of a class is touched.
static inline void pass_ms(uint64_t ms) {
  fake_os_clock_add(ms);
  give(take(9 * HZ_MIB));
}

// In any thread.
static inline void check_sound(void) {
  const char *broken = line->check();
  CHECK(broken == NULL, "%s", broken);
}

// A trim by this thread on each processor in turn: what a line keeps per processor, it can reach
// from there alone.
static inline void trim_everywhere(void) {
  cpu_set_t all, one;
  CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "cannot ask where the thread may run");
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "cannot go to processor %d", cpu);
    line->trim(0);
  }
  CHECK(sched_setaffinity(0, sizeof all, &all) == 0, "cannot leave a processor");
}

// Everything has been freed: nothing may be left but what the tables cost.
static inline void check_nothing_lost_but(uint64_t committed) {
  trim_everywhere();
  check_sound();
  const struct hz_gauges now = gauges();
  CHECK(now.live_bytes == 0, "%llu bytes are lost", (unsigned long long)now.live_bytes);
  CHECK(now.free_bytes == 0, "%llu free bytes stay behind", (unsigned long long)now.free_bytes);
  CHECK(now.large_blocks == 0, "%llu large blocks are lost", (unsigned long long)now.large_blocks);
  CHECK(now.committed_bytes <= committed, "%llu bytes stay committed",
        (unsigned long long)now.committed_bytes);
}

static inline void check_nothing_lost(void) {
  check_nothing_lost_but(0);
}

// ---- Threads and processes ----------------------------------------------------------------------

static inline pthread_t thread_start(void *(*run)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run, argument) == 0, "no thread");
  return thread;
}

static inline void in_thread(void *(*run)(void *), void *argument) {
  pthread_join(thread_start(run, argument), NULL);
}

// Threads of a case wait for each other by number: no one sleeps.
static atomic_uint turn;

static inline void wait_turn(unsigned which) {
  while (atomic_load(&turn) < which) sched_yield();
}

static inline pid_t fork_with_handlers(void) {
  hz_fork_prepare();
  const pid_t child = fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) hz_fork_child();
  else hz_fork_parent();
  return child;
}

static inline void check_child(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child, "no child");
  CHECK(status == 0, "the child failed with status %d", status);
}

// Cases that need a process per profile or per round.
static inline void in_child(void (*run)(uint64_t), uint64_t argument) {
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    run(argument);
    exit(0);
  }
  check_child(child);
}

// ---- Blocks of one size, in places that all threads see -----------------------------------------

enum { BYTES = 1000 };
static void *blocks[5000];

static inline void take_blocks(unsigned n) {
  for (unsigned i = 0; i < n; i++) CHECK((blocks[i] = take(BYTES)) != NULL, "no memory");
}
static inline void give_blocks(unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) give(blocks[i]);
}

static inline void *take_many(void *n) {
  take_blocks(*(unsigned *)n);
  return NULL;
}

// Frees blocks[from..to) in a thread of its own. range: from, to.
static inline void *give_range(void *range) {
  give_blocks(((unsigned *)range)[0], ((unsigned *)range)[1]);
  return NULL;
}
static inline void give_in_thread(unsigned from, unsigned to) {
  in_thread(give_range, (unsigned[]){from, to});
}

// ---- Random work --------------------------------------------------------------------------------

struct block {
  char *p;
  size_t bytes;
  unsigned tag;
};

// Mostly small, some of every kind.
static inline size_t random_size(struct random_state *random) {
  const size_t kind = random_between(random, 0, 63);
  return random_between(random, 0,
                        kind == 0   ? 6 * HZ_MIB
                        : kind < 5  ? 128 * HZ_KIB
                        : kind < 16 ? 16 * HZ_KIB
                                    : HZ_KIB);
}

static inline void block_fill(struct block *block, size_t bytes, unsigned tag) {
  block->bytes = bytes;
  block->tag = tag;
  pattern_fill(block->p, bytes, tag);
}

static inline void block_verify(const struct block *block, size_t kept) {
  const size_t intact = pattern_intact(block->p, block->bytes, kept, block->tag);
  CHECK(intact == kept, "block %p of %zu bytes: byte %zu was overwritten", (void *)block->p,
        block->bytes, intact);
}

static inline void block_give(struct block *block) {
  block_verify(block, block->bytes);
  give(block->p);
  block->p = NULL;
}

static inline void check_zero(const char *p, size_t bytes) {
  for (size_t i = 0; i < bytes; i += i < 4096 ? 1 : 509)
    CHECK(p[i] == 0, "byte %zu of %zu is not zero", i, bytes);
}

static inline bool block_take(struct block *block, struct random_state *random) {
  const size_t bytes = random_size(random);
  const unsigned how = (unsigned)random_between(random, 0, 7);
  const bool aligned = how == 0 || how == 2;
  const size_t align = aligned ? (size_t)16 << random_between(random, 0, how == 0 ? 16 : 8) : 16;
  errno = 0;
  block->p = how == 1  ? hz_line_table(line)->alloc_zeroed(bytes)
             : aligned ? hz_line_table(line)->alloc_aligned(align, bytes)
                       : take(bytes);
  CHECK(block->p != NULL || errno == ENOMEM, "NULL without ENOMEM");
  if (block->p == NULL) return false;
  CHECK((uintptr_t)block->p % align == 0, "%p is not aligned", (void *)block->p);
  if (how == 1) check_zero(block->p, bytes);
  CHECK(hz_line_table(line)->usable_size(block->p) >= bytes, "too small");
  block_fill(block, bytes, (unsigned)random_next(random));
  return true;
}

static inline void block_resize(struct block *block, struct random_state *random) {
  const size_t bytes = random_size(random) + 1;
  char *p = hz_line_table(line)->resize(block->p, bytes);
  if (p == NULL) return; // the block is as it was
  block->p = p;
  block_verify(block, hz_min(bytes, block->bytes));
  CHECK(hz_line_table(line)->usable_size(p) >= bytes, "too small after resize");
  block_fill(block, bytes, block->tag + 1);
}

// One step on one of `places`. False: memory was refused.
static inline bool random_step(struct block *mine, size_t places, struct random_state *random) {
  struct block *block = &mine[random_between(random, 0, places - 1)];
  if (block->p == NULL) return block_take(block, random);
  if (random_next(random) % 8 == 0) block_resize(block, random);
  else block_give(block);
  return true;
}

static inline void blocks_give(struct block *mine, size_t places) {
  for (size_t i = 0; i < places; i++)
    if (mine[i].p != NULL) block_give(&mine[i]);
}

static inline uint64_t seed_told(void) {
  const uint64_t seed = random_seed(NULL);
  say("seed %llu\n", (unsigned long long)seed);
  return seed;
}

// ---- Memory that has been idle ------------------------------------------------------------------

// settle: brings all that is free down to the runs; NULL: it is there already.
static inline void check_pages_inside_runs_go(void (*settle)(void)) {
  for (unsigned i = 0; i < 512; i++) memset(blocks[i] = take(4096), 1, 4096);
  for (unsigned i = 0; i < 512; i += 2) give(blocks[i]);
  if (settle != NULL) settle();
  const uint64_t before = count(HZ_COUNT_purged);
  pass_ms(0);
  assert_int_equal(count(HZ_COUNT_purged), before);
  for (unsigned ms = 0; ms < 4000; ms += 125) pass_ms(125);
  assert_true(count(HZ_COUNT_purged) - before >= 256 * 4096);
  for (unsigned i = 1; i < 512; i += 2) give(blocks[i]);
  check_nothing_lost();
}

// The same; cache.large_bytes is 0.
static inline void check_empty_runs_go(void (*settle)(void)) {
  take_blocks(5000);
  give_blocks(0, 5000);
  if (settle != NULL) settle();
  assert_int_equal(count(HZ_COUNT_runs_returned), count(HZ_COUNT_runs_carved));
  assert_int_equal(gauges().live_bytes, 0);
  const uint64_t dirty = gauges().free_bytes;
  assert_true(dirty >= 5000 * BYTES);
  pass_ms(0);
  assert_true(gauges().free_bytes >= dirty);
  for (unsigned ms = 0; ms < 2000; ms += 125) pass_ms(125);
  assert_int_equal(gauges().free_bytes, 0);
  assert_int_equal(gauges().committed_bytes, 0);
  check_sound();
}

// ---- Threads that allocate after the line's exit callback ---------------------------------------

// The C library makes four rounds of destructors. A sanitizer ends its own part of a thread in the
// last of them. `rounds`: how many the destructor below takes part in.
struct late_work {
  pthread_key_t key;
  unsigned rounds;
  _Atomic unsigned done; // rounds of all threads
};
static struct late_work late;

// Destructors that run after ours find a thread that has no heap any more.
static inline void allocate_late(void *p) {
  static __thread unsigned round;
  struct block *block = p;
  block_give(block);
  struct random_state random = random_start(7);
  struct block mine[60] = {0};
  for (int i = 0; i < 600; i++) random_step(mine, hz_count_of(mine), &random);
  blocks_give(mine, hz_count_of(mine));
  atomic_fetch_add(&late.done, 1);
  if (++round == late.rounds) return;
  CHECK((block->p = take(BYTES)) != NULL, "no memory");
  block_fill(block, BYTES, 5);
  pthread_setspecific(late.key, block);
}

static inline void *leave_a_block(void *unused) {
  (void)unused;
  static __thread struct block block;
  block.p = take(BYTES);
  block_fill(&block, BYTES, 5);
  pthread_setspecific(late.key, &block);
  return NULL;
}

static inline void threads_work_late(unsigned threads, unsigned rounds) {
  if (late.rounds == 0) CHECK(pthread_key_create(&late.key, allocate_late) == 0, "no key");
  late.rounds = rounds;
  const unsigned before = atomic_load(&late.done);
  for (unsigned i = 0; i < threads; i++) in_thread(leave_a_block, NULL);
  CHECK(atomic_load(&late.done) == before + threads * rounds, "a round is missing");
}

#endif
