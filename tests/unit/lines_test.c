// What holds for every line, through its function table alone: what it serves, what it refuses,
// what comes back, what happens when threads end, processes fork and memory ends.
#include "tests/unit/lines_machine.h"

#include "core/arena.h"
#include "core/meta.h"
#include "core/size_class.h"

// The longest block that is a run; what is longer takes whole segments.
static size_t longest_run(void) {
  size_t bytes = HZ_SEGMENT_BYTES;
  while (!hz_arena_run_fits(bytes, 1)) bytes -= HZ_SLAB_BYTES;
  return bytes;
}

static uint64_t misused(void) {
  return count(HZ_COUNT_misuse_double) + count(HZ_COUNT_misuse_interior) +
         count(HZ_COUNT_misuse_foreign);
}

// The case is about exact checks; a line without the option has none to offer.
static void start_verifying(void) {
  if (own_option("verify") == NULL) skip();
  options_default();
  own_option_set("verify", 1);
  line_start_as_set();
}

// ---- What is served -----------------------------------------------------------------------------

static void every_size_is_served_aligned_writable_and_apart(void **state) {
  (void)state;
  line_start();
  enum { SIZES = 600 };
  static struct block mine[SIZES];
  size_t bytes = 0;
  for (unsigned i = 0; i < SIZES; i++) {
    mine[i].p = take(bytes);
    assert_non_null(mine[i].p);
    assert_int_equal((uintptr_t)mine[i].p % 16, 0);
    const size_t usable = hz_line_table(line)->usable_size(mine[i].p);
    assert_true(usable >= bytes && usable > 0);
    block_fill(&mine[i], bytes <= 65536 ? usable : bytes, i);
    bytes += bytes < 256 ? 1 : bytes / 34;
  }
  assert_true(bytes > HZ_SEGMENT_BYTES); // all kinds of blocks
  blocks_give(mine, SIZES);
  check_nothing_lost();
}

static void sizes_around_every_class_border_are_kept(void **state) {
  (void)state;
  line_start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    const size_t above = c + 1 < HZ_CLASS_COUNT ? hz_class_bytes(c + 1) : 2 * HZ_SLAB_BYTES;
    for (size_t n = bytes - 1; n <= bytes + 1; n++) {
      char *p = take(n);
      const size_t usable = hz_line_table(line)->usable_size(p);
      assert_int_equal(usable, n <= bytes ? bytes : above);
      memset(p, 1, usable);
      give(p);
    }
  }
  check_nothing_lost();
}

static void check_alignment(size_t align, size_t bytes) {
  char *p = hz_line_table(line)->alloc_aligned(align, bytes);
  CHECK(p != NULL, "%zu bytes aligned to %zu: NULL", bytes, align);
  CHECK((uintptr_t)p % align == 0, "%zu bytes: %p is not aligned to %zu", bytes, (void *)p, align);
  CHECK(hz_line_table(line)->usable_size(p) >= bytes, "%zu bytes aligned to %zu: too small", bytes,
        align);
  if (bytes != 0) p[0] = p[bytes - 1] = 1;
  give(p);
}

static void every_alignment_is_met_for_every_size(void **state) {
  (void)state;
  line_start();
  for (size_t align = 1; align <= 16 * HZ_MIB; align *= 2)
    for (size_t bytes = 0; bytes <= 9 * HZ_MIB; bytes = bytes * 3 + 1)
      check_alignment(align, bytes);
  check_nothing_lost();
}

// Where the first slab of a segment is the line's own, not every place that an alignment allows is
// long enough.
static void every_length_of_run_is_met_at_every_alignment(void **state) {
  (void)state;
  line_start();
  for (size_t align = HZ_SLAB_BYTES; align <= 8 * HZ_MIB; align *= 2)
    for (size_t bytes = HZ_SLAB_BYTES; bytes <= HZ_SEGMENT_BYTES + HZ_SLAB_BYTES;
         bytes += HZ_SLAB_BYTES)
      check_alignment(align, bytes);
  check_nothing_lost();
}

static void blocks_longer_than_any_run_are_large(void **state) {
  (void)state;
  line_start();
  void *run = take(longest_run());
  assert_int_equal(gauges().large_blocks, 0);
  void *large = take(longest_run() + 1);
  assert_int_equal(gauges().large_blocks, 1);
  assert_true(hz_line_table(line)->usable_size(large) > longest_run());
  give(run);
  give(large);
  check_nothing_lost();
}

static void what_cannot_be_served_is_null_and_enomem(void **state) {
  (void)state;
  line_start();
  const size_t absurd[] = {SIZE_MAX, SIZE_MAX - 15, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, HZ_TIB};
  for (unsigned i = 0; i < hz_count_of(absurd); i++) {
    errno = 0;
    assert_null(take(absurd[i]));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(hz_line_table(line)->alloc_zeroed(absurd[i]));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(hz_line_table(line)->alloc_aligned(4096, absurd[i]));
    assert_int_equal(errno, ENOMEM);
  }
  errno = 0;
  assert_null(hz_line_table(line)->alloc_aligned((size_t)1 << 63, 1));
  assert_int_equal(errno, ENOMEM);
  check_nothing_lost();
}

static void blocks_of_no_bytes_are_distinct(void **state) {
  (void)state;
  line_start();
  void *mine[1000];
  for (int i = 0; i < 1000; i++) mine[i] = take(0);
  for (int i = 1; i < 1000; i++)
    for (int k = i - 1; k >= 0 && k > i - 40; k--) assert_ptr_not_equal(mine[i], mine[k]);
  for (int i = 0; i < 1000; i++) give(mine[i]);
  check_nothing_lost();
}

static void zeroed_blocks_are_zero_whatever_was_there_before(void **state) {
  (void)state;
  line_start();
  const size_t sizes[] = {1, 16, 100, 1000, 5000, 65536, 65537, 300000, HZ_MIB * 4, HZ_MIB * 9};
  for (int round = 0; round < 4; round++) {
    for (unsigned i = 0; i < hz_count_of(sizes); i++) {
      char *p = hz_line_table(line)->alloc_zeroed(sizes[i]);
      assert_non_null(p);
      check_zero(p, sizes[i]);
      memset(p, 0xff, hz_line_table(line)->usable_size(p));
      give(p);
    }
    if (round == 1) line->trim(0);
  }
  check_nothing_lost();
}

static void free_of_null_does_nothing_and_free_keeps_errno(void **state) {
  (void)state;
  line_start();
  give(NULL);
  assert_int_equal(count(HZ_COUNT_misuse_foreign), 0);
  const size_t sizes[] = {10, 70000, 9 * HZ_MIB};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    void *p = take(sizes[i]);
    errno = 77;
    give(p);
    line->trim(0);
    assert_int_equal(errno, 77);
  }
  assert_int_equal(hz_line_table(line)->usable_size(NULL), 0);
}

// ---- Resizing -----------------------------------------------------------------------------------

static void resize_stays_in_place_while_half_of_the_block_is_used(void **state) {
  (void)state;
  line_start();
  for (unsigned c = 1; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    char *p = take(bytes);
    assert_ptr_equal(hz_line_table(line)->resize(p, bytes), p);
    assert_ptr_equal(hz_line_table(line)->resize(p, bytes / 2), p);
    assert_null(hz_line_table(line)->resize(p, bytes / 2 - 1));
    assert_null(hz_line_table(line)->resize(p, bytes + 1));
    assert_int_equal(hz_line_table(line)->usable_size(p), bytes);
    give(p);
  }
  check_nothing_lost();
}

static void blocks_above_the_classes_grow_without_copying(void **state) {
  (void)state;
  line_start();
  struct block run = {.p = take(100000)}, large = {.p = take(5 * HZ_MIB)};
  block_fill(&run, 100000, 1);
  block_fill(&large, 5 * HZ_MIB, 2);
  assert_ptr_equal(hz_line_table(line)->resize(run.p, HZ_MIB), run.p);
  assert_true(hz_line_table(line)->usable_size(run.p) >= HZ_MIB);
  block_verify(&run, run.bytes);
  assert_null(hz_line_table(line)->resize(run.p, longest_run() + 1)); // longer than any run
  assert_null(hz_line_table(line)->resize(run.p, 5 * HZ_MIB));        // another kind of block
  char *p = hz_line_table(line)->resize(large.p, 50 * HZ_MIB);
  assert_non_null(p);
  large.p = p;
  block_verify(&large, large.bytes);
  assert_true(hz_line_table(line)->usable_size(p) >= 50 * HZ_MIB);
  assert_null(hz_line_table(line)->resize(p, 100)); // another kind of block
  block_give(&run);
  block_give(&large);
  check_nothing_lost();
}

// ---- Bad frees ----------------------------------------------------------------------------------

static void foreign_addresses_are_refused_at_once(void **state) {
  (void)state;
  line_start();
  int on_stack;
  static int global;
  give(take(BYTES)); // there is a segment
  char *inside = (char *)hz_arena_base() + hz_arena_bytes() - HZ_SLAB_BYTES;
  char *base = hz_arena_base(), *free_slab = base + 40 * HZ_SLAB_BYTES;
  void *foreign[] = {&on_stack, &global, (void *)16, (void *)-16, inside, base - 1, free_slab};
  for (unsigned i = 0; i < hz_count_of(foreign); i++) {
    give(foreign[i]);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 1);
    assert_int_equal(hz_line_table(line)->usable_size(foreign[i]), 0);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 2);
    assert_null(hz_line_table(line)->resize(foreign[i], 100));
  }
  check_nothing_lost();
}

static void bad_frees_above_the_classes_are_refused_at_once(void **state) {
  (void)state;
  line_start();
  const size_t sizes[] = {70000, HZ_MIB, 5 * HZ_MIB};
  for (unsigned i = 0; i < hz_count_of(sizes); i++) {
    char *p = take(sizes[i]);
    hz_counters_reset();
    give(p + 16);
    give(p + HZ_SLAB_BYTES);
    assert_int_equal(hz_line_table(line)->usable_size(p + 16), 0);
    assert_int_equal(count(HZ_COUNT_misuse_interior), 3);
    assert_null(hz_line_table(line)->resize(p + 16, sizes[i]));
    give(p);
    give(p);
    assert_int_equal(hz_line_table(line)->usable_size(p), 0);
    assert_int_equal(count(HZ_COUNT_misuse_double), 2);
    assert_null(hz_line_table(line)->resize(p, sizes[i]));
  }
  check_nothing_lost();
}

static void bad_frees_of_small_blocks_are_found_when_all_caches_are_emptied(void **state) {
  (void)state;
  line_start();
  char *p = take(100), *other = take(100);
  give(other);
  give(other);
  give(p + 16);
  give(p);
  line->trim(0);
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  assert_int_equal(count(HZ_COUNT_misuse_interior), 1);
  check_nothing_lost();
}

static void *give_twice(void *p) {
  give(p);
  give(p);
  give((char *)p + 16);
  return NULL;
}

static void bad_frees_of_foreign_blocks_are_found_when_all_caches_are_emptied(void **state) {
  (void)state;
  line_start();
  void *p = take(100);
  in_thread(give_twice, p);
  line->trim(0);
  assert_int_equal(misused(), 2);
  check_nothing_lost();
}

static void verify_finds_every_bad_free_in_its_call(void **state) {
  (void)state;
  start_verifying();
  char *p = take(100), *other = take(100), *third = take(100);
  give(p + 16);
  assert_int_equal(count(HZ_COUNT_misuse_interior), 1);
  give(p);
  assert_int_equal(count(HZ_COUNT_misuse_double), 0);
  give(p);
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  in_thread(give_twice, other); // another thread's bad frees, too
  assert_int_equal(count(HZ_COUNT_misuse_double), 2);
  assert_int_equal(count(HZ_COUNT_misuse_interior), 2);
  give(third);
  assert_int_equal(count(HZ_COUNT_runs_returned), 1);
  give(third); // its run went back to the arena with it
  assert_int_equal(count(HZ_COUNT_misuse_foreign), 1);
  check_nothing_lost();
}

// ---- Giving back --------------------------------------------------------------------------------

static void work_and_trim(uint64_t profile) {
  static struct block mine[400];
  options_profile(&line->info->profiles[profile]);
  line_start_as_set();
  struct random_state random = random_start(seed_told());
  for (int step = 0; step < 6000; step++) {
    CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
    if (step % 100 != 0) continue;
    fake_os_clock_add(random_between(&random, 0, 300));
    check_sound();
  }
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

static void trim_gives_everything_back_under_every_profile(void **state) {
  (void)state;
  for (size_t i = 0; i < line->info->profile_count; i++) in_child(work_and_trim, i);
}

static void *churn_and_free(void *seed) {
  struct random_state random = random_start(*(uint64_t *)seed);
  struct block mine[30] = {0};
  for (int i = 0; i < 100; i++) CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
  for (unsigned i = 0; i < hz_count_of(blocks); i++) give(blocks[i]);
  blocks_give(mine, hz_count_of(mine));
  return NULL;
}

static void work_at_a_border(uint64_t row) {
  static struct block mine[300];
  options_default();
  const struct hz_option *option = &line->info->options[row / 2];
  if (option->type != HZ_OPTION_BOOL) *option->dest = row % 2 ? option->max : option->min;
  else *option->dest = row % 2;
  line_start_as_set();
  uint64_t seed = seed_told();
  struct random_state random = random_start(seed);
  for (int round = 0; round < 5; round++) {
    for (int step = 0; step < 600; step++)
      CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
    for (unsigned i = 0; i < hz_count_of(blocks); i++)
      blocks[i] = take(random_between(&random, 0, 3000));
    in_thread(churn_and_free, &seed);
  }
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

static void every_option_works_at_both_ends_of_its_range(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * line->info->option_count; i++) in_child(work_at_a_border, i);
}

static void trim_says_whether_it_gave_something_back(void **state) {
  (void)state;
  line_start();
  take_blocks(1000);
  give_blocks(0, 1000);
  assert_true(line->trim(0));
  assert_false(line->trim(0));
}

static void trim_gives_back_free_pages_between_blocks_in_use(void **state) {
  (void)state;
  line_start();
  enum { PAGES = 512 };
  static struct block pages[PAGES];
  for (unsigned i = 0; i < PAGES; i++) {
    pages[i].p = take(4096);
    block_fill(&pages[i], 4096, i);
  }
  for (unsigned i = 0; i < PAGES; i += 2) block_give(&pages[i]);
  const uint64_t before = count(HZ_COUNT_purged);
  assert_true(line->trim(0));
  assert_true(count(HZ_COUNT_purged) - before >= PAGES / 2 * 4096);
  for (unsigned i = 1; i < PAGES; i += 2) block_give(&pages[i]);
  check_nothing_lost();
}

static void *free_all_after_trim(void *unused) {
  (void)unused;
  take_blocks(100);
  give_blocks(0, 100);
  atomic_store(&turn, 1);
  wait_turn(2);
  pass_ms(0); // a slow path
  atomic_store(&turn, 3);
  wait_turn(4);
  return NULL;
}

static void other_threads_follow_a_trim_at_their_next_slow_path(void **state) {
  (void)state;
  line_start();
  const pthread_t thread = thread_start(free_all_after_trim, NULL);
  wait_turn(1);
  line->trim(0);
  assert_true(gauges().live_bytes + gauges().free_bytes > 0); // in its cache, or in its runs
  atomic_store(&turn, 2);
  wait_turn(3);
  line->trim(0);
  assert_int_equal(gauges().live_bytes, 0);
  atomic_store(&turn, 4);
  pthread_join(thread, NULL);
  check_nothing_lost();
}

static void idle_freed_process_shrinks_at_its_next_slow_paths(void **state) {
  (void)state;
  line_start();
  take_blocks(5000);
  give_blocks(0, 5000);
  const uint64_t committed = gauges().committed_bytes;
  for (size_t tick = 0; tick < 12; tick++) {
    fake_os_clock_add(250);
    give(take(hz_class_bytes((unsigned)tick))); // the first block of its class
  }
  // What the thread's own magazine holds keeps its runs.
  assert_true(gauges().committed_bytes <= committed);
  assert_true(gauges().live_bytes < 1000 * 1000);
  check_sound();
}

// Exact frees put every block where its run sees it, so that nothing stays for a cache's sake.
static void free_memory_inside_runs_goes_after_the_idle_time(void **state) {
  (void)state;
  start_verifying();
  check_pages_inside_runs_go(NULL);
}

static void empty_runs_go_to_the_kernel_after_the_idle_time(void **state) {
  (void)state;
  option_set("cache", "large_bytes", 0);
  start_verifying();
  check_empty_runs_go(NULL);
}

static void gauges_tell_what_is_live(void **state) {
  (void)state;
  line_start();
  void *large = take(10 * HZ_MIB), *run = take(HZ_MIB);
  struct hz_gauges now = gauges();
  assert_int_equal(now.large_bytes, 10 * HZ_MIB);
  assert_int_equal(now.large_blocks, 1);
  assert_int_equal(now.live_bytes, 11 * HZ_MIB);
  assert_true(now.committed_bytes >= 11 * HZ_MIB && now.committed_bytes <= now.reserved_bytes);
  assert_int_equal(now.threads, 1);
  give(large);
  give(run);
  now = gauges();
  assert_int_equal(now.large_blocks, 0);
  assert_true(now.free_bytes >= 10 * HZ_MIB);
  take_blocks(1000);
  now = gauges();
  assert_true(now.live_bytes >= 1000 * 1000 && now.cached_bytes <= now.live_bytes);
  give_in_thread(0, 500);
  give_blocks(500, 1000);
  now = gauges();
  assert_true(now.cached_bytes <= now.live_bytes);
  check_nothing_lost();
}

// ---- Threads ------------------------------------------------------------------------------------

static void *work_in_a_crowd(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  struct block mine[50] = {0};
  void *first = take(1); // makes the heap
  atomic_fetch_add(&turn, 1);
  wait_turn(1000);
  for (int i = 0; i < 100; i++) random_step(mine, hz_count_of(mine), &random);
  blocks_give(mine, hz_count_of(mine));
  give(first);
  return NULL;
}

// More than a line has of anything that threads share by number.
static void crowd_of_threads_is_served_and_counted(void **state) {
  (void)state;
  line_start();
  pthread_t threads[150];
  const uint64_t seed = seed_told();
  for (unsigned i = 0; i < hz_count_of(threads); i++)
    threads[i] = thread_start(work_in_a_crowd, (void *)(uintptr_t)(seed + i));
  wait_turn(150);
  assert_int_equal(gauges().threads, 150);
  atomic_store(&turn, 1000);
  for (unsigned i = 0; i < hz_count_of(threads); i++) pthread_join(threads[i], NULL);
  assert_int_equal(gauges().threads, 0);
  check_nothing_lost();
}

// The thread sanitizer itself ends a thread in the last of the C library's four rounds.
enum { LATE_ROUNDS = SANITIZED ? 3 : 4 };

static void destructors_allocate_and_free_in_every_round(void **state) {
  (void)state;
  line_start();
  threads_work_late(20, LATE_ROUNDS);
  assert_int_equal(gauges().threads, 0);
  check_nothing_lost();
}

static void *churn(void *seed) {
  struct random_state random = random_start(*(uint64_t *)seed);
  struct block mine[30] = {0};
  for (int i = 0; i < 60; i++) CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
  blocks_give(mine, hz_count_of(mine));
  return NULL;
}

static void threads_in_turn_leave_nothing_behind(void **state) {
  (void)state;
  line_start();
  uint64_t seed = seed_told();
  size_t meta = 0;
  for (int i = 0; i < 400; i++, seed++) {
    in_thread(churn, &seed);
    if (i == 200) meta = hz_meta_bytes();
  }
  assert_true(hz_meta_bytes() <= meta + 512 * 1024); // heaps and magazines are used again
  assert_int_equal(count(HZ_COUNT_threads_ended), 400);
  check_nothing_lost();
}

// ---- fork ---------------------------------------------------------------------------------------

enum { HOLDERS = 8, HELD = 40, FREED = 20 };
static struct block theirs[HOLDERS][HELD];

// Some blocks in hand, some in magazines, some of another thread on their way to it.
static void *hold_blocks(void *argument) {
  const uintptr_t i = (uintptr_t)argument;
  struct random_state random = random_start(i);
  give_blocks((unsigned)i * FREED, (unsigned)(i + 1) * FREED);
  for (int step = 0; step < 300; step++) random_step(theirs[i], HELD, &random);
  atomic_fetch_add(&turn, 1);
  wait_turn(100);
  return NULL;
}

static void inherit_all(void *kept) {
  for (unsigned i = 0; i < HOLDERS; i++) blocks_give(theirs[i], HELD);
  line->trim(0);
  check_sound();
  CHECK(gauges().live_bytes == 16, "what the forking thread keeps is all that lives");
  give(kept);
  check_nothing_lost();
  CHECK(count(HZ_COUNT_adopted) == HOLDERS, "all others' heaps are taken over");
  CHECK(misused() == 0, "a block is salvaged twice");
  CHECK(gauges().threads == 1, "their slots are free");
  if (SANITIZED) _exit(0); // the thread sanitizer allows no new thread in a child
  unsigned many = 500;
  in_thread(take_many, &many);
  give_blocks(0, many);
  check_nothing_lost();
  _exit(0);
}

static void child_takes_over_what_vanished_threads_had(void **state) {
  (void)state;
  line_start();
  pthread_t threads[HOLDERS];
  void *kept = take(16);
  take_blocks(HOLDERS * FREED);
  for (uintptr_t i = 0; i < HOLDERS; i++) threads[i] = thread_start(hold_blocks, (void *)i);
  wait_turn(HOLDERS);
  for (int round = 0; round < 3; round++) {
    const pid_t child = fork_with_handlers();
    if (child == 0) inherit_all(kept);
    check_child(child);
  }
  atomic_store(&turn, 100);
  for (unsigned i = 0; i < HOLDERS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < HOLDERS; i++) blocks_give(theirs[i], HELD);
  give(kept);
  check_nothing_lost();
}

// Threads that pass small blocks around, so that blocks of others are always on their way.
static _Atomic(void *) passed[256];

static void *busy(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  struct block mine[60] = {0};
  while (atomic_load(&turn) == 0) {
    random_step(mine, hz_count_of(mine), &random);
    for (int i = 0; i < 200; i++)
      give(atomic_exchange(&passed[random_next(&random) >> 56], take(i % 8 * 16)));
  }
  blocks_give(mine, hz_count_of(mine));
  return NULL;
}

static void work_as_a_child(struct block *mine, size_t places, struct random_state *random) {
  check_sound();
  for (int i = 0; i < 300; i++) random_step(mine, places, random);
  blocks_give(mine, places);
  line->trim(0); // salvages what the others had
  check_sound();
  CHECK(misused() == 0, "%llu bad frees, %llu of them of blocks salvaged twice",
        (unsigned long long)misused(), (unsigned long long)count(HZ_COUNT_misuse_double));
  _exit(0);
}

static void fork_while_busy(int rounds) {
  line_start_as_set();
  pthread_t threads[4];
  const uint64_t seed = seed_told();
  for (unsigned i = 0; i < 4; i++) threads[i] = thread_start(busy, (void *)(uintptr_t)(seed + i));
  static struct block mine[100];
  struct random_state random = random_start(seed + 9);
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < 50; i++) random_step(mine, hz_count_of(mine), &random);
    const pid_t child = fork_with_handlers();
    if (child == 0) work_as_a_child(mine, hz_count_of(mine), &random);
    check_child(child);
  }
  atomic_store(&turn, 1);
  for (unsigned i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < hz_count_of(passed); i++) give(passed[i]);
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

static void children_of_a_busy_process_are_sound(void **state) {
  (void)state;
  options_default();
  fork_while_busy(25);
}

static void children_of_a_process_busy_in_slow_paths_are_sound(void **state) {
  (void)state;
  options_default();
  own_option_set("magazine_blocks", 16);
  own_option_set("packet_blocks", 16);
  own_option_set("front_blocks", 16);
  fork_while_busy(SANITIZED ? 20 : 60);
}

// ---- When memory ends ---------------------------------------------------------------------------

static struct block survivors[120];
static uint64_t out_of_memory_seed;
static enum fake_call failing;

// Another thread's part: it frees half of what lives, and takes some.
static void *free_half_elsewhere(void *seed) {
  struct random_state random = random_start(*(uint64_t *)seed);
  blocks_give(survivors, hz_count_of(survivors) / 2);
  for (int i = 0; i < 60; i++) random_step(survivors, hz_count_of(survivors) / 2, &random);
  return NULL;
}

// Exit 2: there is no n-th call any more.
static void work_with_the_nth_failing(uint64_t n) {
  uint64_t seed = out_of_memory_seed;
  struct random_state random = random_start(seed);
  line_start();
  fake_os_fail_nth(failing, n);
  for (int step = 1; step <= 1500; step++) {
    random_step(survivors, hz_count_of(survivors), &random);
    if (step % 64 == 0) fake_os_clock_add(100);
    if (step % 200 == 0) in_thread(free_half_elsewhere, &seed);
  }
  check_sound();
  const bool failed = fake_os_failed(failing);
  fake_os_fail_nth(failing, 0);
  blocks_give(survivors, hz_count_of(survivors));
  // A segment that could not leave stays, clean, until it is used again.
  check_nothing_lost_but(failing == FAKE_DECOMMIT ? HZ_SEGMENT_BYTES : 0);
  exit(failed ? 0 : 2);
}

static void each_failure_in_turn(enum fake_call call) {
  failing = call;
  out_of_memory_seed = seed_told();
  for (uint64_t n = 1;; n += n < 40 ? 1 : 9) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) work_with_the_nth_failing(n);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return;
    if (status != 0) fail_msg("n = %d", (int)n);
  }
}

static void each_refused_commit_in_turn_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn(FAKE_COMMIT);
}
static void each_refused_record_in_turn_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn(FAKE_MAP);
}
static void each_refused_purge_in_turn_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn(FAKE_PURGE);
}
static void each_refused_decommit_in_turn_loses_nothing(void **state) {
  (void)state;
  each_failure_in_turn(FAKE_DECOMMIT);
}

static void work_refused_at_times(const char *under, uint64_t megabytes) {
  struct random_state random = random_start(seed_told());
  unsigned refused = 0;
  for (int step = 0; step < 4000; step++)
    refused += !random_step(survivors, hz_count_of(survivors), &random);
  check_sound();
  blocks_give(survivors, hz_count_of(survivors));
  check_nothing_lost();
  say("%s of %llu MiB: %u of 4000 steps were refused\n", under, (unsigned long long)megabytes,
      refused);
}

static void work_within(uint64_t megabytes) {
  line_start();
  fake_os_commit_limit(megabytes * HZ_MIB);
  work_refused_at_times("strict overcommit", megabytes);
}

static void strict_overcommit_refuses_and_recovers(void **state) {
  (void)state;
  const uint64_t limits[] = {1, 5, 8, 12, 24};
  for (unsigned i = 0; i < hz_count_of(limits); i++) in_child(work_within, limits[i]);
}

static void work_under_an_address_limit(uint64_t megabytes) {
  core_options.reserve_bytes = HZ_TIB;
  fake_os_address_limit(megabytes * HZ_MIB);
  line_start();
  work_refused_at_times("RLIMIT_AS", megabytes);
}

static void address_limit_refuses_and_recovers(void **state) {
  (void)state;
  const uint64_t limits[] = {16, 64, 128, 512};
  for (unsigned i = 0; i < hz_count_of(limits); i++)
    in_child(work_under_an_address_limit, limits[i]);
}

static void cached_blocks_serve_when_the_kernel_refuses(void **state) {
  (void)state;
  line_start();
  take_blocks(5000);
  give_blocks(0, 5000);
  give(take(3 * HZ_MIB));
  fake_os_fail_from(FAKE_COMMIT, 1);
  const size_t other = 24 * 1024; // another class, which needs the slabs of the first
  unsigned got = 0;
  while (got < 100 && (blocks[got] = take(other)) != NULL) got++;
  assert_int_equal(got, 100);
  for (unsigned i = 0; i < got; i++) give(blocks[i]);
  fake_os_fail_from(FAKE_COMMIT, 0);
  check_nothing_lost();
}

static void *need_a_heap(void *unused) {
  (void)unused;
  // No record for a heap, nor for a magazine: single blocks, from the runs and back.
  void *mine[200];
  for (int i = 0; i < 200; i++) CHECK((mine[i] = take(BYTES)) != NULL, "no memory");
  for (int i = 0; i < 200; i++) give(mine[i]);
  return NULL;
}

static void thread_that_cannot_have_a_heap_is_served(void **state) {
  (void)state;
  line_start();
  take_blocks(500);
  give_blocks(0, 300);
  line->trim(0);                                                   // the freed ones lie in no cache
  while (hz_meta_take(16) != NULL) fake_os_fail_from(FAKE_MAP, 1); // every last record
  in_thread(need_a_heap, NULL);
  assert_int_equal(gauges().threads, 1);
  fake_os_fail_from(FAKE_MAP, 0);
  give_blocks(300, 500);
  check_nothing_lost();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_is_served_aligned_writable_and_apart),
      cmocka_unit_test(sizes_around_every_class_border_are_kept),
      cmocka_unit_test(every_alignment_is_met_for_every_size),
      cmocka_unit_test(every_length_of_run_is_met_at_every_alignment),
      cmocka_unit_test(blocks_longer_than_any_run_are_large),
      cmocka_unit_test(what_cannot_be_served_is_null_and_enomem),
      cmocka_unit_test(blocks_of_no_bytes_are_distinct),
      cmocka_unit_test(zeroed_blocks_are_zero_whatever_was_there_before),
      cmocka_unit_test(free_of_null_does_nothing_and_free_keeps_errno),
      cmocka_unit_test(resize_stays_in_place_while_half_of_the_block_is_used),
      cmocka_unit_test(blocks_above_the_classes_grow_without_copying),
      cmocka_unit_test(foreign_addresses_are_refused_at_once),
      cmocka_unit_test(bad_frees_above_the_classes_are_refused_at_once),
      cmocka_unit_test(bad_frees_of_small_blocks_are_found_when_all_caches_are_emptied),
      cmocka_unit_test(bad_frees_of_foreign_blocks_are_found_when_all_caches_are_emptied),
      cmocka_unit_test(verify_finds_every_bad_free_in_its_call),
      cmocka_unit_test(trim_gives_everything_back_under_every_profile),
      cmocka_unit_test(every_option_works_at_both_ends_of_its_range),
      cmocka_unit_test(trim_says_whether_it_gave_something_back),
      cmocka_unit_test(trim_gives_back_free_pages_between_blocks_in_use),
      cmocka_unit_test(other_threads_follow_a_trim_at_their_next_slow_path),
      cmocka_unit_test(idle_freed_process_shrinks_at_its_next_slow_paths),
      cmocka_unit_test(free_memory_inside_runs_goes_after_the_idle_time),
      cmocka_unit_test(empty_runs_go_to_the_kernel_after_the_idle_time),
      cmocka_unit_test(gauges_tell_what_is_live),
      cmocka_unit_test(crowd_of_threads_is_served_and_counted),
      cmocka_unit_test(destructors_allocate_and_free_in_every_round),
      cmocka_unit_test(threads_in_turn_leave_nothing_behind),
      cmocka_unit_test(child_takes_over_what_vanished_threads_had),
      cmocka_unit_test(children_of_a_busy_process_are_sound),
      cmocka_unit_test(children_of_a_process_busy_in_slow_paths_are_sound),
      cmocka_unit_test(each_refused_commit_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_record_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_purge_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_decommit_in_turn_loses_nothing),
      cmocka_unit_test(strict_overcommit_refuses_and_recovers),
      cmocka_unit_test(address_limit_refuses_and_recovers),
      cmocka_unit_test(cached_blocks_serve_when_the_kernel_refuses),
      cmocka_unit_test(thread_that_cannot_have_a_heap_is_served),
  };
  return lines_run(tests, hz_count_of(tests));
}
