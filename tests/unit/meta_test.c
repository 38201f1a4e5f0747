// core/meta: records of the allocator's own.
#include "core/meta.h"

#include "core/os.h"
#include "tests/support/fake_os.h"
#include "tests/support/random.h"
#include "tests/unit/isolated.h"

static void records_are_aligned_by_their_size(void **state) {
  (void)state;
  for (size_t bytes = 1; bytes <= 9000; bytes += bytes < 200 ? 1 : 97) {
    const uintptr_t at = (uintptr_t)hz_meta_take(bytes);
    assert_true(at != 0);
    assert_int_equal(at % 16, 0);
    if (bytes >= 64) assert_int_equal(at % 64, 0);
  }
}

static void live_records_never_overlap(void **state) {
  (void)state;
  enum { RECORDS = 400, STEPS = 20000, MAX_BYTES = 4096 };
  static struct {
    unsigned char *at;
    size_t bytes;
  } records[RECORDS];
  const uint64_t seed = random_seed(NULL);
  print_message("seed %llu\n", (unsigned long long)seed);
  struct random_state random = random_start(seed);
  for (int step = 0; step < STEPS; step++) {
    const size_t i = random_between(&random, 0, RECORDS - 1);
    if (records[i].at == NULL) {
      records[i].bytes = random_between(&random, 8, MAX_BYTES);
      records[i].at = hz_meta_take(records[i].bytes);
      assert_non_null(records[i].at);
      memset(records[i].at, (int)(i & 0xff), records[i].bytes);
      continue;
    }
    for (size_t k = 0; k < records[i].bytes; k++) assert_int_equal(records[i].at[k], i & 0xff);
    hz_meta_give(records[i].at, records[i].bytes);
    records[i].at = NULL;
  }
}

static void given_record_serves_the_next_request_of_its_size(void **state) {
  (void)state;
  void *first = hz_meta_take(100), *second = hz_meta_take(100);
  hz_meta_give(first, 100);
  hz_meta_give(second, 97); // the same multiple of 16
  assert_ptr_equal(hz_meta_take(112), second);
  assert_ptr_equal(hz_meta_take(99), first);
  const size_t mapped = hz_meta_bytes();
  for (int i = 0; i < 100000; i++) hz_meta_give(hz_meta_take(3000), 3000);
  assert_true(hz_meta_bytes() <= mapped + 256 * HZ_KIB);
}

static void record_above_a_chunk_gets_a_mapping_of_its_own(void **state) {
  (void)state;
  char *small = hz_meta_take(64);
  char *huge = hz_meta_take(HZ_MIB);
  assert_non_null(huge);
  memset(huge, 1, HZ_MIB);
  assert_ptr_equal(hz_meta_take(64), small + 64); // the chunk in use goes on
  assert_true(hz_meta_bytes() >= HZ_MIB + 256 * HZ_KIB);
}

static void refused_mapping_is_null_and_nothing_else(void **state) {
  (void)state;
  fake_os_install();
  fake_os_fail_nth(FAKE_MAP, 1);
  assert_null(hz_meta_take(100));
  assert_int_equal(hz_meta_bytes(), 0);
  void *record = hz_meta_take(100);
  assert_non_null(record);
  fake_os_fail_nth(FAKE_MAP, 1);
  assert_null(hz_meta_take(HZ_MIB));
  assert_ptr_equal(hz_meta_take(100), (char *)record + 128);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(records_are_aligned_by_their_size),
      cmocka_unit_test(live_records_never_overlap),
      cmocka_unit_test(given_record_serves_the_next_request_of_its_size),
      cmocka_unit_test(record_above_a_chunk_gets_a_mapping_of_its_own),
      cmocka_unit_test(refused_mapping_is_null_and_nothing_else),
  };
  return isolated_run(tests, hz_count_of(tests));
}
