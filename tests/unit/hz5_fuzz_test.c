// hz5 refuses every bad free, in the call that makes it, and no good one: a million random steps of
// two threads, of which one in ten is a bad free. Blocks keep what was written into them.
//
// TEST_SEED repeats a run; FUZZ_STEPS sets the number of steps.
#include "tests/unit/hz5_machine.h"

enum {
  PLACES = 600,
  GRAVES = 4096, // addresses of blocks that were freed
  DEFAULT_STEPS = SANITIZED  ? 100000
                  : HZ_DEBUG ? 300000
                             : 1000000,
};

static struct block places[PLACES];
static void *graves[GRAVES];
static uint64_t refused_so_far;

// ---- Two threads, one at a time -----------------------------------------------------------------

// The other thread does one thing at a time, and ends now and then: then its blocks have no owner.
static struct {
  _Atomic unsigned asked, done;
  void (*what)(void *);
  void *about;
  pthread_t thread;
} other;

static void *serve(void *unused) {
  (void)unused;
  for (unsigned served = atomic_load(&other.done);;) {
    while (atomic_load(&other.asked) == served) sched_yield();
    void (*what)(void *) = other.what;
    if (what != NULL) what(other.about);
    atomic_store(&other.done, ++served);
    if (what == NULL) return NULL;
  }
}

static void in_other(void (*what)(void *), void *about) {
  other.what = what;
  other.about = about;
  const unsigned number = atomic_fetch_add(&other.asked, 1) + 1;
  while (atomic_load(&other.done) != number) sched_yield();
}

static void other_begins(void) {
  other.thread = thread_start(serve, NULL);
}
static void other_ends(void) {
  in_other(NULL, NULL);
  pthread_join(other.thread, NULL);
}

static void in_some_thread(struct random_state *random, void (*what)(void *), void *about) {
  if (random_next(random) % 3 == 0) in_other(what, about);
  else what(about);
}

// ---- Good steps ---------------------------------------------------------------------------------

static struct random_state *dice;

static void do_take(void *block) {
  CHECK(block_take(block, dice), "no memory");
}
static void do_give(void *p) {
  give(p);
}

static void bury(void *p) {
  graves[random_between(dice, 0, GRAVES - 1)] = p;
}

static void good_step(void) {
  struct block *block = &places[random_between(dice, 0, PLACES - 1)];
  if (block->p == NULL) {
    in_some_thread(dice, do_take, block);
  } else {
    block_verify(block, block->bytes);
    bury(block->p);
    in_some_thread(dice, do_give, block->p);
    block->p = NULL;
  }
  CHECK(refused() == refused_so_far, "a good free is refused");
}

// ---- Bad ones -----------------------------------------------------------------------------------

static bool is_live(const void *p) {
  for (unsigned i = 0; i < PLACES; i++)
    if (places[i].p == p) return true;
  return false;
}

static struct block *some_live(void) {
  for (unsigned i = 0; i < PLACES; i++) {
    struct block *block = &places[random_between(dice, 0, PLACES - 1)];
    if (block->p != NULL) return block;
  }
  return NULL;
}

// Freed at some time, perhaps by a thread that has ended; its memory is whatever it has become.
static void *stale(void) {
  void *p = graves[random_between(dice, 0, GRAVES - 1)];
  return p != NULL && !is_live(p) ? p : NULL;
}

static void *interior(void) {
  const struct block *block = some_live();
  if (block == NULL) return NULL;
  const size_t usable = line->table.usable_size(block->p);
  return block->p + random_between(dice, 1, usable - 1);
}

static void *foreign(void) {
  static char data[64];
  char *const from[] = {data + 16, (char *)&other, (char *)(uintptr_t)16, (char *)-16,
                        (char *)hz_arena_base() + hz_arena_bytes() - 65536};
  return from[random_between(dice, 0, hz_count_of(from) - 1)];
}

// A block freed twice at once, in the same or in two threads.
static void *just_freed(void) {
  struct block *block = some_live();
  if (block == NULL) return NULL;
  char *p = block->p;
  block_verify(block, block->bytes);
  block->p = NULL;
  in_some_thread(dice, do_give, p);
  CHECK(refused() == refused_so_far, "a good free is refused");
  bury(p);
  return p;
}

static void bad_step(void) {
  void *(*const kinds[])(void) = {stale, interior, foreign, just_freed};
  const size_t kind = random_between(dice, 0, hz_count_of(kinds) - 1);
  void *p = kinds[kind]();
  if (p == NULL) return;
  in_some_thread(dice, do_give, p);
  refused_so_far++;
  CHECK(refused() == refused_so_far, "a bad free of kind %zu is accepted: %p", kind, p);
}

// ---- The run ------------------------------------------------------------------------------------

static void rare_step(uint64_t step) {
  fake_os_clock_add(random_between(dice, 0, 200));
  if (step % 8 == 0) line->trim(0);
  if (step % 4 == 0) {
    other_ends();
    other_begins();
  }
  check_sound();
}

static void every_bad_free_is_refused_and_no_good_one(void **state) {
  (void)state;
  const char *wanted = getenv("FUZZ_STEPS");
  const uint64_t steps = wanted != NULL ? strtoull(wanted, NULL, 0) : DEFAULT_STEPS;
  struct random_state random = random_start(seed_told());
  dice = &random;
  line_start();
  other_begins();
  for (uint64_t step = 1; step <= steps; step++) {
    if (random_next(&random) % 10 == 0) bad_step();
    else good_step();
    if (step % 2000 == 0) rare_step(step / 2000);
  }
  other_ends();
  say("%llu bad frees in %llu steps\n", (unsigned long long)refused_so_far,
      (unsigned long long)steps);
  CHECK(refused_so_far > steps / 20, "too few bad frees to prove anything");
  blocks_give(places, PLACES);
  CHECK(refused() == refused_so_far, "a good free is refused");
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_bad_free_is_refused_and_no_good_one),
  };
  return isolated_run(tests, hz_count_of(tests));
}
