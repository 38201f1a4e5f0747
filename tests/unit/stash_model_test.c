// The stash of core/magazine.h and the lock of core/lock.h as machines of single memory accesses:
// all interleavings of a few threads are walked, and in none is a packet lost or taken twice, do
// two threads hold the lock, or does one sleep for ever.
//
// The machines follow the code access by access; the order of accesses is what they show, not the
// memory orders of weaker processors. To show that the walk would notice, each is also walked with
// one mistake built in.
#include <setjmp.h>
#include <stdarg.h>
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/check.h"

// ---- Walking all states ------------------------------------------------------------------------

enum { STATE_BYTES = 48, TABLE_BITS = 22, TABLE = 1 << TABLE_BITS };

// A machine's state, all bytes of it meaningful.
struct state {
  uint8_t bytes[STATE_BYTES];
};

struct model {
  unsigned threads;
  // Makes the next access of a thread. False: it has ended or sleeps.
  bool (*step)(struct state *state, unsigned thread);
  // What is wrong with a state, or NULL. `stuck`: no thread can go on.
  const char *(*broken)(const struct state *state, bool stuck);
};

static struct state *table; // of states seen; an all-zero one is an empty place
static struct state *stack;
static size_t seen, depth;

static uint64_t hash_of(const struct state *state) {
  uint64_t hash = 1;
  for (size_t i = 0; i < STATE_BYTES; i += 8) {
    uint64_t word;
    memcpy(&word, state->bytes + i, 8);
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
  }
  return hash >> (64 - TABLE_BITS);
}

static void visit(const struct state *state) {
  static const struct state empty;
  uint64_t place = hash_of(state);
  for (; memcmp(&table[place], &empty, STATE_BYTES) != 0; place = (place + 1) % TABLE)
    if (memcmp(&table[place], state, STATE_BYTES) == 0) return;
  table[place] = *state;
  CHECK(++seen < TABLE / 4 * 3, "the model has too many states");
  stack[depth++] = *state;
}

// The first thing that is wrong in any state that can be reached, or NULL.
static const char *walk(const struct model *model, const struct state *start) {
  table = calloc(TABLE, sizeof *table);
  stack = malloc(TABLE * sizeof *stack);
  CHECK(table != NULL && stack != NULL, "no memory for the walk");
  seen = depth = 0;
  visit(start);
  const char *broken = NULL;
  while (depth > 0 && broken == NULL) {
    const struct state state = stack[--depth];
    bool stuck = true;
    for (unsigned thread = 0; thread < model->threads; thread++) {
      struct state next = state;
      if (!model->step(&next, thread)) continue;
      stuck = false;
      visit(&next);
    }
    broken = model->broken(&state, stuck);
  }
  free(table);
  free(stack);
  print_message("%zu states, %s\n", seen, broken != NULL ? broken : "all sound");
  return broken;
}

// ---- The stash ---------------------------------------------------------------------------------

// Packets are numbered from 1; 0 is NULL. Pushers take them from a pool, takers put them back
// there, so that they come again while others still know them.
enum { PACKETS = 3, PUSHERS = 2, TAKERS = 2, ROUNDS = 2, MAX_DEPTH = 2 };

enum pusher_pc { PUSH_BEGIN, PUSH_LOAD, PUSH_DEPTH, PUSH_STORE_DEPTH, PUSH_STORE_NEXT, PUSH_SWAP };
enum taker_pc { TAKE_LOOK, TAKE_SWAP, TAKE_WALK };

struct stash_state {
  uint8_t head, pool; // pool: a bit per packet
  uint8_t next[PACKETS + 1], depth[PACKETS + 1];
  struct {
    uint8_t pc, rounds, packet, below, depth;
  } pushers[PUSHERS];
  struct {
    uint8_t pc, rounds, list, next;
  } takers[TAKERS];
  uint8_t alive; // no state is all zero
};
static_assert(sizeof(struct stash_state) <= STATE_BYTES, "the walk keeps states of this size");

static void pool_give(struct stash_state *s, uint8_t packet) {
  s->pool |= (uint8_t)(1 << packet);
}

static bool push_step(struct stash_state *s, unsigned i) {
  uint8_t *const pc = &s->pushers[i].pc, *const packet = &s->pushers[i].packet;
  uint8_t *const below = &s->pushers[i].below, *const wanted = &s->pushers[i].depth;
  switch (*pc) {
  case PUSH_BEGIN:
    if (s->pushers[i].rounds == 0 || s->pool == 0) return false;
    *packet = (uint8_t)__builtin_ctz(s->pool);
    s->pool &= (uint8_t)(s->pool - 1);
    s->pushers[i].rounds--;
    *pc = PUSH_LOAD;
    return true;
  case PUSH_LOAD:
    *below = s->head;
    *pc = PUSH_DEPTH;
    return true;
  case PUSH_DEPTH:
    *wanted = *below == 0 ? 0 : s->depth[*below] + 1;
    *pc = PUSH_STORE_DEPTH;
    if (*wanted < MAX_DEPTH) return true;
    pool_give(s, *packet); // refused: its blocks go another way
    *packet = *below = *wanted = 0;
    *pc = PUSH_BEGIN;
    return true;
  case PUSH_STORE_DEPTH:
    s->depth[*packet] = *wanted;
    *pc = PUSH_STORE_NEXT;
    return true;
  case PUSH_STORE_NEXT:
    s->next[*packet] = *below;
    *pc = PUSH_SWAP;
    return true;
  default: // PUSH_SWAP
    if (s->head != *below) {
      *below = s->head;
      *pc = PUSH_DEPTH;
      return true;
    }
    s->head = *packet;
    *packet = *below = *wanted = 0;
    *pc = PUSH_BEGIN;
    return true;
  }
}

// Goes along the list that was taken, one access at a time.
static bool walk_step(struct stash_state *s, unsigned i) {
  const uint8_t packet = s->takers[i].list;
  s->takers[i].list = s->next[packet];
  pool_give(s, packet);
  if (s->takers[i].list == 0) s->takers[i].pc = TAKE_LOOK;
  return true;
}

static bool take_step(struct stash_state *s, unsigned i) {
  switch (s->takers[i].pc) {
  case TAKE_LOOK:
    if (s->takers[i].rounds == 0) return false;
    s->takers[i].rounds--;
    if (s->head != 0) s->takers[i].pc = TAKE_SWAP;
    return true;
  case TAKE_SWAP:
    s->takers[i].list = s->head;
    s->head = 0;
    s->takers[i].pc = s->takers[i].list != 0 ? TAKE_WALK : TAKE_LOOK;
    return true;
  default:
    return walk_step(s, i);
  }
}

// The mistake: one packet is taken by compare and swap, with the next one read before.
static bool pop_step(struct stash_state *s, unsigned i) {
  switch (s->takers[i].pc) {
  case TAKE_LOOK:
    if (s->takers[i].rounds == 0) return false;
    s->takers[i].rounds--;
    s->takers[i].list = s->head;
    if (s->head != 0) s->takers[i].pc = TAKE_SWAP;
    return true;
  case TAKE_SWAP:
    s->takers[i].next = s->next[s->takers[i].list];
    s->takers[i].pc = TAKE_WALK;
    return true;
  default:
    if (s->head == s->takers[i].list) {
      s->head = s->takers[i].next;
      pool_give(s, s->takers[i].list);
    }
    s->takers[i].list = s->takers[i].next = 0;
    s->takers[i].pc = TAKE_LOOK;
    return true;
  }
}

static bool stash_step_with(struct state *state, unsigned thread,
                            bool (*take)(struct stash_state *, unsigned)) {
  struct stash_state s;
  memcpy(&s, state, sizeof s);
  const bool moved = thread < PUSHERS ? push_step(&s, thread) : take(&s, thread - PUSHERS);
  memcpy(state, &s, sizeof s);
  return moved;
}

static bool stash_step(struct state *state, unsigned thread) {
  return stash_step_with(state, thread, take_step);
}
static bool popping_step(struct state *state, unsigned thread) {
  return stash_step_with(state, thread, pop_step);
}

// How often a list holds each packet; a circle shows as a packet that comes twice.
static void count_list(const struct stash_state *s, uint8_t first, unsigned *places) {
  for (uint8_t p = first, n = 0; p != 0 && n <= PACKETS; p = s->next[p], n++) places[p]++;
}

static const char *stash_broken_with(const struct state *state, bool lists_are_owned) {
  struct stash_state s;
  memcpy(&s, state, sizeof s);
  unsigned places[PACKETS + 1] = {0};
  count_list(&s, s.head, places);
  for (unsigned i = 0; i < TAKERS && lists_are_owned; i++) count_list(&s, s.takers[i].list, places);
  for (unsigned i = 0; i < PUSHERS; i++)
    if (s.pushers[i].packet != 0) places[s.pushers[i].packet]++;
  for (unsigned p = 1; p <= PACKETS; p++) {
    places[p] += s.pool >> p & 1;
    if (places[p] == 0) return "a packet is lost";
    if (places[p] > 1) return "a packet is in two places";
  }
  return NULL;
}

static const char *stash_broken(const struct state *state, bool stuck) {
  (void)stuck; // with the pool empty, or all rounds made, nobody has anything to do
  return stash_broken_with(state, true);
}
static const char *popping_broken(const struct state *state, bool stuck) {
  (void)stuck;
  return stash_broken_with(state, false);
}

static struct state stash_start(void) {
  struct stash_state s = {.pool = (2 << PACKETS) - 2, .alive = 1};
  struct state state = {{0}};
  for (unsigned i = 0; i < PUSHERS; i++) s.pushers[i].rounds = ROUNDS;
  for (unsigned i = 0; i < TAKERS; i++) s.takers[i].rounds = ROUNDS;
  memcpy(&state, &s, sizeof s);
  return state;
}

static void no_packet_is_lost_or_taken_twice(void **unused) {
  (void)unused;
  const struct model model = {PUSHERS + TAKERS, stash_step, stash_broken};
  const struct state start = stash_start();
  assert_null(walk(&model, &start));
  assert_true(seen > 10000);
}

static void taking_one_packet_at_a_time_would_be_noticed(void **unused) {
  (void)unused;
  const struct model model = {PUSHERS + TAKERS, popping_step, popping_broken};
  const struct state start = stash_start();
  assert_non_null(walk(&model, &start));
}

// ---- The lock ----------------------------------------------------------------------------------

enum { LOCKERS = 3, LOCKS_EACH = 2, SPINS_EACH = 1, AWAITED = 1 };

enum locker_pc {
  LOCK_FAST, // compare and swap 0 -> mark
  SPIN_LOOK, // the spins of hz_lock_wait
  SPIN_SWAP,
  WAIT_LOOK, // its loop: try as awaited,
  WAIT_SWAP,
  WAIT_HELD,  // read the word,
  WAIT_MARK,  // mark it as awaited,
  WAIT_SLEEP, // sleep if it is still so
  ASLEEP,
  HOLDING,
  WAKE,
};

struct lock_state {
  uint8_t word; // 0, or the owner's mark, | AWAITED
  struct {
    uint8_t pc, rounds, spins, saw;
  } lockers[LOCKERS];
  uint8_t alive;
};
static_assert(sizeof(struct lock_state) <= STATE_BYTES, "the walk keeps states of this size");

static bool woken_is_not_awaited; // the mistake

static uint8_t mark_of(unsigned thread) {
  return (uint8_t)((thread + 1) << 1);
}

static void wake_one(struct lock_state *s, unsigned from) {
  for (unsigned n = 1; n < LOCKERS; n++) {
    const unsigned i = (from + n) % LOCKERS;
    if (s->lockers[i].pc != ASLEEP) continue;
    s->lockers[i].pc = WAIT_LOOK;
    return;
  }
}

static void swap_in(struct lock_state *s, unsigned i, uint8_t mark, enum locker_pc otherwise) {
  const bool free_now = s->word == 0;
  if (free_now) s->word = mark;
  s->lockers[i].pc = free_now ? HOLDING : otherwise;
}

static void spin(struct lock_state *s, unsigned i) {
  if (s->lockers[i].pc == SPIN_SWAP) {
    swap_in(s, i, mark_of(i), SPIN_LOOK);
  } else if (s->lockers[i].spins == 0) {
    s->lockers[i].pc = WAIT_LOOK;
  } else {
    s->lockers[i].spins--;
    if (s->word == 0) s->lockers[i].pc = SPIN_SWAP;
  }
}

static void wait(struct lock_state *s, unsigned i) {
  const uint8_t as_awaited = woken_is_not_awaited ? 0 : AWAITED;
  uint8_t *const pc = &s->lockers[i].pc, *const saw = &s->lockers[i].saw;
  switch (*pc) {
  case WAIT_LOOK:
    *pc = s->word == 0 ? WAIT_SWAP : WAIT_HELD;
    return;
  case WAIT_SWAP:
    swap_in(s, i, mark_of(i) | as_awaited, WAIT_HELD);
    return;
  case WAIT_HELD:
    *saw = s->word;
    *pc = s->word == 0 ? WAIT_LOOK : (s->word & AWAITED) != 0 ? WAIT_SLEEP : WAIT_MARK;
    return;
  case WAIT_MARK:
    *pc = s->word == *saw ? WAIT_SLEEP : WAIT_LOOK;
    if (s->word == *saw) s->word |= AWAITED;
    *saw |= AWAITED;
    return;
  default: // WAIT_SLEEP: the kernel compares and puts to sleep in one step
    *pc = s->word == *saw ? ASLEEP : WAIT_LOOK;
  }
}

static void leave(struct lock_state *s, unsigned i) {
  if (s->lockers[i].pc == HOLDING) {
    s->lockers[i].pc = (s->word & AWAITED) != 0 ? WAKE : LOCK_FAST;
    s->word = 0;
  } else {
    wake_one(s, i);
    s->lockers[i].pc = LOCK_FAST;
  }
  if (s->lockers[i].pc == LOCK_FAST) s->lockers[i].saw = 0;
}

static bool lock_step(struct state *state, unsigned i) {
  struct lock_state s;
  memcpy(&s, state, sizeof s);
  const uint8_t pc = s.lockers[i].pc;
  if (pc == ASLEEP || (pc == LOCK_FAST && s.lockers[i].rounds == 0)) return false;
  if (pc == LOCK_FAST) {
    s.lockers[i].rounds--;
    s.lockers[i].spins = SPINS_EACH;
    swap_in(&s, i, mark_of(i), SPIN_LOOK);
  } else if (pc <= SPIN_SWAP) {
    spin(&s, i);
  } else if (pc <= WAIT_SLEEP) {
    wait(&s, i);
  } else {
    leave(&s, i);
  }
  memcpy(state, &s, sizeof s);
  return true;
}

static const char *lock_broken(const struct state *state, bool stuck) {
  struct lock_state s;
  memcpy(&s, state, sizeof s);
  unsigned holders = 0, sleepers = 0;
  for (unsigned i = 0; i < LOCKERS; i++) {
    holders += s.lockers[i].pc == HOLDING;
    sleepers += s.lockers[i].pc == ASLEEP;
    if (s.lockers[i].pc == HOLDING && (s.word & ~AWAITED) != mark_of(i))
      return "the word does not name the holder";
  }
  if (holders > 1) return "two threads hold the lock";
  return stuck && sleepers != 0 ? "a thread sleeps for ever" : NULL;
}

static struct state lock_start(void) {
  struct lock_state s = {.alive = 1};
  struct state state = {{0}};
  for (unsigned i = 0; i < LOCKERS; i++) s.lockers[i].rounds = LOCKS_EACH;
  memcpy(&state, &s, sizeof s);
  return state;
}

static const struct model lock_model = {LOCKERS, lock_step, lock_broken};

static void one_thread_holds_the_lock_and_every_sleeper_wakes(void **unused) {
  (void)unused;
  const struct state start = lock_start();
  assert_null(walk(&lock_model, &start));
  assert_true(seen > 1000);
}

static void forgetting_the_other_sleepers_would_be_noticed(void **unused) {
  (void)unused;
  woken_is_not_awaited = true;
  const struct state start = lock_start();
  assert_string_equal(walk(&lock_model, &start), "a thread sleeps for ever");
  woken_is_not_awaited = false;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_packet_is_lost_or_taken_twice),
      cmocka_unit_test(taking_one_packet_at_a_time_would_be_noticed),
      cmocka_unit_test(one_thread_holds_the_lock_and_every_sleeper_wakes),
      cmocka_unit_test(forgetting_the_other_sleepers_would_be_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
