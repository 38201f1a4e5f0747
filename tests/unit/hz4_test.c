// lines/hz4 through its function table: what it serves, where blocks go, what comes back, and what
// happens when memory ends.
#include "tests/unit/hz4_machine.h"

#include "core/large.h"
#include "core/meta.h"

enum { BYTES = 1000, OTHER_BYTES = 500 };
static void *blocks[5000];

static unsigned class_of_bytes(void) {
  return hz_class_of(BYTES);
}
static void take_blocks(unsigned n) {
  for (unsigned i = 0; i < n; i++) CHECK((blocks[i] = take(BYTES)) != NULL, "no memory");
}
static void give_blocks(unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) give(blocks[i]);
}
static void flush(void) {
  hz4_heap_flush(hz4_heap_get());
}

// A slow path of this thread after so much time; nothing of a class is touched.
static void pass_ms(uint64_t ms) {
  fake_os_clock_add(ms);
  give(take(9 * HZ_MIB));
}

// Frees blocks[from..to) in a thread of its own. range: from, to.
static void *give_range(void *range) {
  give_blocks(((unsigned *)range)[0], ((unsigned *)range)[1]);
  return NULL;
}
static void give_in_thread(unsigned from, unsigned to) {
  in_thread(give_range, (unsigned[]){from, to});
}

static void *take_many(void *n) {
  take_blocks(*(unsigned *)n);
  return NULL;
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
    const size_t usable = line->table.usable_size(mine[i].p);
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
      const size_t usable = line->table.usable_size(p);
      assert_int_equal(usable, n <= bytes ? bytes : above);
      memset(p, 1, usable);
      give(p);
    }
  }
  check_nothing_lost();
}

static void check_alignment(size_t align, size_t bytes) {
  char *p = line->table.alloc_aligned(align, bytes);
  CHECK(p != NULL, "%zu bytes aligned to %zu: NULL", bytes, align);
  CHECK((uintptr_t)p % align == 0, "%zu bytes: %p is not aligned to %zu", bytes, (void *)p, align);
  CHECK(line->table.usable_size(p) >= bytes, "%zu bytes aligned to %zu: too small", bytes, align);
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

// A segment's first slab is the head: not every place that an alignment allows is long enough.
static void every_length_of_run_is_met_at_every_alignment(void **state) {
  (void)state;
  line_start();
  for (size_t align = HZ_SLAB_BYTES; align <= 8 * HZ_MIB; align *= 2)
    for (size_t bytes = HZ_SLAB_BYTES; bytes <= HZ_SEGMENT_BYTES + HZ_SLAB_BYTES;
         bytes += HZ_SLAB_BYTES)
      check_alignment(align, bytes);
  check_nothing_lost();
}

static void longest_run_is_a_segment_without_its_head(void **state) {
  (void)state;
  line_start();
  const size_t longest = HZ_SEGMENT_BYTES - HZ_SLAB_BYTES;
  void *run = take(longest);
  assert_int_equal(gauges().large_blocks, 0);
  void *large = take(longest + 1);
  assert_int_equal(gauges().large_blocks, 1);
  assert_true(line->table.usable_size(large) > longest);
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
    assert_null(line->table.alloc_zeroed(absurd[i]));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(line->table.alloc_aligned(4096, absurd[i]));
    assert_int_equal(errno, ENOMEM);
  }
  errno = 0;
  assert_null(line->table.alloc_aligned((size_t)1 << 63, 1));
  assert_int_equal(errno, ENOMEM);
  check_nothing_lost();
}

static void zeroed_blocks_are_zero_whatever_was_there_before(void **state) {
  (void)state;
  line_start();
  const size_t sizes[] = {1, 16, 100, 1000, 5000, 65536, 65537, 300000, HZ_MIB * 4, HZ_MIB * 9};
  for (int round = 0; round < 4; round++) {
    for (unsigned i = 0; i < hz_count_of(sizes); i++) {
      char *p = line->table.alloc_zeroed(sizes[i]);
      assert_non_null(p);
      check_zero(p, sizes[i]);
      memset(p, 0xff, line->table.usable_size(p));
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
  assert_int_equal(line->table.usable_size(NULL), 0);
}

static void resize_stays_in_place_while_half_of_the_block_is_used(void **state) {
  (void)state;
  line_start();
  for (unsigned c = 1; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    char *p = take(bytes);
    assert_ptr_equal(line->table.resize(p, bytes), p);
    assert_ptr_equal(line->table.resize(p, bytes / 2), p);
    assert_null(line->table.resize(p, bytes / 2 - 1));
    assert_null(line->table.resize(p, bytes + 1));
    assert_int_equal(line->table.usable_size(p), bytes);
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
  assert_ptr_equal(line->table.resize(run.p, HZ_MIB), run.p);
  assert_true(line->table.usable_size(run.p) >= HZ_MIB);
  block_verify(&run, run.bytes);
  assert_null(line->table.resize(run.p, HZ_SEGMENT_BYTES)); // longer than any run
  assert_null(line->table.resize(run.p, 5 * HZ_MIB));       // another kind of block
  char *p = line->table.resize(large.p, 50 * HZ_MIB);
  assert_non_null(p);
  large.p = p;
  block_verify(&large, large.bytes);
  assert_null(line->table.resize(p, 100));
  block_give(&run);
  block_give(&large);
  check_nothing_lost();
}

// ---- The head -----------------------------------------------------------------------------------

static void check_head(const struct hz_run *run, const struct hz4_heap *owner, unsigned class_id) {
  for (unsigned i = 0; i < run->slabs; i++) {
    const struct hz4_page *page = hz4_page_at((char *)run->base + ((size_t)i << HZ_SLAB_SHIFT));
    assert_ptr_equal(hz4_owner(page), owner);
    if (owner == NULL) continue;
    assert_int_equal(hz4_class(page), class_id);
    assert_int_equal(atomic_load(&page->lane), owner->index % HZ4_LANES);
  }
}

static void head_names_owner_and_class_of_each_slab_while_a_block_is_out(void **state) {
  (void)state;
  line_start();
  void *holder = take(HZ_SLAB_BYTES + 1); // the segment stays
  assert_null(hz4_owner_of(holder));
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    char *p = take(hz_class_bytes(c));
    const struct hz_run *run = hz_run_of(p);
    flush(); // the others go back to the page
    check_head(run, hz4_heap_get(), c);
    assert_ptr_equal(hz4_owner_of(p + hz_class_bytes(c) - 1), hz4_heap_get());
    give(p);
    flush();
    check_head(run, NULL, c);
  }
  assert_int_equal(count(HZ_COUNT_runs_carved), count(HZ_COUNT_runs_returned));
  give(holder);
  check_nothing_lost();
}

static void slabs_of_returned_pages_serve_blocks_that_have_no_owner(void **state) {
  (void)state;
  line_start();
  void *small = take(BYTES), *holder = take(HZ_SLAB_BYTES + 1);
  const struct hz_run *page = hz_run_of(small);
  const void *base = page->base;
  give(small);
  flush();
  char *run = take(30 * HZ_SLAB_BYTES);
  assert_true(run == base || run == (char *)holder + 2 * HZ_SLAB_BYTES);
  for (unsigned i = 0; i < 30; i++) assert_null(hz4_owner_of(run + (size_t)i * HZ_SLAB_BYTES));
  give(run);
  give(run); // told apart from a block of a class
  assert_int_equal(count(HZ_COUNT_misuse_double), 1);
  give(holder);
  check_nothing_lost();
}

static void blocks_of_the_thread_itself_are_in_no_packet(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_blocks(0, 3);
  for (int i = 3; i-- > 0;) assert_ptr_equal(take(BYTES), blocks[i]); // last freed, first used
  give_blocks(0, 3);
  assert_int_equal(count(HZ_COUNT_remote_frees), 0);
  check_nothing_lost();
}

// ---- Packets ------------------------------------------------------------------------------------

static void foreign_blocks_travel_in_packets_to_their_owner(void **state) {
  (void)state;
  line_start();
  const unsigned three = 3 * (unsigned)hz4_options.packet_blocks;
  take_blocks(three);
  give_in_thread(0, three);
  assert_int_equal(count(HZ_COUNT_remote_frees), three);
  assert_int_equal(count(HZ_COUNT_remote_batches), 3);
  assert_int_equal(queue_length(hz4_heap_get()), 3);
  check_sound();
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  take_blocks(three);
  assert_int_equal(queue_length(hz4_heap_get()), 0);
  assert_int_equal(count(HZ_COUNT_collected), 3);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, three);
  check_nothing_lost();
}

static void packet_of_one_class_is_loaded_whole(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes(), refill = hz4_limits[class_id].refill;
  struct hz4_heap *heap = hz4_heap_get();
  take_blocks(refill); // and the magazine is empty
  assert_int_equal(loaded_blocks(heap, class_id), 0);
  give_in_thread(0, refill);
  const struct hz_magazine *packet = atomic_load(&heap->queue);
  assert_int_equal(packet->note, class_id);
  assert_int_equal(packet->count, refill);
  assert_ptr_equal(take(BYTES), blocks[refill - 1]);
  assert_ptr_equal(heap->loaded[class_id], packet);
  assert_int_equal(packet->capacity, hz4_limits[class_id].capacity);
  assert_int_equal(loaded_blocks(heap, class_id), refill - 1);
  assert_non_null(atomic_load(&heap->returned)); // an empty one for the next sender
  give(blocks[refill - 1]);
  check_nothing_lost();
}

// Takes blocks of two classes in turn, until both magazines are empty.
static unsigned take_mixed(void) {
  const unsigned n = 2 * hz4_limits[class_of_bytes()].refill;
  for (unsigned i = 0; i < n; i++) blocks[i] = take(i % 2 == 0 ? BYTES : OTHER_BYTES);
  return n;
}

static void mixed_packet_is_sorted_into_the_magazines_of_its_classes(void **state) {
  (void)state;
  line_start();
  struct hz4_heap *heap = hz4_heap_get();
  const unsigned n = take_mixed(), other = hz_class_of(OTHER_BYTES);
  give_in_thread(0, n);
  assert_int_equal(count(HZ_COUNT_remote_batches), 1);
  assert_int_equal(atomic_load(&heap->queue)->note, HZ4_MIXED);
  check_sound();
  assert_ptr_equal(take(BYTES), blocks[n - 2]);
  assert_int_equal(loaded_blocks(heap, class_of_bytes()), n / 2 - 1);
  assert_int_equal(loaded_blocks(heap, other), n / 2);
  for (unsigned i = 0; i < n; i++) assert_true(i == n - 2 || !free_in_page(blocks[i]));
  give(blocks[n - 2]);
  check_nothing_lost();
}

static void what_does_not_fit_the_magazines_goes_to_the_pages(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "magazine_blocks", 16);
  option_set("hz4", "refill_blocks", 16);
  line_start_as_set();
  struct hz4_heap *heap = hz4_heap_get();
  take_blocks(64); // the magazine is empty
  assert_int_equal(loaded_blocks(heap, class_of_bytes()), 0);
  void *other = take(OTHER_BYTES);
  blocks[64] = other;
  give_in_thread(0, 65);
  const uint64_t free_bytes = atomic_load(&heap->free_bytes);
  assert_ptr_equal(take(BYTES), blocks[15]);
  assert_int_equal(loaded_blocks(heap, class_of_bytes()), 15);
  assert_int_equal(loaded_blocks(heap, hz_class_of(OTHER_BYTES)), 16);
  const uint64_t to_pages = atomic_load(&heap->free_bytes) - free_bytes;
  assert_true(to_pages == 48 * 1024 || count(HZ_COUNT_runs_returned) > 0);
  check_sound();
  give(blocks[15]);
  check_nothing_lost();
}

static void packet_of_one_class_that_is_too_long_is_sorted(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "magazine_blocks", 16);
  option_set("hz4", "refill_blocks", 16);
  line_start_as_set();
  take_blocks(64);
  give_in_thread(0, 64);
  assert_int_equal(queue_length(hz4_heap_get()), 1);
  assert_non_null(take(BYTES));
  assert_int_equal(loaded_blocks(hz4_heap_get(), class_of_bytes()), 15);
  check_sound();
}

static struct hz4_heap *owner; // that a thread of the case sends to

static void *fill_a_packet(void *unused) {
  (void)unused;
  const unsigned packet = (unsigned)hz4_options.packet_blocks;
  give_blocks(0, packet);
  CHECK(queue_length(owner) == 0, "sent before it was full");
  give_blocks(packet, packet + 1);
  CHECK(queue_length(owner) == 1, "not sent when it was full");
  CHECK(atomic_load(&owner->queue)->count == packet, "not sent whole");
  return NULL;
}

static void packet_is_sent_when_it_is_full(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packet_blocks", 8);
  line_start_as_set();
  owner = hz4_heap_get();
  take_blocks(9);
  in_thread(fill_a_packet, NULL);
  assert_int_equal(queue_length(owner), 2); // the ninth: at the thread's end
  check_sound();
  check_nothing_lost();
}

enum { WIDE = 8192 };

static void *collect_wide_blocks(void *unused) {
  (void)unused;
  unsigned given = 0;
  while (queue_length(owner) == 0) give(blocks[given++]);
  const size_t bytes = given * (size_t)WIDE, bound = hz4_options.packets_bytes;
  CHECK(bytes > bound, "%zu bytes are sent already", bytes);
  CHECK(bytes <= bound + 2 * (size_t)WIDE, "%zu bytes are sent only now", bytes);
  CHECK(queue_length(owner) == 1 && atomic_load(&owner->queue)->count == given, "not all are sent");
  for (; given < 20; given++) give(blocks[given]);
  return NULL;
}

static void packets_are_sent_when_enough_bytes_of_wide_blocks_are_collected(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packets_bytes", 8 * WIDE);
  line_start_as_set();
  owner = hz4_heap_get();
  assert_true(hz_class_of(WIDE) >= HZ4_WIDE_CLASS);
  assert_true(hz_class_bytes(HZ4_WIDE_CLASS - 1) <= 1024 && hz_class_bytes(HZ4_WIDE_CLASS) > 1024);
  for (unsigned i = 0; i < 20; i++) blocks[i] = take(WIDE);
  in_thread(collect_wide_blocks, NULL);
  check_nothing_lost();
}

static void *send_at_a_tick(void *unused) {
  (void)unused;
  give_blocks(0, 3);
  pass_ms(0);
  CHECK(queue_length(owner) == 0, "sent before the tick");
  pass_ms(500);
  CHECK(queue_length(owner) == 1, "not sent at the tick");
  return NULL;
}

static void packets_are_sent_at_a_tick(void **state) {
  (void)state;
  line_start();
  owner = hz4_heap_get();
  take_blocks(3);
  in_thread(send_at_a_tick, NULL);
  check_nothing_lost();
}

static void packets_are_sent_at_thread_exit(void **state) {
  (void)state;
  line_start();
  take_blocks(3);
  give_in_thread(0, 3);
  assert_int_equal(queue_length(hz4_heap_get()), 1);
  assert_int_equal(count(HZ_COUNT_remote_frees), 3);
  check_nothing_lost();
}

static void *overfill_a_queue(void *unused) {
  (void)unused;
  unsigned most = 0, settled = 0;
  for (unsigned i = 0; i < 600; i++) {
    const unsigned before = queue_length(owner);
    give(blocks[i]);
    const unsigned now = queue_length(owner);
    CHECK(queue_kib(owner) * HZ_KIB <= hz4_options.queue_bytes, "more waits than may");
    CHECK(now >= before || now == 0, "who sends more settles it all");
    most = now > most ? now : most;
    settled += now < before;
  }
  CHECK(most == 3 && settled > 5, "%u waited, settled %u times", most, settled);
  return NULL;
}

static void queue_beyond_its_budget_goes_to_the_pages(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "packet_blocks", 16);
  option_set("hz4", "queue_bytes", 64 * HZ_KIB); // three packets of 16 blocks, each rounded up
  line_start_as_set();
  owner = hz4_heap_get();
  take_blocks(600);
  in_thread(overfill_a_queue, NULL);
  assert_true(atomic_load(&owner->free_bytes) > 0 || count(HZ_COUNT_runs_returned) > 0);
  check_sound();
  check_nothing_lost();
}

static void *have_a_heap(void *unused) {
  (void)unused;
  give(take(1));
  atomic_fetch_add(&turn, 1);
  wait_turn(1000);
  return NULL;
}

// The last of the crowd shares the first heap's lane: its packet goes when the other's comes.
static void *give_for_two_owners(void *two) {
  void **theirs = two;
  give(blocks[0]);
  give(theirs[0]);
  CHECK(queue_length(owner) == 1, "the lane has one packet");
  give(blocks[1]);
  return NULL;
}

static void *own_then_wait(void *theirs) {
  ((void **)theirs)[0] = take(BYTES);
  return have_a_heap(NULL);
}

static void owners_that_share_a_lane_get_their_own_blocks(void **state) {
  (void)state;
  line_start();
  owner = hz4_heap_get();
  take_blocks(2);
  static pthread_t threads[HZ4_LANES];
  void *theirs = NULL;
  for (unsigned i = 0; i < HZ4_LANES; i++) {
    threads[i] = thread_start(i + 1 < HZ4_LANES ? have_a_heap : own_then_wait, &theirs);
    wait_turn(i + 1);
  }
  struct hz4_heap *second = hz4_owner_of(theirs);
  assert_int_equal(second->index % HZ4_LANES, owner->index % HZ4_LANES);
  assert_ptr_not_equal(second, owner);
  in_thread(give_for_two_owners, &theirs);
  assert_int_equal(queue_length(owner), 2);
  assert_int_equal(queue_length(second), 1);
  assert_ptr_equal(atomic_load(&second->queue)->slots[1], theirs);
  check_sound();
  atomic_store(&turn, 1000);
  for (unsigned i = 0; i < HZ4_LANES; i++) pthread_join(threads[i], NULL);
  check_nothing_lost();
}

// ---- Heaps that threads leave -------------------------------------------------------------------

static void *take_and_give_ten(void *unused) {
  (void)unused;
  take_blocks(10);
  give_blocks(0, 10);
  return NULL;
}
static void *take_the_same_ten(void *unused) {
  (void)unused;
  for (int i = 10; i-- > 0;) CHECK(take(BYTES) == blocks[i], "not what the last thread left");
  CHECK(count(HZ_COUNT_refills) == 1, "a refill");
  give_blocks(0, 10);
  return NULL;
}

static void thread_that_takes_over_an_idle_heap_gets_its_blocks(void **state) {
  (void)state;
  line_start();
  in_thread(take_and_give_ten, NULL);
  in_thread(take_the_same_ten, NULL);
  assert_int_equal(heap_count(), 1);
  assert_int_equal(count(HZ_COUNT_runs_carved), 1);
  check_nothing_lost();
}

static void what_waits_for_an_idle_heap_is_the_next_threads(void **state) {
  (void)state;
  line_start();
  give(take(1));
  unsigned few = 32;
  in_thread(take_many, &few);
  give_blocks(0, few);
  hz4_send_all(hz4_heap_get());
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  in_thread(take_many, &few);
  assert_int_equal(count(HZ_COUNT_collected), 1);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  give_blocks(0, few);
  check_nothing_lost();
}

// Blocks of all kinds, one of them for the main thread, and one of the main thread's freed.
static void *short_life(void *unused) {
  (void)unused;
  void *mine[50];
  for (unsigned i = 0; i < hz_count_of(mine); i++) mine[i] = take(i * i * i);
  for (unsigned i = 0; i < hz_count_of(mine); i++) give(mine[i]);
  give(blocks[0]);
  blocks[1] = take(BYTES);
  return NULL;
}

static void live_shortly(unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    blocks[0] = take(BYTES);
    in_thread(short_life, NULL);
    give(blocks[1]);
  }
}

static void ten_thousand_threads_in_turn_need_no_more_than_the_first_thousand(void **state) {
  (void)state;
  line_start();
  live_shortly(1000);
  const size_t meta = hz_meta_bytes();
  const struct hz_gauges before = gauges();
  live_shortly(9000);
  const struct hz_gauges after = gauges();
  assert_int_equal(heap_count(), 2); // this thread's, and that of all others
  assert_int_equal(hz_meta_bytes(), meta);
  assert_int_equal(after.committed_bytes, before.committed_bytes);
  assert_int_equal(after.reserved_bytes, before.reserved_bytes);
  assert_int_equal(count(HZ_COUNT_threads_ended), 10000);
  check_nothing_lost();
}

static void blocks_of_an_ended_thread_serve_others_before_a_new_page_is_cut(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  give(take(1));
  in_thread(take_many, &many);
  give_blocks(0, many);
  hz4_send_all(hz4_heap_get());
  const void *other = take(OTHER_BYTES); // a page stays in any case
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  blocks[0] = take(BYTES); // the queue goes to the pages, and pages come here
  assert_ptr_equal(hz4_owner_of(blocks[0]), hz4_heap_get());
  assert_true(count(HZ_COUNT_runs_carved) <= carved + 1);
  give(blocks[0]);
  give((void *)other);
  check_nothing_lost();
}

static void *take_half(void *n) {
  const unsigned all = *(unsigned *)n;
  take_blocks(all);
  for (unsigned i = 0; i < all; i += 2) give(blocks[i]);
  return NULL;
}

static void pages_of_an_ended_thread_are_taken_over(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  give(take(1));
  in_thread(take_half, &many);
  const struct hz4_heap *first = hz4_owner_of(blocks[1]);
  const uint64_t carved = count(HZ_COUNT_runs_carved);
  for (unsigned i = 0; i < many; i += 2) blocks[i] = take(BYTES);
  assert_int_equal(count(HZ_COUNT_runs_carved), carved);
  assert_true(count(HZ_COUNT_taken_over) > 0);
  assert_ptr_not_equal(first, hz4_heap_get());
  for (unsigned i = 0; i < many; i += 2) assert_ptr_equal(hz4_owner_of(blocks[i]), hz4_heap_get());
  check_sound();
  const uint64_t remote = count(HZ_COUNT_remote_frees);
  for (unsigned i = 0; i < 16; i++) give(blocks[i]); // ours now, whoever took them
  assert_int_equal(count(HZ_COUNT_remote_frees), remote);
  give_blocks(16, many);
  check_nothing_lost();
}

static void *take_then_wait(void *n) {
  take_blocks(*(unsigned *)n);
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static pthread_t start_owner(unsigned *many) {
  give(take(1));
  const pthread_t thread = thread_start(take_then_wait, many);
  wait_turn(1);
  owner = hz4_owner_of(blocks[0]);
  return thread;
}

static void end_owner(pthread_t thread) {
  atomic_store(&turn, 2);
  pthread_join(thread, NULL);
}

static void packets_that_their_owner_does_not_fetch_go_to_the_pages(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  const pthread_t thread = start_owner(&many);
  give_blocks(0, many);
  assert_true(queue_length(owner) > 0);
  const uint64_t live = gauges().live_bytes;
  for (int tick = 0; tick < 3; tick++) pass_ms(500);
  assert_int_equal(queue_length(owner), 0);
  assert_true(gauges().live_bytes < live);
  check_sound();
  end_owner(thread);
  check_nothing_lost();
}

static void trim_gives_back_what_waits_for_a_sleeping_thread(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  const pthread_t thread = start_owner(&many);
  give_blocks(0, many);
  const uint64_t live = gauges().live_bytes;
  assert_true(hz4_trim(0));
  assert_int_equal(queue_length(owner), 0);
  assert_true(gauges().live_bytes <= live - 400 * HZ_KIB);
  end_owner(thread);
  check_nothing_lost();
}

static void trim_gives_back_what_an_idle_heap_holds(void **state) {
  (void)state;
  line_start();
  in_thread(take_and_give_ten, NULL);
  assert_true(gauges().live_bytes > 0);
  check_nothing_lost();
}

static void packets_and_pages_of_a_living_owner_are_left_to_it(void **state) {
  (void)state;
  line_start();
  unsigned many = 512;
  const pthread_t thread = start_owner(&many);
  give_blocks(0, many);
  hz4_send_all(hz4_heap_get());
  const unsigned waiting = queue_length(owner);
  take_blocks(many);
  assert_int_equal(queue_length(owner), waiting);
  assert_int_equal(count(HZ_COUNT_taken_over), 0);
  give_blocks(0, many);
  end_owner(thread);
  check_nothing_lost();
}

// ---- Giving back --------------------------------------------------------------------------------

static void overflow_gives_the_older_half(void **state) {
  (void)state;
  line_start();
  const unsigned class_id = class_of_bytes(), capacity = hz4_limits[class_id].capacity;
  take_blocks(2 * capacity);
  flush(); // nothing in the magazine
  give_blocks(0, capacity);
  assert_int_equal(count(HZ_COUNT_overflows), 1); // the first one, to load a magazine
  for (unsigned i = 0; i < capacity; i++) assert_false(free_in_page(blocks[i]));
  give(blocks[capacity]);
  assert_int_equal(count(HZ_COUNT_overflows), 2);
  assert_int_equal(loaded_blocks(hz4_heap_get(), class_id), capacity / 2 + 1);
  for (unsigned i = capacity / 2; i <= capacity; i++) assert_false(free_in_page(blocks[i]));
  for (unsigned i = 0; i < capacity / 2; i++) // its page may have gone as a whole
    assert_true(hz4_owner_of(blocks[i]) == NULL || free_in_page(blocks[i]));
  check_sound();
  give_blocks(capacity + 1, 2 * capacity);
  check_nothing_lost();
}

static void empty_pages_go_to_the_arena_and_to_the_kernel_after_the_idle_time(void **state) {
  (void)state;
  options_default();
  option_set("cache", "large_bytes", 0);
  line_start_as_set();
  take_blocks(5000);
  give_blocks(0, 5000);
  flush();
  assert_int_equal(count(HZ_COUNT_runs_returned), count(HZ_COUNT_runs_carved));
  assert_int_equal(gauges().live_bytes, 0);
  const uint64_t dirty = gauges().free_bytes;
  assert_true(dirty >= 5000 * 1000);
  pass_ms(0);
  assert_true(gauges().free_bytes >= dirty);
  for (unsigned ms = 0; ms < 2000; ms += 125) pass_ms(125);
  assert_int_equal(gauges().free_bytes, 0);
  assert_int_equal(gauges().committed_bytes, 0);
  check_sound();
}

static void free_memory_inside_pages_goes_after_the_idle_time(void **state) {
  (void)state;
  line_start();
  for (unsigned i = 0; i < 512; i++) memset(blocks[i] = take(4096), 1, 4096);
  for (unsigned i = 0; i < 512; i += 2) give(blocks[i]);
  flush();
  const uint64_t before = count(HZ_COUNT_purged);
  pass_ms(0);
  assert_int_equal(count(HZ_COUNT_purged), before);
  for (unsigned ms = 0; ms < 4000; ms += 125) pass_ms(125);
  assert_true(count(HZ_COUNT_purged) - before >= 256 * 4096);
  for (unsigned i = 1; i < 512; i += 2) give(blocks[i]);
  check_nothing_lost();
}

static void trim_says_whether_it_gave_something_back(void **state) {
  (void)state;
  line_start();
  take_blocks(1000);
  give_blocks(0, 1000);
  assert_true(line->trim(0));
  assert_false(line->trim(0));
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
  assert_true(gauges().live_bytes > 0);
  atomic_store(&turn, 2);
  wait_turn(3);
  line->trim(0);
  assert_int_equal(gauges().live_bytes, 0);
  atomic_store(&turn, 4);
  pthread_join(thread, NULL);
  check_nothing_lost();
}

static void work_and_trim(uint64_t profile) {
  static struct block mine[400];
  options_profile(&hz4_info.profiles[profile]);
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
  for (size_t i = 0; i < hz4_info.profile_count; i++) in_child(work_and_trim, i);
}

static void *churn(void *seed) {
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
  const struct hz_option *option = &hz4_info.options[row / 2];
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
    in_thread(churn, &seed);
  }
  blocks_give(mine, hz_count_of(mine));
  check_nothing_lost();
}

static void every_option_works_at_both_ends_of_its_range(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * hz4_info.option_count; i++) in_child(work_at_a_border, i);
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
  give_in_thread(0, 1000);
  assert_true(gauges().cached_bytes >= 1000 * 1000);
  check_nothing_lost();
}

// ---- Bad frees ----------------------------------------------------------------------------------

static void foreign_addresses_are_refused_at_once(void **state) {
  (void)state;
  line_start();
  int on_stack;
  static int global;
  give(take(BYTES)); // there is a segment, with a head
  char *inside = (char *)hz_arena_base() + hz_arena_bytes() - HZ_SLAB_BYTES;
  char *head = hz_arena_base(), *free_slab = head + 40 * HZ_SLAB_BYTES;
  void *foreign[] = {&on_stack, &global, (void *)16, (void *)-16, inside,
                     head - 1,  head,    head + 64,  free_slab};
  for (unsigned i = 0; i < hz_count_of(foreign); i++) {
    give(foreign[i]);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 1);
    assert_int_equal(line->table.usable_size(foreign[i]), 0);
    assert_int_equal(count(HZ_COUNT_misuse_foreign), 2 * i + 2);
    assert_null(line->table.resize(foreign[i], 100));
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
    assert_int_equal(line->table.usable_size(p + 16), 0);
    assert_int_equal(count(HZ_COUNT_misuse_interior), 3);
    give(p);
    give(p);
    assert_int_equal(line->table.usable_size(p), 0);
    assert_int_equal(count(HZ_COUNT_misuse_double), 2);
    assert_null(line->table.resize(p, sizes[i]));
  }
  check_nothing_lost();
}

static void bad_frees_of_small_blocks_are_found_when_they_come_to_their_pages(void **state) {
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

static void bad_frees_of_foreign_blocks_are_found_when_they_come_to_their_pages(void **state) {
  (void)state;
  line_start();
  void *p = take(100);
  in_thread(give_twice, p);
  line->trim(0);
  assert_int_equal(count(HZ_COUNT_misuse_double) + count(HZ_COUNT_misuse_foreign) +
                       count(HZ_COUNT_misuse_interior),
                   2);
  check_nothing_lost();
}

static void verify_finds_every_bad_free_in_its_call(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "verify", 1);
  line_start_as_set();
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
  give(third); // its page went back to the arena with it
  assert_int_equal(count(HZ_COUNT_misuse_foreign), 1);
  check_nothing_lost();
}

// ---- Threads that have ended --------------------------------------------------------------------

// The thread sanitizer itself ends a thread in the last of the C library's four rounds.
enum { LATE_ROUNDS = SANITIZED ? 3 : 4 };
static pthread_key_t late_key;
static _Atomic unsigned late_rounds;

// Destructors that run after ours find a thread that has no heap any more.
static void allocate_late(void *p) {
  static __thread int round;
  struct block *block = p;
  block_give(block);
  struct random_state random = random_start(7);
  struct block mine[60] = {0};
  for (int i = 0; i < 600; i++) random_step(mine, hz_count_of(mine), &random);
  blocks_give(mine, hz_count_of(mine));
  atomic_fetch_add(&late_rounds, 1);
  if (++round == LATE_ROUNDS) return;
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
  assert_int_equal(heap_count(), 1);
  assert_int_equal(gauges().threads, 0);
  check_nothing_lost();
}

// ---- fork ---------------------------------------------------------------------------------------

enum { HOLDERS = 8, HELD = 40, FREED = 20 };
static struct block theirs[HOLDERS][HELD];

// Some blocks in hand, some in magazines, some of another heap in a packet that is not sent yet.
static void *hold_blocks(void *argument) {
  const uintptr_t i = (uintptr_t)argument;
  struct random_state random = random_start(i);
  give_blocks((unsigned)i * FREED, (unsigned)(i + 1) * FREED);
  for (int step = 0; step < 300; step++) random_step(theirs[i], HELD, &random);
  atomic_fetch_add(&turn, 1);
  wait_turn(100);
  return NULL;
}

static void inherit_all(uint64_t misused) {
  for (unsigned i = 0; i < HOLDERS; i++) blocks_give(theirs[i], HELD);
  check_nothing_lost();
  CHECK(count(HZ_COUNT_adopted) == HOLDERS, "all others' heaps are taken over");
  CHECK(count(HZ_COUNT_misuse_double) == misused, "a block is salvaged twice");
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
  take_blocks(HOLDERS * FREED);
  for (uintptr_t i = 0; i < HOLDERS; i++) threads[i] = thread_start(hold_blocks, (void *)i);
  wait_turn(HOLDERS);
  flush();
  for (int round = 0; round < 3; round++) {
    const pid_t child = fork_with_handlers();
    if (child == 0) inherit_all(0);
    check_child(child);
  }
  atomic_store(&turn, 100);
  for (unsigned i = 0; i < HOLDERS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < HOLDERS; i++) blocks_give(theirs[i], HELD);
  check_nothing_lost();
}

// Threads that pass small blocks around, so that packets are always on their way.
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
  CHECK(count(HZ_COUNT_misuse_double) + count(HZ_COUNT_misuse_interior) +
                count(HZ_COUNT_misuse_foreign) ==
            0,
        "a block is salvaged twice");
  _exit(0);
}

static void children_of_a_busy_process_are_sound(void **state) {
  (void)state;
  options_default();
  option_set("hz4", "magazine_blocks", 16); // slow paths are frequent
  option_set("hz4", "packet_blocks", 16);
  line_start_as_set();
  pthread_t threads[4];
  const uint64_t seed = seed_told();
  for (unsigned i = 0; i < 4; i++) threads[i] = thread_start(busy, (void *)(uintptr_t)(seed + i));
  static struct block mine[100];
  struct random_state random = random_start(seed + 9);
  for (int round = 0; round < (SANITIZED ? 20 : 60); round++) {
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

static void *free_half_and_wait(void *n) {
  take_half(n);
  flush();
  atomic_store(&turn, 1);
  wait_turn(2);
  return NULL;
}

static unsigned take_until_refused(void **out, unsigned most, size_t bytes) {
  unsigned n = 0;
  while (n < most && (out[n] = take(bytes)) != NULL) n++;
  return n;
}

static void pages_of_an_attended_heap_serve_when_the_kernel_refuses(void **state) {
  (void)state;
  line_start();
  unsigned many = 2000, got = 0;
  give(take(1));
  const pthread_t thread = thread_start(free_half_and_wait, &many);
  wait_turn(1);
  fake_os_fail_from(FAKE_COMMIT, 1);
  static void *rest[2 * HZ_SEGMENT_SLABS]; // of the segment
  unsigned full = take_until_refused(rest, HZ_SEGMENT_SLABS, HZ_SLAB_BYTES + 1);
  full += take_until_refused(rest + full, HZ_SEGMENT_SLABS, HZ_SLAB_BYTES);
  while (got < many && (blocks[got] = take(BYTES)) != NULL) got += 2;
  assert_true(got >= many); // the other half, wherever it lay
  assert_true(count(HZ_COUNT_taken_over) > 0);
  fake_os_fail_from(FAKE_COMMIT, 0);
  end_owner(thread);
  give_blocks(0, many);
  for (unsigned i = 0; i < full; i++) give(rest[i]);
  check_nothing_lost();
}

static void *need_a_heap(void *unused) {
  (void)unused;
  // No record for a heap, nor for a magazine: single blocks, from the pages and back.
  void *mine[200];
  for (int i = 0; i < 200; i++) CHECK((mine[i] = take(BYTES)) != NULL, "no memory");
  for (int i = 0; i < 200; i++) give(mine[i]);
  return NULL;
}

static void thread_that_cannot_have_a_heap_is_served_from_the_pages(void **state) {
  (void)state;
  line_start();
  take_blocks(500);
  give_blocks(0, 300);
  flush();
  while (hz_meta_take(16) != NULL) fake_os_fail_from(FAKE_MAP, 1); // every last record
  in_thread(need_a_heap, NULL);
  assert_int_equal(gauges().threads, 1);
  fake_os_fail_from(FAKE_MAP, 0);
  give_blocks(300, 500);
  check_nothing_lost();
}

// ---- The checker --------------------------------------------------------------------------------

// A heap with a listed page, a loaded magazine, and a packet in its queue.
struct scene {
  struct hz4_heap *heap;
  struct hz_run *page;
  struct hz_magazine *loaded, *packet;
  unsigned class_id;
};

static void plant_class_of_page(struct scene *s) {
  s->page->class_id++;
}
static void plant_full_page(struct scene *s) {
  s->page->free = 0;
}
static void plant_empty_page(struct scene *s) {
  s->page->free = s->page->blocks;
}
static void plant_class_in_head(struct scene *s) {
  atomic_fetch_add(&hz4_page_at(s->page->base)->class_id, 1);
}
static void plant_owner_in_head(struct scene *s) {
  atomic_store(&hz4_page_at(s->page->base)->owner, NULL);
}
static void plant_free_count(struct scene *s) {
  s->page->free--;
}
static void plant_listed(struct scene *s) {
  atomic_fetch_xor(&s->heap->listed, UINT64_C(1) << 40);
}
static void plant_free_bytes(struct scene *s) {
  atomic_fetch_add(&s->heap->free_bytes, 16);
}
static void plant_foreign_block(struct scene *s) {
  s->loaded->slots[1] = s;
}
static void plant_block_of_other_class(struct scene *s) {
  s->loaded->slots[1] = take(OTHER_BYTES);
}
static void plant_free_block(struct scene *s) {
  char *p = s->page->base;
  while (!free_in_page(p)) p += hz_class_bytes(s->class_id);
  s->loaded->slots[1] = p;
}
static void plant_free_block_in_packet(struct scene *s) {
  plant_free_block(s);
  s->packet->slots[1] = s->loaded->slots[1];
  s->loaded->slots[1] = blocks[0];
}
static void plant_note(struct scene *s) {
  s->packet->note--;
}
static void plant_count(struct scene *s) {
  s->packet->count = s->packet->capacity + 1;
}
static void plant_empty_packet(struct scene *s) {
  s->packet->count = 0;
}
static void plant_capacity(struct scene *s) {
  s->packet->capacity = HZ4_MAGAZINE_BLOCKS + 1;
}
static void plant_lower_sentinel(struct scene *s) {
  s->loaded->slots[0] = s->loaded->slots[1];
}
static void plant_upper_sentinel(struct scene *s) {
  s->loaded->slots[s->loaded->capacity + 1] = NULL;
}
static void plant_loaded(struct scene *s) {
  s->loaded->capacity--;
}
static void plant_top(struct scene *s) {
  s->heap->loaded[s->class_id] = NULL;
}

static const struct {
  void (*plant)(struct scene *);
  const char *found;
} plants[] = {
    {plant_class_of_page, "hz4: a page is in another class's list"},
    {plant_full_page, "hz4: a page without free blocks is listed"},
    {plant_empty_page, "hz4: an empty page is listed"},
    {plant_class_in_head, "hz4: the head disagrees with a page's list"},
    {plant_owner_in_head, "hz4: the head disagrees with a page's list"},
    {plant_free_count, "class run: its free count disagrees with its bitmap"},
    {plant_listed, "hz4: `listed` misnames a class"},
    {plant_free_bytes, "hz4: a heap miscounts its free bytes"},
    {plant_foreign_block, "hz4: a waiting block lies in no page"},
    {plant_block_of_other_class, "hz4: a waiting block is of another class"},
    {plant_free_block, "hz4: a waiting block is free in its page, too"},
    {plant_free_block_in_packet, "hz4: a waiting block is free in its page, too"},
    {plant_note, "hz4: a waiting block is of another class"},
    {plant_count, "hz4: a magazine holds more than it can"},
    {plant_empty_packet, "hz4: an empty packet waits"},
    {plant_capacity, "hz4: a magazine is larger than its record"},
    {plant_lower_sentinel, "hz4: a magazine lost its lower sentinel"},
    {plant_upper_sentinel, "hz4: a magazine lost its upper sentinel"},
    {plant_loaded, "hz4: a magazine of another class is loaded"},
    {plant_top, "hz4: a top without a magazine"},
};

static void plant_and_check(uint64_t i) {
  line_start();
  take_blocks(70);
  give_in_thread(0, 4);
  struct scene s = {.heap = hz4_heap_get(), .class_id = class_of_bytes()};
  s.page = s.heap->pages[s.class_id];
  s.loaded = s.heap->loaded[s.class_id];
  s.packet = atomic_load(&s.heap->queue);
  CHECK(s.page != NULL && s.loaded != NULL && s.packet != NULL, "not the scene that was meant");
  check_sound();
  plants[i].plant(&s);
  const char *found = hz4_check();
  CHECK(found != NULL, "not found: %s", plants[i].found);
  CHECK(strcmp(found, plants[i].found) == 0, "found '%s' instead of '%s'", found, plants[i].found);
}

static void checker_finds_each_broken_invariant(void **state) {
  (void)state;
  for (size_t i = 0; i < hz_count_of(plants); i++) in_child(plant_and_check, i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_is_served_aligned_writable_and_apart),
      cmocka_unit_test(sizes_around_every_class_border_are_kept),
      cmocka_unit_test(every_alignment_is_met_for_every_size),
      cmocka_unit_test(every_length_of_run_is_met_at_every_alignment),
      cmocka_unit_test(longest_run_is_a_segment_without_its_head),
      cmocka_unit_test(what_cannot_be_served_is_null_and_enomem),
      cmocka_unit_test(zeroed_blocks_are_zero_whatever_was_there_before),
      cmocka_unit_test(free_of_null_does_nothing_and_free_keeps_errno),
      cmocka_unit_test(resize_stays_in_place_while_half_of_the_block_is_used),
      cmocka_unit_test(blocks_above_the_classes_grow_without_copying),
      cmocka_unit_test(head_names_owner_and_class_of_each_slab_while_a_block_is_out),
      cmocka_unit_test(slabs_of_returned_pages_serve_blocks_that_have_no_owner),
      cmocka_unit_test(blocks_of_the_thread_itself_are_in_no_packet),
      cmocka_unit_test(foreign_blocks_travel_in_packets_to_their_owner),
      cmocka_unit_test(packet_of_one_class_is_loaded_whole),
      cmocka_unit_test(mixed_packet_is_sorted_into_the_magazines_of_its_classes),
      cmocka_unit_test(what_does_not_fit_the_magazines_goes_to_the_pages),
      cmocka_unit_test(packet_of_one_class_that_is_too_long_is_sorted),
      cmocka_unit_test(packet_is_sent_when_it_is_full),
      cmocka_unit_test(packets_are_sent_when_enough_bytes_of_wide_blocks_are_collected),
      cmocka_unit_test(packets_are_sent_at_a_tick),
      cmocka_unit_test(packets_are_sent_at_thread_exit),
      cmocka_unit_test(queue_beyond_its_budget_goes_to_the_pages),
      cmocka_unit_test(owners_that_share_a_lane_get_their_own_blocks),
      cmocka_unit_test(thread_that_takes_over_an_idle_heap_gets_its_blocks),
      cmocka_unit_test(what_waits_for_an_idle_heap_is_the_next_threads),
      cmocka_unit_test(ten_thousand_threads_in_turn_need_no_more_than_the_first_thousand),
      cmocka_unit_test(blocks_of_an_ended_thread_serve_others_before_a_new_page_is_cut),
      cmocka_unit_test(pages_of_an_ended_thread_are_taken_over),
      cmocka_unit_test(packets_that_their_owner_does_not_fetch_go_to_the_pages),
      cmocka_unit_test(trim_gives_back_what_waits_for_a_sleeping_thread),
      cmocka_unit_test(trim_gives_back_what_an_idle_heap_holds),
      cmocka_unit_test(packets_and_pages_of_a_living_owner_are_left_to_it),
      cmocka_unit_test(overflow_gives_the_older_half),
      cmocka_unit_test(empty_pages_go_to_the_arena_and_to_the_kernel_after_the_idle_time),
      cmocka_unit_test(free_memory_inside_pages_goes_after_the_idle_time),
      cmocka_unit_test(trim_says_whether_it_gave_something_back),
      cmocka_unit_test(other_threads_follow_a_trim_at_their_next_slow_path),
      cmocka_unit_test(trim_gives_everything_back_under_every_profile),
      cmocka_unit_test(every_option_works_at_both_ends_of_its_range),
      cmocka_unit_test(gauges_tell_what_is_live),
      cmocka_unit_test(foreign_addresses_are_refused_at_once),
      cmocka_unit_test(bad_frees_above_the_classes_are_refused_at_once),
      cmocka_unit_test(bad_frees_of_small_blocks_are_found_when_they_come_to_their_pages),
      cmocka_unit_test(bad_frees_of_foreign_blocks_are_found_when_they_come_to_their_pages),
      cmocka_unit_test(verify_finds_every_bad_free_in_its_call),
      cmocka_unit_test(destructors_allocate_and_free_in_every_round),
      cmocka_unit_test(child_takes_over_what_vanished_threads_had),
      cmocka_unit_test(children_of_a_busy_process_are_sound),
      cmocka_unit_test(each_refused_commit_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_record_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_purge_in_turn_loses_nothing),
      cmocka_unit_test(each_refused_decommit_in_turn_loses_nothing),
      cmocka_unit_test(strict_overcommit_refuses_and_recovers),
      cmocka_unit_test(address_limit_refuses_and_recovers),
      cmocka_unit_test(cached_blocks_serve_when_the_kernel_refuses),
      cmocka_unit_test(pages_of_an_attended_heap_serve_when_the_kernel_refuses),
      cmocka_unit_test(thread_that_cannot_have_a_heap_is_served_from_the_pages),
      cmocka_unit_test(checker_finds_each_broken_invariant),
  };
  return isolated_run(tests, hz_count_of(tests));
}
