// core/os: what the kernel promises to core, asked of the kernel itself.
#include "core/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/unit/isolated.h"

enum { BYTES = 1 << 20 };

// The kernel reads or writes the byte for us: EFAULT instead of a signal.
static bool readable(const void *p) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const bool done = write(ends[1], p, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return done;
}

static bool writable(void *p) {
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  assert_true(zero >= 0);
  const bool done = read(zero, p, 1) == 1;
  close(zero);
  return done;
}

static bool all_zero(const char *p, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (p[i] != 0) return false;
  return true;
}

static void reserved_space_is_aligned_and_out_of_reach(void **state) {
  (void)state;
  for (size_t align = hz_page_bytes; align <= (size_t)1 << 26; align *= 4) {
    char *p = hz_os.reserve(BYTES, align);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % align, 0);
    assert_false(readable(p));
    assert_false(readable(p + BYTES - 1));
    assert_true(hz_os.abandon(p, BYTES));
  }
}

static void reservation_beyond_the_address_space_is_refused(void **state) {
  (void)state;
  errno = 77;
  assert_null(hz_os.reserve((size_t)1 << 60, hz_page_bytes));
  assert_null(hz_os.reserve(SIZE_MAX - 100, (size_t)1 << 22));
  assert_null(hz_os.map((size_t)1 << 60));
  assert_null(hz_os.reserve_table((size_t)1 << 60));
  assert_int_equal(errno, 77);
}

static void committed_pages_are_zero_and_writable(void **state) {
  (void)state;
  char *p = hz_os.reserve(BYTES, hz_page_bytes);
  assert_true(hz_os.commit(p, BYTES / 2));
  assert_true(all_zero(p, BYTES / 2));
  memset(p, 1, BYTES / 2);
  assert_false(readable(p + BYTES / 2));
}

static void decommitted_pages_lose_their_contents_and_stay_reserved(void **state) {
  (void)state;
  char *p = hz_os.reserve(BYTES, hz_page_bytes);
  assert_true(hz_os.commit(p, BYTES));
  memset(p, 1, BYTES);
  assert_true(hz_os.decommit(p, BYTES));
  assert_false(readable(p));
  assert_false(hz_os.claim(p, BYTES));
  assert_true(hz_os.commit(p, BYTES));
  assert_true(all_zero(p, BYTES));
}

static void purged_pages_read_as_zero_and_stay_writable(void **state) {
  (void)state;
  char *p = hz_os.map(BYTES);
  memset(p, 1, BYTES);
  assert_true(hz_os.purge(p + hz_page_bytes, hz_page_bytes));
  assert_true(all_zero(p + hz_page_bytes, hz_page_bytes));
  assert_int_equal(p[0], 1);
  assert_int_equal(p[2 * hz_page_bytes], 1);
  assert_true(writable(p + hz_page_bytes));
}

static void moved_pages_take_their_contents_along(void **state) {
  (void)state;
  char *from = hz_os.reserve(BYTES, hz_page_bytes), *to = hz_os.reserve(2 * BYTES, hz_page_bytes);
  assert_true(hz_os.commit(from, BYTES));
  for (size_t i = 0; i < BYTES; i++) from[i] = (char)(i * 31);
  assert_true(hz_os.move(from, BYTES, to, 2 * BYTES));
  for (size_t i = 0; i < BYTES; i++) assert_int_equal(to[i], (char)(i * 31));
  assert_true(all_zero(to + BYTES, BYTES));
  assert_true(writable(to + 2 * BYTES - 1));
  assert_false(readable(from));
  assert_true(hz_os.claim(from, BYTES));
}

static void claim_never_replaces_a_mapping(void **state) {
  (void)state;
  char *p = hz_os.map(BYTES);
  memset(p, 9, BYTES);
  errno = 77;
  assert_false(hz_os.claim(p, BYTES));
  assert_int_equal(errno, 77);
  assert_int_equal(p[0], 9);
  assert_true(hz_os.abandon(p, BYTES));
  assert_true(hz_os.claim(p, BYTES));
  assert_false(readable(p));
}

static void table_reads_as_zero_and_is_written_after_commit(void **state) {
  (void)state;
  char *p = hz_os.reserve_table(BYTES);
  assert_true(all_zero(p, BYTES));
  assert_false(writable(p));
  assert_true(hz_os.commit(p, hz_page_bytes));
  assert_true(writable(p));
  assert_false(writable(p + hz_page_bytes));
}

static void refusals_keep_errno(void **state) {
  (void)state;
  char *hole = hz_os.map(BYTES);
  assert_true(hz_os.abandon(hole, BYTES));
  errno = 77;
  assert_false(hz_os.commit(hole, BYTES));
  assert_false(hz_os.purge(hole, BYTES));
  assert_false(hz_os.move(hole, hz_page_bytes, hole + BYTES, hz_page_bytes));
  assert_false(hz_os.abandon(hole + 1, hz_page_bytes));
  assert_int_equal(errno, 77);
}

static void clock_never_goes_back(void **state) {
  (void)state;
  uint64_t last = hz_os.now_ms();
  assert_true(last > 0);
  for (int i = 0; i < 100000; i++) {
    const uint64_t now = hz_os.now_ms();
    assert_true(now >= last);
    last = now;
  }
}

static void address_limit_is_the_processs_own(void **state) {
  (void)state;
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
  assert_int_equal(hz_os.address_limit(),
                   limit.rlim_cur == RLIM_INFINITY ? 0 : (size_t)limit.rlim_cur);
  limit.rlim_cur = (rlim_t)1 << 46; // far above what a sanitizer maps for itself
  assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
  assert_int_equal(hz_os.address_limit(), (size_t)1 << 46);
}

static void page_size_is_the_kernels(void **state) {
  (void)state;
  hz_os_start();
  assert_int_equal(hz_page_bytes, sysconf(_SC_PAGESIZE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reserved_space_is_aligned_and_out_of_reach),
      cmocka_unit_test(reservation_beyond_the_address_space_is_refused),
      cmocka_unit_test(committed_pages_are_zero_and_writable),
      cmocka_unit_test(decommitted_pages_lose_their_contents_and_stay_reserved),
      cmocka_unit_test(purged_pages_read_as_zero_and_stay_writable),
      cmocka_unit_test(moved_pages_take_their_contents_along),
      cmocka_unit_test(claim_never_replaces_a_mapping),
      cmocka_unit_test(table_reads_as_zero_and_is_written_after_commit),
      cmocka_unit_test(refusals_keep_errno),
      cmocka_unit_test(clock_never_goes_back),
      cmocka_unit_test(address_limit_is_the_processs_own),
      cmocka_unit_test(page_size_is_the_kernels),
  };
  return isolated_run(tests, hz_count_of(tests));
}
