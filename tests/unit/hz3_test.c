// lines/hz3 through its function table: what it serves, where blocks go, what comes back, and what
// happens when memory ends.
#include "tests/unit/hz3_machine.h"

#include "core/large.h"

static bool all_zero(const char *p, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (p[i] != 0) return false;
  return true;
}

static uint64_t count(enum hz_counter counter) {
  return hz_counter_read(counter);
}

static unsigned stash_length(unsigned shard, unsigned class_id) {
  unsigned n = 0;
  const struct hz_magazine *m = atomic_load(&hz3_shards[shard].stash[class_id]);
  for (; m != NULL; m = m->next) n++;
  return n;
}

// Cases that need a process per profile or per round.
static void in_child(void (*run)(uint64_t), uint64_t argument) {
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    run(argument);
    exit(0);
  }
  check_child(child);
}

// ---- What is served ----------------------------------------------------------------------------

static void every_size_is_served_aligned_writable_and_apart(void **state) {
  (void)state;
  line_start();
  enum { SIZES = 600 };
  static struct block blocks[SIZES];
  size_t bytes = 0;
  for (unsigned i = 0; i < SIZES; i++) {
    blocks[i].p = take(bytes);
    assert_non_null(blocks[i].p);
    assert_int_equal((uintptr_t)blocks[i].p % 16, 0);
    const size_t usable = hz3_line.table.usable_size(blocks[i].p);
    assert_true(usable >= bytes && usable > 0);
    block_fill(&blocks[i], bytes <= 65536 ? usable : bytes, i);
    bytes += bytes < 256 ? 1 : bytes / 34;
  }
  assert_true(bytes > HZ_RUN_BLOCK_MAX_BYTES); // all kinds of blocks
  for (unsigned i = 0; i < SIZES; i++) block_verify(&blocks[i], blocks[i].bytes);
  blocks_give(blocks, SIZES);
  check_nothing_lost();
}

static void sizes_around_every_class_border_are_kept(void **state) {
  (void)state;
  line_start();
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    for (size_t n = bytes - 1; n <= bytes + 1; n++) {
      char *p = take(n);
      const size_t usable = hz3_line.table.usable_size(p);
      assert_int_equal(usable, n <= bytes               ? bytes
                               : c + 1 < HZ_CLASS_COUNT ? hz_class_bytes(c + 1)
                                                        : 2 * HZ_SLAB_BYTES);
      memset(p, 1, usable);
      give(p);
    }
  }
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
    assert_null(hz3_line.table.alloc_zeroed(absurd[i]));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(hz3_line.table.alloc_aligned(4096, absurd[i]));
    assert_int_equal(errno, ENOMEM);
  }
  errno = 0;
  assert_null(hz3_line.table.alloc_aligned((size_t)1 << 63, 1));
  assert_int_equal(errno, ENOMEM);
  check_nothing_lost();
}

static void blocks_of_no_bytes_are_distinct(void **state) {
  (void)state;
  line_start();
  void *blocks[1000];
  for (int i = 0; i < 1000; i++) blocks[i] = take(0);
  for (int i = 1; i < 1000; i++)
    for (int k = i - 1; k >= 0 && k > i - 40; k--) assert_ptr_not_equal(blocks[i], blocks[k]);
  for (int i = 0; i < 1000; i++) give(blocks[i]);
  check_nothing_lost();
}

static void zeroed_blocks_are_zero_whatever_was_there_before(void **state) {
  (void)state;
  line_start();
  const size_t sizes[] = {1, 16, 100, 1000, 5000, 65536, 65537, 300000, HZ_MIB * 4, HZ_MIB * 9};
  for (int round = 0; round < 4; round++) {
    for (unsigned i = 0; i < hz_count_of(sizes); i++) {
      char *p = hz3_line.table.alloc_zeroed(sizes[i]);
      assert_non_null(p);
      assert_true(all_zero(p, sizes[i]));
      memset(p, 0xff, hz3_line.table.usable_size(p));
      give(p);
    }
    if (round == 1) hz3_line.trim(0);
  }
  check_nothing_lost();
}

static void every_alignment_is_met_for_every_size(void **state) {
  (void)state;
  line_start();
  for (size_t align = 1; align <= 16 * HZ_MIB; align *= 2)
    for (size_t bytes = 0; bytes <= 9 * HZ_MIB; bytes = bytes * 3 + 1) {
      char *p = hz3_line.table.alloc_aligned(align, bytes);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % align, 0);
      assert_true(hz3_line.table.usable_size(p) >= bytes);
      if (bytes != 0) p[0] = p[bytes - 1] = 1;
      give(p);
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
    hz3_line.trim(0);
    assert_int_equal(errno, 77);
  }
  assert_int_equal(hz3_line.table.usable_size(NULL), 0);
}

// ---- Resizing ----------------------------------------------------------------------------------

static void resize_stays_in_place_while_half_of_the_block_is_used(void **state) {
  (void)state;
  line_start();
  for (unsigned c = 1; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    char *p = take(bytes);
    assert_ptr_equal(hz3_line.table.resize(p, bytes), p);
    assert_ptr_equal(hz3_line.table.resize(p, bytes / 2), p);
    assert_null(hz3_line.table.resize(p, bytes / 2 - 1));
    assert_null(hz3_line.table.resize(p, bytes + 1));
    assert_int_equal(hz3_line.table.usable_size(p), bytes);
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
  assert_ptr_equal(hz3_line.table.resize(run.p, HZ_MIB), run.p);
  assert_true(hz3_line.table.usable_size(run.p) >= HZ_MIB);
  block_verify(&run, run.bytes);
  assert_null(hz3_line.table.resize(run.p, 5 * HZ_MIB)); // another kind of block
  char *p = hz3_line.table.resize(large.p, 50 * HZ_MIB);
  assert_non_null(p);
  large.p = p;
  block_verify(&large, large.bytes);
  assert_true(hz3_line.table.usable_size(p) >= 50 * HZ_MIB);
  assert_null(hz3_line.table.resize(p, 100)); // another kind of block
  block_give(&run);
  block_give(&large);
  check_nothing_lost();
}

// ---- Bad frees ---------------------------------------------------------------------------------

static void foreign_addresses_are_refused_at_once(void **state) {
  (void)state;
  line_start();
  int on_stack;
  static int global;
  char *inside = (char *)hz_arena_base() + hz_arena_bytes() - HZ_SLAB_BYTES;
  void *foreign[] = {&on_stack,   &global, (void *)16,
                     (void *)-16, inside,  (char *)hz_arena_base() - 1};
  for (unsigned i = 0; i < hz_count_of(foreign); i++) {
    give(foreign[i]);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 1);
    assert_int_equal(hz3_line.table.usable_size(foreign[i]), 0);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 2);
    assert_null(hz3_line.table.resize(foreign[i], 100));
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
    assert_int_equal(hz3_line.table.usable_size(p + 16), 0);
    assert_int_equal(count(HZ_COUNT_misuse_interior), 3);
    assert_null(hz3_line.table.resize(p + 16, sizes[i]));
    give(p);
    give(p);
    assert_int_equal(hz3_line.table.usable_size(p), 0);
    assert_int_equal(count(HZ_COUNT_misuse_double), 2);
    assert_null(hz3_line.table.resize(p, sizes[i]));
  }
  check_nothing_lost();
}

static void bad_frees_of_small_blocks_are_found_when_the_magazine_is_emptied(void **state) {
  (void)state;
  line_start();
  char *p = take(100), *other = take(100);
  give(other);
  give(other);
  give(p + 16);
  give(p);
  hz3_line.trim(0);
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  assert_int_equal(count(HZ_COUNT_misuse_interior), 1);
  check_nothing_lost();
}

static void verify_finds_every_bad_free_in_its_call(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "verify", 1);
  line_start_as_set();
  char *p = take(100), *other = take(100);
  give(p + 16);
  assert_int_equal(count(HZ_COUNT_misuse_interior), 1);
  give(p);
  assert_int_equal(count(HZ_COUNT_misuse_double), 0);
  give(p);
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  give(other);
  give(other); // its run went back to the arena with it
  assert_int_equal(count(HZ_COUNT_misuse_double) + count(HZ_COUNT_misuse_foreign), 2);
  check_nothing_lost();
}

// ---- Magazines, depot, shards ------------------------------------------------------------------

enum { BYTES = 1000 };
static unsigned class_of_bytes(void) {
  return hz_class_of(BYTES);
}

static void *blocks[5000];

static void take_blocks(unsigned n) {
  for (unsigned i = 0; i < n; i++) CHECK((blocks[i] = take(BYTES)) != NULL, "no memory");
}
static void give_blocks(unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) give(blocks[i]);
}

static void last_freed_block_is_first_used(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_blocks(0, 3);
  for (int i = 3; i-- > 0;) assert_ptr_equal(take(BYTES), blocks[i]);
}

static void full_magazines_go_to_the_depot_and_come_back_whole(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  const unsigned capacity = hz3_limits[class_id].capacity;
  const struct hz_depot *depot = &hz3_shards[0].depots[class_id];
  take_blocks(4 * capacity);
  const uint64_t refills = count(HZ_COUNT_refills), carved = count(HZ_COUNT_runs_carved);
  give_blocks(0, 4 * capacity);
  assert_true(depot->count >= 3);
  check_sound();
  take_blocks(4 * capacity);
  assert_int_equal(depot->count, 0);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_true(count(HZ_COUNT_refills) - refills <= 4);
  give_blocks(0, 4 * capacity);
  check_nothing_lost();
}

static void depot_keeps_no_more_than_its_budget(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "depot_bytes", 128 * 1024);
  line_start_as_set();
  const unsigned class_id = class_of_bytes();
  take_blocks(2000);
  give_blocks(0, 2000);
  const struct hz_depot *depot = &hz3_shards[0].depots[class_id];
  assert_int_equal(hz3_limits[class_id].depot_magazines, 2);
  assert_int_equal(depot->count, 2);
  check_nothing_lost();
}

static void *take_a_magazine(void *unused) {
  (void)unused;
  const unsigned capacity = hz3_limits[class_of_bytes()].capacity;
  for (unsigned i = 0; i < capacity; i++) CHECK((blocks[i] = take(BYTES)) != NULL, "no memory");
  give_blocks(0, capacity);
  return NULL;
}

static void threads_that_share_a_shard_share_its_depot(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "shards", 1);
  line_start_as_set();
  const unsigned class_id = class_of_bytes();
  take_blocks(4 * hz3_limits[class_id].capacity);
  give_blocks(0, 4 * hz3_limits[class_id].capacity);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  in_thread(take_a_magazine, NULL);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_int_equal(count(HZ_COUNT_remote_frees), 0);
  check_nothing_lost();
}

static atomic_uint turn;

static void wait_turn(unsigned which) {
  while (atomic_load(&turn) < which) sched_yield();
}

static void *work_in_a_crowd(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  static __thread struct block mine[50];
  void *first = take(1); // makes the heap
  atomic_fetch_add(&turn, 1);
  wait_turn(200);
  for (int i = 0; i < 100; i++) random_step(mine, hz_count_of(mine), &random);
  blocks_give(mine, hz_count_of(mine));
  give(first);
  return NULL;
}

static void more_threads_than_shards_share_them(void **state) {
  (void)state;
  line_start();
  pthread_t threads[150];
  const uint64_t seed = seed_told();
  for (unsigned i = 0; i < hz_count_of(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work_in_a_crowd, (void *)(seed + i)), 0);
  wait_turn(150);
  assert_int_equal(gauges().threads, 150);
  atomic_store(&turn, 200);
  for (unsigned i = 0; i < hz_count_of(threads); i++) pthread_join(threads[i], NULL);
  assert_int_equal(gauges().threads, 0);
  check_nothing_lost();
}

// ---- Packets -----------------------------------------------------------------------------------

static void *give_range(void *to) {
  give_blocks(0, *(unsigned *)to);
  return NULL;
}

static void foreign_blocks_travel_in_packets_to_their_owner(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned packet = hz3_limits[class_id].packet, three = 3 * packet;
  take_blocks(three);
  in_thread(give_range, &three);
  assert_int_equal(count(HZ_COUNT_remote_frees), three);
  assert_int_equal(count(HZ_COUNT_remote_batches), 3);
  assert_int_equal(stash_length(0, class_id), 3);
  check_sound();
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  take_blocks(three + hz3_limits[class_id].refill);
  assert_int_equal(stash_length(0, class_id), 0);
  assert_int_equal(count(HZ_COUNT_collected), 3);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, three + hz3_limits[class_id].refill);
  check_nothing_lost();
}

static void packet_that_never_filled_is_handed_over_at_thread_exit(void **state) {
  (void)state;
  line_start();
  unsigned few = 3;
  take_blocks(few);
  in_thread(give_range, &few);
  assert_int_equal(count(HZ_COUNT_remote_frees), few);
  assert_int_equal(count(HZ_COUNT_remote_batches), 1);
  check_nothing_lost();
}

static void stash_beyond_its_budget_serves_all(void **state) {
  (void)state;
  options_default();
  option_set("hz3", "stash_bytes", 64 * 1024);
  line_start_as_set();
  const unsigned class_id = class_of_bytes();
  unsigned many = 2000;
  take_blocks(many);
  in_thread(give_range, &many);
  assert_int_equal(hz3_limits[class_id].stash_packets, 2);
  assert_int_equal(stash_length(0, class_id), 2);
  assert_true(hz_central_free_bytes(class_id) > 0 || count(HZ_COUNT_runs_returned) > 0);
  check_nothing_lost();
}

static void *take_many(void *n) {
  take_blocks(*(unsigned *)n);
  return NULL;
}

static void blocks_of_an_ended_thread_go_to_the_runs(void **state) {
  (void)state;
  line_start();
  unsigned many = 500;
  take(1); // this thread is the first shard
  in_thread(take_many, &many);
  assert_int_equal(atomic_load(&hz3_shards[1].live), 0);
  give_blocks(0, many);
  give(NULL);
  hz3_heap_flush(hz3_heap_get());
  assert_int_equal(stash_length(1, class_of_bytes()), 0);
  assert_true(count(HZ_COUNT_runs_returned) > 0);
  check_sound();
}

static void *take_then_wait(void *n) {
  take_blocks(*(unsigned *)n);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static void start_owner(pthread_t *owner, unsigned *many) {
  take(1);
  assert_int_equal(pthread_create(owner, NULL, take_then_wait, many), 0);
  wait_turn(1);
}

static void end_owner(pthread_t owner) {
  atomic_store(&turn, 2);
  pthread_join(owner, NULL);
}

static void packets_that_their_owner_does_not_fetch_go_to_the_runs(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned many = 512;
  pthread_t owner;
  start_owner(&owner, &many);
  give_blocks(0, many);
  assert_true(stash_length(1, class_id) > 0);
  const uint64_t live = gauges().live_bytes;
  for (int tick = 0; tick < 3; tick++) { // slow paths of this thread, for other blocks
    fake_os_clock_add(500);
    give(take(5 * HZ_MIB));
  }
  assert_int_equal(stash_length(1, class_id), 0);
  assert_true(gauges().live_bytes < live);
  check_sound();
  end_owner(owner);
}

static void what_ended_threads_left_serves_before_new_runs(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned many = 512;
  pthread_t owner;
  start_owner(&owner, &many);
  give_blocks(0, many);
  hz3_heap_flush(hz3_heap_get());
  assert_true(stash_length(1, class_id) > 0);
  end_owner(owner);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  take_blocks(many);
  assert_true(count(HZ_COUNT_stolen) > 0);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, many);
}

static void packets_of_a_living_owner_are_left_to_it(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  unsigned many = 512;
  pthread_t owner;
  start_owner(&owner, &many);
  give_blocks(0, many);
  hz3_heap_flush(hz3_heap_get());
  const unsigned waiting = stash_length(1, class_id);
  take_blocks(many);
  assert_int_equal(stash_length(1, class_id), waiting);
  assert_int_equal(count(HZ_COUNT_stolen), 0);
  give_blocks(0, many);
  end_owner(owner);
}

// ---- Giving back -------------------------------------------------------------------------------

static void work_and_trim(uint64_t profile) {
  static struct block mine[400];
  options_profile(&hz3_info.profiles[profile]);
  line_start_as_set();
  struct random_state random = random_start(seed_told());
  for (int step = 0; step < 6000; step++) {
    CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
    if (step % 100 == 0) {
      fake_os_clock_add(random_between(&random, 0, 300));
      check_sound();
    }
  }
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

static void trim_gives_everything_back_under_every_profile(void **state) {
  (void)state;
  for (size_t i = 0; i < hz3_info.profile_count; i++) in_child(work_and_trim, i);
}

static void work_at_a_border(uint64_t row) {
  static struct block mine[300];
  options_default();
  const struct hz_option *option = &hz3_info.options[row / 2];
  if (option->type != HZ_OPTION_BOOL) *option->dest = row % 2 ? option->max : option->min;
  else *option->dest = row % 2;
  line_start_as_set();
  struct random_state random = random_start(seed_told());
  for (int step = 0; step < 3000; step++)
    CHECK(random_step(mine, hz_count_of(mine), &random), "no memory");
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

static void every_option_works_at_both_ends_of_its_range(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * hz3_info.option_count; i++) in_child(work_at_a_border, i);
}

static void trim_says_whether_it_gave_something_back(void **state) {
  (void)state;
  line_start();
  take_blocks(1000);
  give_blocks(0, 1000);
  assert_true(hz3_line.trim(0));
  assert_false(hz3_line.trim(0));
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
  assert_true(hz3_line.trim(0));
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
  give(take(5 * HZ_MIB)); // a slow path
  atomic_store(&turn, 3);
  wait_turn(4);
  return NULL;
}

static void other_threads_follow_a_trim_at_their_next_slow_path(void **state) {
  (void)state;
  line_start();
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, free_all_after_trim, NULL), 0);
  wait_turn(1);
  hz3_line.trim(0);
  const uint64_t held = gauges().live_bytes;
  assert_true(held > 0);
  atomic_store(&turn, 2);
  wait_turn(3);
  hz3_line.trim(0);
  assert_true(gauges().live_bytes < held);
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
    give(take(2000 * (tick + 1))); // the first block of its class
  }
  // What the thread's own magazine holds keeps its runs.
  assert_true(gauges().committed_bytes <= committed);
  assert_true(gauges().live_bytes < 1000 * 1000);
  check_sound();
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
  give_blocks(0, 1000);
  assert_true(gauges().cached_bytes > 500 * 1000);
  check_nothing_lost();
}

// ---- Threads that have ended -------------------------------------------------------------------

// The thread sanitizer itself ends a thread in the last of the C library's four rounds.
enum { LATE_ROUNDS = SANITIZED ? 3 : 4 };
static pthread_key_t late_key;
static _Atomic unsigned late_rounds;

// Destructors that run after ours find a thread that has no heap any more.
static void allocate_late(void *p) {
  static __thread int round;
  block_verify(p, ((struct block *)p)->bytes);
  give(((struct block *)p)->p);
  struct random_state random = random_start(7);
  struct block mine[60] = {0};
  for (int i = 0; i < 600; i++) random_step(mine, hz_count_of(mine), &random);
  blocks_give(mine, hz_count_of(mine));
  atomic_fetch_add(&late_rounds, 1);
  if (++round == LATE_ROUNDS) return;
  struct block *block = p;
  CHECK((block->p = take(BYTES)) != NULL, "no memory");
  block_fill(block, BYTES, 5);
  pthread_setspecific(late_key, block);
}

static void *leave_a_block(void *unused) {
  (void)unused;
  static __thread struct block block;
  block.p = take(BYTES);
  block_fill(&block, BYTES, 5);
  pthread_setspecific(late_key, &block);
  return NULL;
}

static void destructors_allocate_and_free_in_every_round(void **state) {
  (void)state;
  line_start();
  assert_int_equal(pthread_key_create(&late_key, allocate_late), 0);
  for (int i = 0; i < 20; i++) in_thread(leave_a_block, NULL);
  assert_int_equal(atomic_load(&late_rounds), 20 * LATE_ROUNDS);
  check_nothing_lost();
  assert_int_equal(gauges().threads, 0);
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

// ---- fork --------------------------------------------------------------------------------------

static struct block theirs[8][40];

static void *hold_blocks(void *argument) {
  struct block *mine = argument;
  struct random_state random = random_start((uintptr_t)argument);
  for (int i = 0; i < 300; i++) random_step(mine, hz_count_of(theirs[0]), &random);
  atomic_fetch_add(&turn, 1);
  wait_turn(100);
  return NULL;
}

static void child_takes_over_what_vanished_threads_had(void **state) {
  (void)state;
  line_start();
  pthread_t threads[hz_count_of(theirs)];
  take(10);
  for (unsigned i = 0; i < hz_count_of(theirs); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, hold_blocks, theirs[i]), 0);
  wait_turn(hz_count_of(theirs));
  give(hz3_line.table.alloc(10));
  hz3_heap_flush(hz3_heap_get());
  for (int round = 0; round < 3; round++) {
    const pid_t child = fork_with_handlers();
    if (child == 0) {
      // The 10 bytes of this thread are the only thing that stays.
      for (unsigned i = 0; i < hz_count_of(theirs); i++)
        blocks_give(theirs[i], hz_count_of(theirs[i]));
      hz3_line.trim(0);
      check_sound();
      CHECK(gauges().live_bytes == 16, "%llu bytes are lost",
            (unsigned long long)gauges().live_bytes);
      CHECK(count(HZ_COUNT_adopted) == hz_count_of(theirs), "all others' heaps are taken over");
      CHECK(gauges().threads == 1, "their slots are free");
      _exit(0);
    }
    check_child(child);
  }
  atomic_store(&turn, 100);
  for (unsigned i = 0; i < hz_count_of(theirs); i++) pthread_join(threads[i], NULL);
}

static void *busy(void *argument) {
  struct random_state random = random_start((uintptr_t)argument);
  static __thread struct block mine[60];
  while (atomic_load(&turn) == 0) random_step(mine, hz_count_of(mine), &random);
  blocks_give(mine, hz_count_of(mine));
  return NULL;
}

static void children_of_a_busy_process_are_sound(void **state) {
  (void)state;
  line_start();
  pthread_t threads[4];
  const uint64_t seed = seed_told();
  for (unsigned i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, busy, (void *)(seed + i)), 0);
  static struct block mine[100];
  struct random_state random = random_start(seed + 9);
  for (int round = 0; round < 25; round++) {
    for (int i = 0; i < 50; i++) random_step(mine, hz_count_of(mine), &random);
    const pid_t child = fork_with_handlers();
    if (child == 0) {
      check_sound();
      for (int i = 0; i < 300; i++) random_step(mine, hz_count_of(mine), &random);
      blocks_give(mine, hz_count_of(mine));
      hz3_line.trim(0);
      check_sound();
      _exit(0);
    }
    check_child(child);
  }
  atomic_store(&turn, 1);
  for (unsigned i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

// ---- When memory ends --------------------------------------------------------------------------

static struct block survivors[120];
static uint64_t out_of_memory_seed;
static enum fake_call failing;

// Exit 2: there is no n-th call any more.
static void work_with_the_nth_failing(uint64_t n) {
  struct random_state random = random_start(out_of_memory_seed);
  options_default();
  line_start_as_set();
  fake_os_fail_nth(failing, n);
  for (int step = 0; step < 1500; step++) {
    random_step(survivors, hz_count_of(survivors), &random);
    if (step % 64 == 0) fake_os_clock_add(100);
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
    if (status != 0) {
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 2) fail_msg("n = %d", (int)n);
      return;
    }
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

static void work_within(uint64_t megabytes) {
  struct random_state random = random_start(seed_told());
  options_default();
  line_start_as_set();
  fake_os_commit_limit(megabytes * HZ_MIB);
  unsigned refused = 0;
  for (int step = 0; step < 4000; step++)
    refused += !random_step(survivors, hz_count_of(survivors), &random);
  check_sound();
  blocks_give(survivors, hz_count_of(survivors));
  check_nothing_lost();
  say("%llu MiB: %u of 4000 steps were refused\n", (unsigned long long)megabytes, refused);
}

static void strict_overcommit_refuses_and_recovers(void **state) {
  (void)state;
  const uint64_t limits[] = {1, 5, 8, 12, 24};
  for (unsigned i = 0; i < hz_count_of(limits); i++) in_child(work_within, limits[i]);
}

static void work_under_an_address_limit(uint64_t megabytes) {
  struct random_state random = random_start(seed_told());
  options_default();
  core_options.reserve_bytes = HZ_TIB;
  fake_os_address_limit(megabytes * HZ_MIB);
  line_start_as_set();
  unsigned refused = 0;
  for (int step = 0; step < 4000; step++)
    refused += !random_step(survivors, hz_count_of(survivors), &random);
  check_sound();
  blocks_give(survivors, hz_count_of(survivors));
  check_nothing_lost();
  say("RLIMIT_AS of %llu MiB: %u of 4000 steps were refused\n", (unsigned long long)megabytes,
      refused);
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

static void magazine_that_waits_for_blocks_survives_the_emptying_of_all_others(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes();
  take_blocks(1); // the tables have their pages, the first segment too
  fake_os_fail_from(FAKE_COMMIT, 1);
  while (take(BYTES) != NULL) continue; // the last call emptied every cache and found nothing
  const struct hz_magazine *loaded = hz3_heap_get()->loaded[class_id];
  for (int i = 0; i < 100; i++)
    assert_ptr_not_equal(hz_magazine_new(hz3_limits[class_id].capacity), loaded);
}

static void *need_a_heap(void *unused) {
  (void)unused;
  // No record for a heap, nor for a magazine: single blocks, from the runs and back.
  void *mine[200];
  for (int i = 0; i < 200; i++) CHECK((mine[i] = take(BYTES)) != NULL, "no memory");
  for (int i = 0; i < 200; i++) give(mine[i]);
  return NULL;
}

static void thread_that_cannot_have_a_heap_is_served_from_the_runs(void **state) {
  (void)state;
  line_start();
  take_blocks(500);
  give_blocks(0, 300);
  hz3_heap_flush(hz3_heap_get());
  while (hz_meta_take(16) != NULL) fake_os_fail_from(FAKE_MAP, 1); // every last record
  in_thread(need_a_heap, NULL);
  assert_int_equal(gauges().threads, 1);
  fake_os_fail_from(FAKE_MAP, 0);
  give_blocks(300, 500);
  check_nothing_lost();
}

static void line_without_its_table_does_not_start(void **state) {
  (void)state;
  options_default();
  fake_os_install();
  assert_true(hz_core_start(&core_options));
  fake_os_fail_nth(FAKE_RESERVE_TABLE, 1);
  assert_false(hz3_line.start());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_is_served_aligned_writable_and_apart),
      cmocka_unit_test(sizes_around_every_class_border_are_kept),
      cmocka_unit_test(what_cannot_be_served_is_null_and_enomem),
      cmocka_unit_test(blocks_of_no_bytes_are_distinct),
      cmocka_unit_test(zeroed_blocks_are_zero_whatever_was_there_before),
      cmocka_unit_test(every_alignment_is_met_for_every_size),
      cmocka_unit_test(free_of_null_does_nothing_and_free_keeps_errno),
      cmocka_unit_test(resize_stays_in_place_while_half_of_the_block_is_used),
      cmocka_unit_test(blocks_above_the_classes_grow_without_copying),
      cmocka_unit_test(foreign_addresses_are_refused_at_once),
      cmocka_unit_test(bad_frees_above_the_classes_are_refused_at_once),
      cmocka_unit_test(bad_frees_of_small_blocks_are_found_when_the_magazine_is_emptied),
      cmocka_unit_test(verify_finds_every_bad_free_in_its_call),
      cmocka_unit_test(last_freed_block_is_first_used),
      cmocka_unit_test(full_magazines_go_to_the_depot_and_come_back_whole),
      cmocka_unit_test(depot_keeps_no_more_than_its_budget),
      cmocka_unit_test(threads_that_share_a_shard_share_its_depot),
      cmocka_unit_test(more_threads_than_shards_share_them),
      cmocka_unit_test(foreign_blocks_travel_in_packets_to_their_owner),
      cmocka_unit_test(packet_that_never_filled_is_handed_over_at_thread_exit),
      cmocka_unit_test(stash_beyond_its_budget_serves_all),
      cmocka_unit_test(blocks_of_an_ended_thread_go_to_the_runs),
      cmocka_unit_test(packets_that_their_owner_does_not_fetch_go_to_the_runs),
      cmocka_unit_test(what_ended_threads_left_serves_before_new_runs),
      cmocka_unit_test(packets_of_a_living_owner_are_left_to_it),
      cmocka_unit_test(trim_gives_everything_back_under_every_profile),
      cmocka_unit_test(every_option_works_at_both_ends_of_its_range),
      cmocka_unit_test(trim_says_whether_it_gave_something_back),
      cmocka_unit_test(trim_gives_back_free_pages_between_blocks_in_use),
      cmocka_unit_test(other_threads_follow_a_trim_at_their_next_slow_path),
      cmocka_unit_test(idle_freed_process_shrinks_at_its_next_slow_paths),
      cmocka_unit_test(gauges_tell_what_is_live),
      cmocka_unit_test(destructors_allocate_and_free_in_every_round),
      cmocka_unit_test(threads_in_turn_leave_nothing_behind),
      cmocka_unit_test(child_takes_over_what_vanished_threads_had),
      cmocka_unit_test(children_of_a_busy_process_are_sound),
      cmocka_unit_test(each_refused_commit_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_record_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_purge_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_decommit_in_turn_loses_nothing),
      cmocka_unit_test(strict_overcommit_refuses_and_recovers),
      cmocka_unit_test(address_limit_refuses_and_recovers),
      cmocka_unit_test(cached_blocks_serve_when_the_kernel_refuses),
      cmocka_unit_test(magazine_that_waits_for_blocks_survives_the_emptying_of_all_others),
      cmocka_unit_test(thread_that_cannot_have_a_heap_is_served_from_the_runs),
      cmocka_unit_test(line_without_its_table_does_not_start),
  };
  return isolated_run(tests, hz_count_of(tests));
}
