// The page map and the descriptors behind it: see lines/hz6/hz6_route.h.
#include "lines/hz6/hz6_route.h"

#include "core/class_run.h"
#include "core/large.h"
#include "core/lock.h"
#include "core/os.h"

struct hz6_map hz6_map;

static struct {
  struct hz_lock lock;
  size_t slabs;     // that the tables reach
  size_t committed; // slabs whose rows are writable
} map;

// ---- The tables ---------------------------------------------------------------------------------

// Under RLIMIT_AS the arena is a range of addresses of several times the limit, of which most can
// never be in use. Its runs lie lowest first, so a little more than the limit is enough.
static size_t slabs_to_reach(void) {
  const size_t limit = hz_os.address_limit() >> HZ_SLAB_SHIFT;
  if (limit == 0) return hz_arena.slab_count;
  return hz_min(hz_arena.slab_count, hz_align_up(limit + limit / 16, HZ_SEGMENT_SLABS));
}

static void set_reach(size_t slabs) {
  map.slabs = slabs;
  __atomic_store_n(&hz6_map.small_places, slabs * HZ6_SMALL_ROW, __ATOMIC_RELAXED);
  __atomic_store_n(&hz6_map.medium_places, slabs * HZ6_MEDIUM_ROW, __ATOMIC_RELAXED);
}

// Whole pages of rows that are zero: of slabs that are free.
static void purge_rows(_Atomic uint8_t *table, size_t row, size_t from_slab, size_t to_slab) {
  const size_t from = hz_align_up(from_slab * row, hz_page_bytes);
  const size_t to = hz_align_down(to_slab * row, hz_page_bytes);
  if (from < to) hz_os.purge((char *)table + from, to - from);
}

// Rows beyond `committed` were never written.
static void purge_along(size_t first, size_t slabs) {
  const size_t end = hz_min(first + slabs, __atomic_load_n(&map.committed, __ATOMIC_ACQUIRE));
  if (first >= end) return;
  purge_rows(hz6_map.small, HZ6_SMALL_ROW, first, end);
  purge_rows(hz6_map.medium, HZ6_MEDIUM_ROW, first, end);
}

bool hz6_route_start(void) {
  const size_t slabs = slabs_to_reach();
  hz_locks_register(HZ_RANK_TABLE, &map.lock, 1, sizeof map.lock);
  hz6_map.small = hz_os.reserve_table(slabs * HZ6_SMALL_ROW);
  hz6_map.medium = hz_os.reserve_table(slabs * HZ6_MEDIUM_ROW);
  if (hz6_map.small == NULL || hz6_map.medium == NULL) return false;
  hz6_map.small_base = hz_arena.base >> HZ6_SMALL_SHIFT;
  hz6_map.medium_base = hz_arena.base >> HZ6_MEDIUM_SHIFT;
  set_reach(slabs);
  hz_arena_on_purge(purge_along);
  return true;
}

static void abandon_rows(_Atomic uint8_t *table, size_t row, size_t from_slab, size_t to_slab) {
  const size_t from = hz_align_up(from_slab * row, hz_page_bytes);
  const size_t to = hz_align_up(to_slab * row, hz_page_bytes);
  if (from < to) hz_os.abandon((char *)table + from, to - from);
}

void hz6_route_concede(void) {
  hz_lock(&map.lock);
  const size_t before = map.slabs;
  const size_t keep = hz_max(hz_min(before, slabs_to_reach()), map.committed);
  if (keep < before) {
    set_reach(keep);
    abandon_rows(hz6_map.small, HZ6_SMALL_ROW, keep, before);
    abandon_rows(hz6_map.medium, HZ6_MEDIUM_ROW, keep, before);
  }
  hz_unlock(&map.lock);
}

static bool commit_rows(_Atomic uint8_t *table, size_t row, size_t from_slab, size_t to_slab) {
  const size_t from = hz_align_down(from_slab * row, hz_page_bytes);
  const size_t to = hz_align_up(to_slab * row, hz_page_bytes);
  return hz_os.commit((char *)table + from, to - from);
}

// A segment's rows at a time: a call per 4 MiB of memory.
static bool commit_to(size_t slabs) {
  if (hz_likely(slabs <= __atomic_load_n(&map.committed, __ATOMIC_ACQUIRE))) return true;
  hz_lock(&map.lock);
  const size_t from = map.committed, to = hz_align_up(slabs, HZ_SEGMENT_SLABS);
  bool done = to <= from;
  if (!done && to <= map.slabs) {
    done = commit_rows(hz6_map.small, HZ6_SMALL_ROW, from, to) &&
           commit_rows(hz6_map.medium, HZ6_MEDIUM_ROW, from, to);
    if (done) __atomic_store_n(&map.committed, to, __ATOMIC_RELEASE);
  }
  hz_unlock(&map.lock);
  return done;
}

bool hz6_route_open(struct hz_run *run) {
  if (!commit_to(hz_slab_of(hz_run_base(run)) + run->slabs)) return false;
  run->generation++;
  return true;
}

// ---- The answer ---------------------------------------------------------------------------------

_Atomic uint8_t *hz6_route_byte(const void *p) {
  const size_t small = hz6_small_place(p), medium = hz6_medium_place(p);
  if (small >= hz6_map.small_places) return NULL;
  if (medium < hz6_map.medium_places && hz6_mark_at(&hz6_map.medium[medium]) != 0)
    return &hz6_map.medium[medium];
  return &hz6_map.small[small];
}

unsigned hz6_route_unmark(const void *p) {
  _Atomic uint8_t *byte = hz6_route_byte(p);
  if (byte == NULL || hz6_mark_at(byte) == 0) return 0;
  return atomic_exchange_explicit(byte, 0, memory_order_relaxed);
}

// Inside a run of a class, where no live block begins.
static enum hz_misuse_kind why_not(const struct hz_run *run, const void *p) {
  const size_t offset = (size_t)((const char *)p - (const char *)hz_run_base(run));
  const uint32_t index = hz_class_index(run->class_id, offset);
  const bool begins = index < run->blocks && index * hz_class_bytes(run->class_id) == offset;
  return begins ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR;
}

static struct hz6_route of_class(struct hz_run *run, const void *p) {
  const _Atomic uint8_t *byte = hz6_route_byte(p);
  const bool live = byte != NULL && hz6_mark_at(byte) != 0;
  return (struct hz6_route){.answer = live ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_CLASS,
                            .class_id = run->class_id,
                            .generation = run->generation,
                            .descriptor = run,
                            .why = why_not(run, p)};
}

static struct hz6_route of_run(struct hz_run *run, const void *p) {
  const bool begins = p == hz_run_base(run);
  const bool live = begins && run->state == HZ_RUN_LIVE;
  return (struct hz6_route){.answer = live ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_RUN,
                            .class_id = HZ_CLASS_COUNT,
                            .generation = run->generation,
                            .descriptor = run,
                            .why = begins ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR};
}

static struct hz6_route of_large(struct hz_large *large, const void *base, const void *p) {
  const bool begins = p == base;
  return (struct hz6_route){.answer = begins && hz_large_live(large) ? HZ6_VALID : HZ6_INVALID,
                            .kind = HZ6_KIND_LARGE,
                            .class_id = HZ_CLASS_COUNT,
                            .descriptor = large,
                            .why = begins ? HZ_MISUSE_DOUBLE : HZ_MISUSE_INTERIOR};
}

struct hz6_route hz6_route(const void *p) {
  struct hz_run *run = hz_run_of(p);
  if (run != NULL) return run->state == HZ_RUN_CLASS ? of_class(run, p) : of_run(run, p);
  void *base;
  struct hz_large *large = hz_large_of(p, &base);
  if (large != NULL) return of_large(large, base, p);
  return (struct hz6_route){.answer = hz_slab_of(p) < hz_arena.slab_count ? HZ6_INVALID : HZ6_MISS,
                            .class_id = HZ_CLASS_COUNT,
                            .why = hz_arena_run_began(p) ? HZ_MISUSE_DOUBLE : HZ_MISUSE_FOREIGN};
}

// ---- Check --------------------------------------------------------------------------------------

static const _Atomic uint8_t *byte_of_block(const struct hz_run *run, uint32_t index) {
  const char *p = (const char *)hz_run_base(run) + index * hz_class_bytes(run->class_id);
  return hz6_byte_of(p, run->class_id + 1u);
}

bool hz6_route_is_clear(const struct hz_run *run) {
  for (uint32_t i = 0; i < run->blocks; i++)
    if (hz6_mark_at(byte_of_block(run, i)) != 0) return false;
  return true;
}

const char *hz6_route_check(const struct hz_run *run) {
  const size_t bytes = hz_class_bytes(run->class_id);
  for (uint32_t i = 0; i < run->blocks; i++) {
    const unsigned mark = hz6_mark_at(byte_of_block(run, i));
    if (mark != 0 && mark != run->class_id + 1u)
      return "hz6: a block is marked as of another class";
    if (mark != 0 && hz_class_run_has(run, (const char *)hz_run_base(run) + i * bytes))
      return "hz6: a block of a run is free and marked as live";
  }
  return NULL;
}
