// core/size_class: the tables against the rules that they were computed by.
#include "core/size_class.h"

#include "core/arena.h"
#include "tests/unit/isolated.h"

// 16-byte steps to 128, then four per doubling.
static size_t rule_bytes(unsigned class_id) {
  if (class_id < 8) return ((size_t)class_id + 1) * 16;
  const size_t doubling = (size_t)128 << (class_id - 8) / 4;
  return doubling + doubling / 4 * ((class_id - 8) % 4 + 1);
}

// The fewest slabs whose run holds at least four blocks and wastes at most a fifteenth.
static unsigned rule_slabs(size_t bytes) {
  for (unsigned slabs = 1;; slabs++) {
    const size_t run = (size_t)slabs << HZ_SLAB_SHIFT;
    if (run / bytes >= 4 && run % bytes * 15 <= run) return slabs;
  }
}

static void class_sizes_follow_the_rule(void **state) {
  (void)state;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) assert_int_equal(hz_class_bytes(c), rule_bytes(c));
  assert_int_equal(hz_class_bytes(HZ_CLASS_COUNT - 1), HZ_CLASS_MAX_BYTES);
}

static void run_lengths_follow_the_rule(void **state) {
  (void)state;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const struct hz_size_class *sc = &hz_size_classes[c];
    assert_int_equal(sc->slabs, rule_slabs(sc->bytes));
    assert_int_equal(sc->blocks, ((size_t)sc->slabs << HZ_SLAB_SHIFT) / sc->bytes);
  }
}

static void every_size_maps_to_the_smallest_class_that_holds_it(void **state) {
  (void)state;
  unsigned smallest = 0;
  for (size_t bytes = 0; bytes <= HZ_CLASS_MAX_BYTES; bytes++) {
    while (rule_bytes(smallest) < bytes) smallest++;
    assert_int_equal(hz_class_of(bytes), smallest);
  }
}

static void at_most_a_fifth_of_a_block_is_unused_above_128_bytes(void **state) {
  (void)state;
  for (size_t bytes = 129; bytes <= HZ_CLASS_MAX_BYTES; bytes++) {
    const size_t block = hz_class_bytes(hz_class_of(bytes));
    assert_true((block - bytes) * 5 < block);
  }
}

static void reciprocal_is_exact_for_every_offset_of_the_longest_run(void **state) {
  (void)state;
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++) {
    const size_t bytes = hz_class_bytes(c);
    assert_int_equal(hz_size_classes[c].reciprocal, ((UINT64_C(1) << 40) + bytes - 1) / bytes);
    size_t index = 0, end = bytes;
    for (size_t offset = 0; offset < HZ_SEGMENT_BYTES; offset++) {
      if (offset == end) {
        index++;
        end += bytes;
      }
      if (hz_class_index(c, offset) != index) fail_msg("class %u, offset %zu", c, offset);
    }
  }
}

static unsigned rule_aligned(size_t align, size_t bytes) {
  for (unsigned c = 0; c < HZ_CLASS_COUNT; c++)
    if (rule_bytes(c) >= bytes && rule_bytes(c) % align == 0) return c;
  return HZ_CLASS_COUNT;
}

static void aligned_lookup_finds_the_smallest_class_whose_blocks_are_all_aligned(void **state) {
  (void)state;
  for (size_t align = 1; align <= 2 * HZ_CLASS_MAX_BYTES; align *= 2)
    for (size_t bytes = 0; bytes <= HZ_CLASS_MAX_BYTES + 64; bytes += bytes < 4096 ? 1 : 61)
      assert_int_equal(hz_class_of_aligned(align, bytes), rule_aligned(align, bytes));
}

static void aligned_lookup_refuses_what_no_class_can_hold(void **state) {
  (void)state;
  assert_int_equal(hz_class_of_aligned(16, SIZE_MAX), HZ_CLASS_COUNT);
  assert_int_equal(hz_class_of_aligned((size_t)1 << 63, 16), HZ_CLASS_COUNT);
  assert_int_equal(hz_class_of_aligned(HZ_CLASS_MAX_BYTES, HZ_CLASS_MAX_BYTES), HZ_CLASS_COUNT - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(class_sizes_follow_the_rule),
      cmocka_unit_test(run_lengths_follow_the_rule),
      cmocka_unit_test(every_size_maps_to_the_smallest_class_that_holds_it),
      cmocka_unit_test(at_most_a_fifth_of_a_block_is_unused_above_128_bytes),
      cmocka_unit_test(reciprocal_is_exact_for_every_offset_of_the_longest_run),
      cmocka_unit_test(aligned_lookup_finds_the_smallest_class_whose_blocks_are_all_aligned),
      cmocka_unit_test(aligned_lookup_refuses_what_no_class_can_hold),
  };
  return isolated_run(tests, hz_count_of(tests));
}
