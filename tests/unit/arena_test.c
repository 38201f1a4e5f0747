// core/arena: runs, their memory on its way back, whole segments, and every failure on the way.
#include "core/arena.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "core/counter.h"
#include "core/meta.h"
#include "core/os.h"
#include "tests/support/random.h"
#include "tests/unit/arena_machine.h"

// ---- Runs --------------------------------------------------------------------------------------

static void runs_of_every_length_and_alignment_fit_and_are_found(void **state) {
  (void)state;
  start();
  for (unsigned slabs = 1; slabs <= HZ_SEGMENT_SLABS; slabs++)
    for (size_t align = 16; align <= HZ_SEGMENT_BYTES; align *= 2) {
      struct hz_run *run = take(slabs, align);
      assert_non_null(run);
      assert_int_equal(run->slabs, slabs);
      assert_int_equal((uintptr_t)hz_run_base(run) % hz_max(align, HZ_SLAB_BYTES), 0);
      assert_ptr_equal(hz_run_of(hz_run_base(run)), run);
      assert_ptr_equal(hz_run_of((char *)hz_run_base(run) + ((size_t)slabs << HZ_SLAB_SHIFT) - 1),
                       run);
      assert_sound();
      hz_arena_give(run);
      assert_null(hz_run_of(hz_run_base(run)));
    }
}

static void addresses_outside_belong_to_no_run(void **state) {
  (void)state;
  start();
  struct hz_run *run = take(3, HZ_SLAB_BYTES);
  int on_stack;
  assert_null(hz_run_of(NULL));
  assert_null(hz_run_of(&on_stack));
  assert_null(hz_run_of((char *)hz_arena_base() - 1));
  assert_null(hz_run_of((char *)hz_arena_base() + hz_arena_bytes()));
  assert_null(hz_run_of((char *)hz_arena_base() + hz_arena_bytes() - 1)); // a free segment
  assert_null(hz_run_of((char *)hz_run_base(run) + 3 * HZ_SLAB_BYTES));   // a free slab
}

// Random takes, gives and resizes against a map of slabs.
enum { SLABS = SEGMENTS * HZ_SEGMENT_SLABS, LIVE = 300 };
static uint16_t owner_of[SLABS];
static struct hz_run *live[LIVE];

static void claim_slabs(const struct hz_run *run, unsigned from, unsigned to, uint16_t owner) {
  const size_t first = hz_slab_of(hz_run_base(run));
  for (size_t i = first + from; i < first + to; i++) {
    assert_true(i < SLABS);
    assert_int_equal(owner_of[i] == 0, owner != 0); // taken ones were free, given ones were not
    owner_of[i] = owner;
  }
}

static void random_take(struct random_state *random, size_t i) {
  const unsigned slabs = (unsigned)random_between(random, 1, random_next(random) % 4 ? 8 : 64);
  const size_t align = (size_t)HZ_SLAB_BYTES << random_between(random, 0, 6);
  live[i] = take(slabs, random_next(random) % 2 ? align : 16);
  if (live[i] == NULL) return;
  if (live[i]->zero) assert_true(reads_as_zero(live[i]));
  claim_slabs(live[i], 0, slabs, (uint16_t)(i + 1));
  touch(live[i]);
}

static void random_give(size_t i) {
  claim_slabs(live[i], 0, live[i]->slabs, 0);
  hz_arena_give(live[i]);
  live[i] = NULL;
}

static void random_resize(struct random_state *random, size_t i) {
  const unsigned old = live[i]->slabs;
  const unsigned slabs = (unsigned)random_between(random, 1, HZ_SEGMENT_SLABS);
  if (!hz_arena_resize(live[i], slabs)) {
    assert_true(slabs > old);
    assert_int_equal(live[i]->slabs, old);
    return;
  }
  assert_int_equal(live[i]->slabs, slabs);
  if (slabs > old) claim_slabs(live[i], old, slabs, (uint16_t)(i + 1));
  else claim_slabs(live[i], slabs, old, 0);
  touch(live[i]);
}

static void random_purge(struct random_state *random) {
  bool more;
  fake_os_clock_add(random_between(random, 0, 300));
  hz_arena_purge(hz_os.now_ms(), 500, (unsigned)random_between(random, 1, 20), &more);
}

static void random_step(struct random_state *random) {
  const size_t i = random_between(random, 0, LIVE - 1);
  const unsigned what = (unsigned)random_between(random, 0, 15);
  if (what == 0) random_purge(random);
  else if (live[i] == NULL) random_take(random, i);
  else if (what < 5) random_resize(random, i);
  else random_give(i);
}

static struct random_state seeded(void) {
  const uint64_t seed = random_seed(NULL);
  print_message("seed %llu\n", (unsigned long long)seed);
  return random_start(seed);
}

static uint64_t may_stay_committed;

static void give_everything(void) {
  for (size_t i = 0; i < LIVE; i++)
    if (live[i] != NULL) random_give(i);
  purge_all();
  assert_sound();
  const struct hz_arena_totals now = totals();
  assert_int_equal(now.run_bytes, 0);
  assert_int_equal(now.dirty_bytes, 0);
  assert_true(now.committed_bytes <= may_stay_committed);
}

static void random_work_never_lets_two_runs_overlap(void **state) {
  (void)state;
  start();
  struct random_state random = seeded();
  for (int step = 0; step < 20000; step++) {
    random_step(&random);
    assert_sound();
  }
  give_everything();
}

static void list_of_runs_comes_back_whole(void **state) {
  (void)state;
  start();
  struct hz_run *list = NULL;
  hz_arena_give_list(NULL);
  for (unsigned i = 1; i <= 20; i++) {
    struct hz_run *run = take(i, 16);
    run->next = list;
    list = run;
  }
  hz_arena_give_list(list);
  assert_sound();
  assert_int_equal(totals().run_bytes, 0);
}

static void run_grows_into_free_neighbours_only(void **state) {
  (void)state;
  start();
  struct hz_run *first = take(4, 16), *second = take(4, 16);
  assert_ptr_equal((char *)hz_run_base(first) + 4 * HZ_SLAB_BYTES, hz_run_base(second));
  assert_false(hz_arena_resize(first, 5));
  assert_false(hz_arena_resize(second, HZ_SEGMENT_SLABS)); // beyond the segment's end
  assert_true(hz_arena_resize(second, HZ_SEGMENT_SLABS - 4));
  assert_true(hz_arena_resize(second, 1));
  assert_true(hz_arena_resize(first, 4));
  hz_arena_give(second);
  assert_true(hz_arena_resize(first, HZ_SEGMENT_SLABS));
  assert_ptr_equal(hz_run_of((char *)hz_run_base(first) + HZ_SEGMENT_BYTES - 1), first);
  assert_sound();
}

static void used_slabs_serve_before_those_without_pages(void **state) {
  (void)state;
  start();
  struct hz_run *low = take(4, 16), *wall = take(1, 16), *used = take(4, 16);
  take(1, 16);
  hz_arena_give(low);
  purge_all();
  touch(used);
  hz_arena_give(used);
  struct hz_run *run = take(2, 16); // would fit at the lower place too
  assert_true((char *)hz_run_base(run) > (char *)hz_run_base(wall));
  assert_false(run->zero);
  assert_int_equal(totals().dirty_bytes, 2 * HZ_SLAB_BYTES);
  run = take(3, 16); // does not fit into the two used slabs that are left
  assert_ptr_equal(run, low);
  assert_true(run->zero && reads_as_zero(run));
  assert_int_equal(totals().dirty_bytes, 2 * HZ_SLAB_BYTES);
}

static void zero_is_claimed_only_for_what_reads_as_zero(void **state) {
  (void)state;
  start();
  struct hz_run *run = take(HZ_SEGMENT_SLABS, 16);
  assert_true(run->zero);
  touch(run);
  hz_arena_give(run);
  run = take(HZ_SEGMENT_SLABS, 16);
  assert_false(run->zero);
  struct hz_run *other = take(1, 16); // keeps nothing of the first segment
  hz_arena_give(run);
  purge_all();
  run = take(HZ_SEGMENT_SLABS, 16);
  assert_true(run->zero);
  assert_true(reads_as_zero(run));
  hz_arena_give(other);
}

// ---- Giving back -------------------------------------------------------------------------------

static size_t purge_at(uint64_t now_ms, unsigned max_calls, bool *more) {
  fake_os_clock(now_ms);
  return hz_arena_purge(now_ms, 500, max_calls, more);
}

static void slabs_are_given_back_only_after_the_idle_time(void **state) {
  (void)state;
  start();
  bool more;
  struct hz_run *keep = take(1, 16), *run = take(5, 16);
  touch(run);
  hz_arena_give(run); // at 1000 ms
  assert_int_equal(purge_at(1499, 100, &more), 0);
  assert_false(more);
  assert_int_equal(fake_os_calls(FAKE_PURGE), 0);
  assert_int_equal(purge_at(1500, 100, &more), 5 * HZ_SLAB_BYTES);
  assert_int_equal(fake_os_calls(FAKE_PURGE), 1);
  assert_int_equal(purge_at(9000, 100, &more), 0);
  assert_int_equal(totals().dirty_bytes, 0);
  assert_int_equal(hz_counter_read(HZ_COUNT_purged), 5 * HZ_SLAB_BYTES);
  hz_arena_give(keep);
}

static void empty_segment_leaves_whole(void **state) {
  (void)state;
  start();
  bool more;
  struct hz_run *run = take(7, 16);
  const size_t with_segment = fake_os_committed();
  touch(run);
  hz_arena_give(run);
  purge_at(2000, 100, &more);
  assert_int_equal(fake_os_calls(FAKE_DECOMMIT), 1);
  assert_int_equal(fake_os_calls(FAKE_PURGE), 0);
  assert_int_equal(fake_os_committed(), with_segment - HZ_SEGMENT_BYTES);
  assert_int_equal(totals().committed_bytes, 0);
  assert_sound();
  run = take(1, 16);
  assert_true(run->zero && reads_as_zero(run));
}

static void oldest_segment_is_given_back_first(void **state) {
  (void)state;
  start();
  bool more;
  struct hz_run *first = take(64, 16), *second = take(64, 16);
  hz_arena_give(second);
  fake_os_clock(1200);
  hz_arena_give(first);
  purge_at(1600, 100, &more);
  assert_false(more);
  assert_int_equal(totals().dirty_bytes, HZ_SEGMENT_BYTES);
  assert_true(take(64, 16) == first); // still there, still used
}

// Eight free ranges of one slab each, between slabs that stay.
static void make_holes(struct hz_run **runs) {
  for (int i = 0; i < 16; i++) touch(runs[i] = take(1, 16));
  for (int i = 0; i < 16; i += 2) hz_arena_give(runs[i]);
}

static void purge_makes_no_more_calls_than_it_may(void **state) {
  (void)state;
  start();
  struct hz_run *runs[16];
  make_holes(runs);
  size_t bytes = 0;
  bool more = true;
  for (int round = 0; more; round++) {
    const uint64_t before = fake_os_calls(FAKE_PURGE);
    bytes += purge_at(5000, 3, &more);
    assert_true(fake_os_calls(FAKE_PURGE) - before <= 3);
    assert_true(round < 4);
    assert_sound();
  }
  assert_int_equal(bytes, 8 * HZ_SLAB_BYTES);
  assert_int_equal(totals().dirty_bytes, 0);
}

static void refused_purge_keeps_slabs_dirty_and_is_tried_again(void **state) {
  (void)state;
  start();
  bool more;
  struct hz_run *keep = take(1, 16), *run = take(5, 16);
  touch(run);
  hz_arena_give(run);
  fake_os_fail_nth(FAKE_PURGE, 1);
  assert_int_equal(purge_at(2000, 100, &more), 0);
  assert_sound();
  assert_int_equal(totals().dirty_bytes, 5 * HZ_SLAB_BYTES);
  assert_int_equal(purge_at(9000, 100, &more), 5 * HZ_SLAB_BYTES);
  hz_arena_give(keep);
}

// At the limit of mappings a segment cannot be split off: it stays, with its pages given back.
static void segment_that_cannot_leave_stays_usable_and_zero(void **state) {
  (void)state;
  start();
  struct hz_run *run = take(64, 16);
  touch(run);
  hz_arena_give(run);
  fake_os_fail_nth(FAKE_DECOMMIT, 1);
  purge_all();
  assert_sound();
  assert_int_equal(totals().committed_bytes, HZ_SEGMENT_BYTES);
  run = take(64, 16);
  assert_true(!run->zero || reads_as_zero(run));
  touch(run);
  hz_arena_give(run);
  purge_all();
  assert_int_equal(totals().committed_bytes, 0);
}

// Locked memory at the limit of mappings: neither call works.
static void segment_that_keeps_its_pages_is_not_called_zero(void **state) {
  (void)state;
  start();
  struct hz_run *run = take(64, 16);
  touch(run);
  hz_arena_give(run);
  fake_os_fail_nth(FAKE_DECOMMIT, 1);
  fake_os_fail_nth(FAKE_PURGE, 1);
  bool more;
  hz_arena_purge(UINT64_MAX, 0, 100, &more);
  assert_sound();
  run = take(64, 16);
  assert_false(run->zero && !reads_as_zero(run));
}

// What other threads do while slabs are on their way to the kernel.
static struct hz_run *given_meanwhile;
static int interrupts;

static void give_and_purge_in_between(enum fake_call call, void *at, size_t bytes) {
  (void)at;
  (void)bytes;
  if (call != FAKE_PURGE || interrupts++ != 0) return;
  assert_sound();
  hz_arena_give(given_meanwhile);
  bool more;
  hz_arena_purge(UINT64_MAX, 0, 100, &more);
  assert_sound();
}

static void two_threads_may_purge_one_segment_at_once(void **state) {
  (void)state;
  start();
  struct hz_run *wall = take(1, 16), *run = take(4, 16);
  given_meanwhile = take(3, 16);
  hz_arena_give(run);
  run = take(2, 16); // the records of the slabs no longer name one run
  hz_arena_give(run);
  fake_os_interrupt(give_and_purge_in_between);
  purge_all();
  assert_true(interrupts != 0);
  assert_sound();
  assert_int_equal(totals().run_bytes, HZ_SLAB_BYTES);
  hz_arena_give(wall);
  purge_all();
  assert_int_equal(totals().committed_bytes, 0);
}

// Neither of the two purges saw the segment empty.
static void segment_that_two_threads_purge_leaves_with_its_last_run(void **state) {
  (void)state;
  start();
  struct hz_run *run = take(4, 16);
  given_meanwhile = take(3, 16);
  hz_arena_give(run);
  fake_os_interrupt(give_and_purge_in_between);
  purge_all();
  assert_true(interrupts != 0);
  assert_sound();
  assert_int_equal(totals().committed_bytes, 0);
}

static bool inner_check_is_sound;

static void check_in_the_second_purge(enum fake_call call, void *at, size_t bytes) {
  (void)at;
  (void)bytes;
  if (call == FAKE_PURGE) inner_check_is_sound = inner_check_is_sound && hz_arena_check() == NULL;
}

static void slabs_on_their_way_out_are_nobodys(void **state) {
  (void)state;
  start();
  struct hz_run *runs[16];
  make_holes(runs);
  inner_check_is_sound = true;
  fake_os_interrupt(check_in_the_second_purge);
  purge_all();
  assert_true(inner_check_is_sound);
  assert_int_equal(fake_os_calls(FAKE_PURGE), 8);
}

// In a child: all but the slabs of the runs in use can be taken.
static void check_child_finds_every_slab(void) {
  CHECK(hz_arena_check() == NULL, "%s", hz_arena_check());
  const size_t want = SLABS - (totals().run_bytes >> HZ_SLAB_SHIFT);
  size_t got = 0;
  while (take(1, 16) != NULL) got++;
  CHECK(got == want, "the child finds %zu of %zu slabs", got, want);
}

static void assert_child_well(pid_t child) {
  int status = -1;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static atomic_uint stage;

static void wait_for_stage(unsigned which) {
  while (atomic_load(&stage) < which) sched_yield();
}

static void stop_in_between(enum fake_call call, void *at, size_t bytes) {
  (void)at;
  (void)bytes;
  if ((call != FAKE_PURGE && call != FAKE_DECOMMIT) || atomic_load(&stage) != 0) return;
  atomic_store(&stage, 1);
  wait_for_stage(2);
}

static void *purge_in_thread(void *unused) {
  bool more;
  hz_arena_purge(UINT64_MAX, 0, UINT32_MAX, &more);
  return unused;
}

// The thread that was giving slabs back is not in the child.
static void fork_while_another_thread_purges(void) {
  pthread_t thread;
  fake_os_interrupt(stop_in_between);
  assert_int_equal(pthread_create(&thread, NULL, purge_in_thread, NULL), 0);
  wait_for_stage(1);
  const pid_t child = fork();
  if (child == 0) {
    hz_arena_fork_child();
    check_child_finds_every_slab();
    _exit(0);
  }
  assert_child_well(child);
  atomic_store(&stage, 2);
  pthread_join(thread, NULL);
  assert_sound();
}

static void fork_during_a_purge_loses_no_slab(void **state) {
  (void)state;
  start();
  struct hz_run *runs[16];
  make_holes(runs);
  fork_while_another_thread_purges();
}

static void fork_while_a_segment_leaves_loses_no_slab(void **state) {
  (void)state;
  start();
  hz_arena_give(take(64, 16));
  fork_while_another_thread_purges();
}

// A signal handler that forks: parent and child return into the same purge.
static pid_t child_of_handler = -1;

static void fork_in_between(enum fake_call call, void *at, size_t bytes) {
  (void)at;
  (void)bytes;
  if (child_of_handler != -1 || (call != FAKE_PURGE && call != FAKE_DECOMMIT)) return;
  child_of_handler = fork();
  if (child_of_handler == 0) hz_arena_fork_child();
}

static void purge_and_fork_out_of_it(void) {
  fake_os_interrupt(fork_in_between);
  purge_in_thread(NULL);
  if (child_of_handler == 0) {
    check_child_finds_every_slab();
    _exit(0);
  }
  assert_child_well(child_of_handler);
  assert_sound();
}

static void handler_that_forks_during_a_purge_loses_no_slab(void **state) {
  (void)state;
  start();
  struct hz_run *runs[16];
  make_holes(runs);
  purge_and_fork_out_of_it();
}

static void handler_that_forks_while_a_segment_leaves_loses_no_slab(void **state) {
  (void)state;
  start();
  hz_arena_give(take(64, 16));
  purge_and_fork_out_of_it();
}

// ---- Failures ----------------------------------------------------------------------------------

static void work_with_the_nth_failing(enum fake_call call, uint64_t n, uint64_t seed) {
  start();
  struct random_state random = random_start(seed);
  fake_os_fail_nth(call, n);
  for (int step = 0; step < 3000; step++) {
    random_step(&random);
    if (step % 16 == 0) assert_sound();
  }
  const bool failed = fake_os_failed(call);
  fake_os_fail_nth(call, 0);
  // A segment that could not leave stays, clean, until it is used again.
  if (call == FAKE_DECOMMIT) may_stay_committed = HZ_SEGMENT_BYTES;
  give_everything();
  // All of the arena is there for the next one.
  for (int i = 0; i < SEGMENTS; i++) assert_non_null(take(64, 16));
  assert_sound();
  exit(failed ? 0 : 2);
}

static void each_failure_in_turn_loses_nothing(enum fake_call call) {
  const uint64_t seed = random_seed(NULL);
  print_message("seed %llu\n", (unsigned long long)seed);
  int status = 0;
  for (uint64_t n = 1; status == 0; n++) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) work_with_the_nth_failing(call, n, seed);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (status != 0) assert_int_equal(WEXITSTATUS(status), 2); // no n-th call any more
    if (n > 300) break;
  }
}

static void every_refused_commit_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_COMMIT);
}

static void every_refused_decommit_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_DECOMMIT);
}

static void every_refused_record_mapping_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn_loses_nothing(FAKE_MAP);
}

static void overcommit_limit_is_met_exactly_and_given_back(void **state) {
  (void)state;
  start();
  struct hz_run *runs[SEGMENTS];
  fake_os_commit_limit(5 * HZ_SEGMENT_BYTES + 2 * HZ_MIB);
  int count = 0;
  while ((runs[count] = take(64, 16)) != NULL) count++;
  assert_int_equal(count, 5);
  assert_true(hz_counter_read(HZ_COUNT_os_failures) > 0);
  assert_sound();
  for (int i = 0; i < count; i++) hz_arena_give(runs[i]);
  purge_all();
  assert_true(fake_os_committed() < 2 * HZ_MIB);
  for (int i = 0; i < count; i++) assert_non_null(take(64, 16));
}

static void arena_without_address_space_does_not_start(void **state) {
  (void)state;
  fake_os_install();
  fake_os_fail_from(FAKE_RESERVE, 1);
  assert_false(hz_arena_start(HZ_GIB));
}

static void arena_halves_its_wish_until_it_fits(void **state) {
  (void)state;
  fake_os_install();
  fake_os_fail_nth(FAKE_RESERVE, 1);
  assert_true(hz_arena_start(HZ_GIB));
  assert_int_equal(hz_arena_bytes(), HZ_GIB / 2);
  assert_int_equal(totals().reserved_bytes, HZ_GIB / 2);
  assert_int_equal((uintptr_t)hz_arena_base() % HZ_SEGMENT_BYTES, 0);
}

static void arena_without_tables_does_not_start(void **state) {
  (void)state;
  fake_os_install();
  fake_os_fail_nth(FAKE_RESERVE_TABLE, 1);
  assert_false(hz_arena_start(HZ_GIB));
}

// ---- Under RLIMIT_AS ---------------------------------------------------------------------------

static void start_limited(size_t limit) {
  fake_os_install();
  fake_os_address_limit(limit);
  assert_true(hz_arena_start(HZ_TIB));
}

static void limited_process_holds_only_what_it_uses(void **state) {
  (void)state;
  start_limited(128 * HZ_MIB);
  assert_true(hz_arena_bytes() >= 128 * HZ_MIB);
  assert_true(fake_os_address_bytes() < HZ_MIB); // the tables
  struct hz_run *runs[64];
  int count = 0;
  while ((runs[count] = take(64, 16)) != NULL) touch(runs[count++]);
  assert_true(count >= 30 && count <= 32); // 32 segments are all there is
  assert_sound();
  for (int i = 0; i < count; i++) hz_arena_give(runs[i]);
  purge_all();
  assert_sound();
  assert_true(fake_os_address_bytes() < 2 * HZ_MIB);
  for (int i = 0; i < count; i++) assert_true((runs[i] = take(64, 16)) != NULL);
}

static void address_space_that_comes_back_is_used(void **state) {
  (void)state;
  start_limited(128 * HZ_MIB);
  fake_os_address_limit(12 * HZ_MIB); // the program has mapped the rest for itself
  struct hz_run *first = take(64, 16);
  assert_non_null(first);
  while (take(64, 16) != NULL) continue;
  for (int i = 0; i < 10; i++) assert_null(take(64, 16));
  fake_os_address_limit(128 * HZ_MIB);
  for (int i = 0; i < 20; i++) assert_non_null(take(64, 16));
  assert_sound();
}

static void map_there(char *at, size_t bytes) {
  void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  assert_ptr_equal(p, at);
  memset(at, 0x5a, 4096);
}

static void foreign_mapping_in_the_way_is_left_alone(void **state) {
  (void)state;
  start_limited(256 * HZ_MIB);
  char *base = hz_arena_base();
  map_there(base + HZ_SEGMENT_BYTES + 8192, 4096); // inside of the second segment
  map_there(base + 4 * HZ_SEGMENT_BYTES, HZ_SEGMENT_BYTES * 3);
  char *bases[20];
  for (int i = 0; i < 20; i++) {
    struct hz_run *run = take(64, 16);
    assert_non_null(run);
    bases[i] = hz_run_base(run);
    touch(run);
  }
  for (int i = 0; i < 20; i++) {
    const size_t index = (size_t)(bases[i] - base) / HZ_SEGMENT_BYTES;
    assert_true(index != 1 && (index < 4 || index > 6));
  }
  assert_int_equal(base[HZ_SEGMENT_BYTES + 8192], 0x5a);
  assert_int_equal(base[4 * HZ_SEGMENT_BYTES], 0x5a);
  assert_sound();
}

static void foreign_mapping_of_many_segments_stops_nothing(void **state) {
  (void)state;
  start_limited(HZ_GIB);
  map_there(hz_arena_base(), 100 * (size_t)HZ_SEGMENT_BYTES);
  for (int i = 0; i < 5; i++) take(64, 16);
  assert_non_null(take(64, 16));
}

static void limited_large_blocks_give_their_place_back(void **state) {
  (void)state;
  start_limited(256 * HZ_MIB);
  const size_t before = fake_os_address_bytes();
  int record;
  void *base = hz_arena_take_segments(5, 4 * HZ_SEGMENT_BYTES, &record);
  assert_non_null(base);
  assert_int_equal((uintptr_t)base % (4 * HZ_SEGMENT_BYTES), 0);
  assert_true(fake_os_address_bytes() <= before + 5 * HZ_SEGMENT_BYTES);
  assert_true(hz_os.commit(base, 5 * HZ_SEGMENT_BYTES));
  assert_true(hz_arena_extend_segments(base, 5, 7));
  hz_arena_give_segments(base, 7, false);
  assert_int_equal(fake_os_address_bytes(), before);
  assert_sound();
}

// ---- Under an RLIMIT_AS that came later --------------------------------------------------------

static void reservation_is_conceded_only_when_addresses_are_used_up(void **state) {
  (void)state;
  start();
  struct hz_run *kept = take(64, 16);
  touch(kept);
  assert_false(hz_arena_concede());
  fake_os_fail_nth(FAKE_RESERVE, 1);
  assert_true(hz_arena_concede());
  assert_false(hz_arena_concede());
  assert_true(fake_os_address_bytes() < HZ_SEGMENT_BYTES + HZ_MIB);
  assert_false(reads_as_zero(kept));
  assert_sound();
}

static void conceded_arena_goes_on_segment_by_segment(void **state) {
  (void)state;
  start();
  struct hz_run *runs[SEGMENTS];
  for (int i = 0; i < 3; i++) touch(runs[i] = take(64, 16));
  fake_os_fail_nth(FAKE_RESERVE, 1);
  assert_true(hz_arena_concede());
  for (int i = 3; i < SEGMENTS; i++) {
    runs[i] = take(64, 16);
    assert_non_null(runs[i]);
    assert_true(runs[i]->zero && reads_as_zero(runs[i]));
  }
  assert_null(take(1, 16));
  for (int i = 0; i < SEGMENTS; i++) hz_arena_give(runs[i]);
  purge_all();
  assert_sound();
  assert_true(fake_os_address_bytes() < HZ_MIB);
  for (int i = 0; i < SEGMENTS; i++) assert_non_null(take(64, 16));
}

static void full_arena_has_only_places_to_concede(void **state) {
  (void)state;
  start();
  struct hz_run *runs[SEGMENTS];
  for (int i = 0; i < SEGMENTS; i++) runs[i] = take(64, 16);
  fake_os_fail_nth(FAKE_RESERVE, 1);
  hz_arena_concede();
  for (int i = 0; i < SEGMENTS; i++) hz_arena_give(runs[i]);
  purge_all();
  for (int i = 0; i < SEGMENTS; i++) assert_non_null(take(64, 16));
}

static void concede_in_between(enum fake_call call, void *at, size_t bytes) {
  (void)at;
  (void)bytes;
  if (call != FAKE_DECOMMIT) return;
  fake_os_interrupt(NULL);
  fake_os_fail_nth(FAKE_RESERVE, 1);
  assert_true(hz_arena_concede());
}

static void concession_while_a_segment_leaves_loses_no_place(void **state) {
  (void)state;
  start();
  hz_arena_give(take(64, 16));
  fake_os_interrupt(concede_in_between);
  purge_all();
  assert_sound();
  for (int i = 0; i < SEGMENTS; i++) assert_non_null(take(64, 16));
}

static void concession_while_a_large_block_leaves_loses_no_place(void **state) {
  (void)state;
  start();
  int record;
  void *base = hz_arena_take_segments(3, 16, &record);
  assert_true(hz_os.commit(base, HZ_SEGMENT_BYTES));
  fake_os_interrupt(concede_in_between);
  hz_arena_give_segments(base, 3, false);
  assert_sound();
  for (int i = 0; i < SEGMENTS; i++) assert_non_null(take(64, 16));
}

// ---- Large blocks ------------------------------------------------------------------------------

static void large_block_is_found_from_each_of_its_segments(void **state) {
  (void)state;
  start();
  int record, other;
  char *base = hz_arena_take_segments(3, 16, &record);
  char *next = hz_arena_take_segments(2, 16, &other);
  void *found = NULL;
  for (size_t at = 0; at < 3 * (size_t)HZ_SEGMENT_BYTES; at += HZ_SLAB_BYTES) {
    assert_ptr_equal(hz_arena_large_of(base + at + 5, &found), &record);
    assert_ptr_equal(found, base);
    assert_null(hz_run_of(base + at));
  }
  assert_ptr_equal(hz_arena_large_of(next + HZ_SEGMENT_BYTES, &found), &other);
  assert_ptr_equal(found, next);
  struct hz_run *run = take(1, 16);
  assert_null(hz_arena_large_of(hz_run_base(run), &found));
  assert_null(hz_arena_large_of(&record, &found));
  hz_arena_give_segments(base, 3, false);
  assert_null(hz_arena_large_of(base, &found));
}

static void large_block_grows_only_into_free_segments(void **state) {
  (void)state;
  start();
  int record;
  char *base = hz_arena_take_segments(2, 16, &record);
  assert_true(hz_arena_extend_segments(base, 2, 4));
  struct hz_run *wall = take(1, 16);
  assert_false(hz_arena_extend_segments(base, 4, 5));
  void *found;
  assert_ptr_equal(hz_arena_large_of(base + 4 * (size_t)HZ_SEGMENT_BYTES - 1, &found), &record);
  assert_false(hz_arena_extend_segments(base, 4, SEGMENTS + 1));
  assert_int_equal(totals().large_segments, 4);
  hz_arena_give(wall);
  purge_all();
  assert_true(hz_arena_extend_segments(base, 4, 5));
  assert_sound();
}

static void large_blocks_of_any_alignment_and_number_come_back_whole(void **state) {
  (void)state;
  start();
  int record;
  for (size_t align = 1; align <= 8 * (size_t)HZ_SEGMENT_BYTES; align *= 2)
    for (size_t count = 1; count <= 8; count++) {
      char *base = hz_arena_take_segments(count, align, &record);
      assert_non_null(base);
      assert_int_equal((uintptr_t)base % align, 0);
      assert_int_equal(totals().large_segments, count);
      hz_arena_give_segments(base, count, false);
      assert_int_equal(totals().large_segments, 0);
    }
  assert_non_null(hz_arena_take_segments(SEGMENTS, 16, &record));
  assert_null(hz_arena_take_segments(1, 16, &record));
}

static void absurd_requests_for_segments_are_refused(void **state) {
  (void)state;
  start();
  int record;
  assert_null(hz_arena_take_segments(SEGMENTS + 1, 16, &record));
  assert_null(hz_arena_take_segments(SIZE_MAX >> HZ_SEGMENT_SHIFT, 16, &record));
  assert_null(hz_arena_take_segments(1, (size_t)1 << 63, &record));
  assert_sound();
}

static void lost_segments_are_never_used_again(void **state) {
  (void)state;
  start();
  int record;
  char *base = hz_arena_take_segments(2, 16, &record);
  hz_arena_give_segments(base, 2, true);
  int count = 0;
  for (struct hz_run *run; (run = take(64, 16)) != NULL; count++)
    assert_true((char *)hz_run_base(run) < base ||
                (char *)hz_run_base(run) >= base + 2 * HZ_SEGMENT_BYTES);
  assert_int_equal(count, SEGMENTS - 2);
  assert_sound();
}

static void given_segments_are_zero_for_the_next_owner(void **state) {
  (void)state;
  start();
  int record;
  char *base = hz_arena_take_segments(1, 16, &record);
  assert_true(hz_os.commit(base, HZ_SEGMENT_BYTES));
  memset(base, 1, HZ_SEGMENT_BYTES);
  fake_os_fail_nth(FAKE_DECOMMIT, 1); // the pages go another way
  hz_arena_give_segments(base, 1, false);
  struct hz_run *run = take(64, 16);
  assert_ptr_equal(hz_run_base(run), base);
  assert_true(run->zero && reads_as_zero(run));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_of_every_length_and_alignment_fit_and_are_found),
      cmocka_unit_test(addresses_outside_belong_to_no_run),
      cmocka_unit_test(random_work_never_lets_two_runs_overlap),
      cmocka_unit_test(list_of_runs_comes_back_whole),
      cmocka_unit_test(run_grows_into_free_neighbours_only),
      cmocka_unit_test(used_slabs_serve_before_those_without_pages),
      cmocka_unit_test(zero_is_claimed_only_for_what_reads_as_zero),
      cmocka_unit_test(slabs_are_given_back_only_after_the_idle_time),
      cmocka_unit_test(empty_segment_leaves_whole),
      cmocka_unit_test(oldest_segment_is_given_back_first),
      cmocka_unit_test(purge_makes_no_more_calls_than_it_may),
      cmocka_unit_test(refused_purge_keeps_slabs_dirty_and_is_tried_again),
      cmocka_unit_test(segment_that_cannot_leave_stays_usable_and_zero),
      cmocka_unit_test(segment_that_keeps_its_pages_is_not_called_zero),
      cmocka_unit_test(two_threads_may_purge_one_segment_at_once),
      cmocka_unit_test(segment_that_two_threads_purge_leaves_with_its_last_run),
      cmocka_unit_test(slabs_on_their_way_out_are_nobodys),
      cmocka_unit_test(fork_during_a_purge_loses_no_slab),
      cmocka_unit_test(fork_while_a_segment_leaves_loses_no_slab),
      cmocka_unit_test(handler_that_forks_during_a_purge_loses_no_slab),
      cmocka_unit_test(handler_that_forks_while_a_segment_leaves_loses_no_slab),
      cmocka_unit_test(every_refused_commit_loses_nothing),
      cmocka_unit_test(every_refused_decommit_loses_nothing),
      cmocka_unit_test(every_refused_record_mapping_loses_nothing),
      cmocka_unit_test(overcommit_limit_is_met_exactly_and_given_back),
      cmocka_unit_test(arena_without_address_space_does_not_start),
      cmocka_unit_test(arena_halves_its_wish_until_it_fits),
      cmocka_unit_test(arena_without_tables_does_not_start),
      cmocka_unit_test(limited_process_holds_only_what_it_uses),
      cmocka_unit_test(address_space_that_comes_back_is_used),
      cmocka_unit_test(foreign_mapping_in_the_way_is_left_alone),
      cmocka_unit_test(foreign_mapping_of_many_segments_stops_nothing),
      cmocka_unit_test(limited_large_blocks_give_their_place_back),
      cmocka_unit_test(reservation_is_conceded_only_when_addresses_are_used_up),
      cmocka_unit_test(conceded_arena_goes_on_segment_by_segment),
      cmocka_unit_test(full_arena_has_only_places_to_concede),
      cmocka_unit_test(concession_while_a_segment_leaves_loses_no_place),
      cmocka_unit_test(concession_while_a_large_block_leaves_loses_no_place),
      cmocka_unit_test(large_block_is_found_from_each_of_its_segments),
      cmocka_unit_test(large_block_grows_only_into_free_segments),
      cmocka_unit_test(large_blocks_of_any_alignment_and_number_come_back_whole),
      cmocka_unit_test(absurd_requests_for_segments_are_refused),
      cmocka_unit_test(lost_segments_are_never_used_again),
      cmocka_unit_test(given_segments_are_zero_for_the_next_owner),
  };
  return isolated_run(tests, hz_count_of(tests));
}
