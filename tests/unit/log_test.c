// core/log, core/counter and core/misuse: what is said, where it lands, and what happens then.
//
// What ends a process or moves descriptors runs in a child, whose words come back through a pipe.
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/counter.h"
#include "core/misuse.h"

static char said[64 * 1024];

// Runs `work` in a child with fd 2 in a pipe. Fills `said`; returns the child's wait status.
static int run_child(void (*work)(void)) {
  int ends[2];
  size_t length = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    signal(SIGABRT, SIG_DFL);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    work();
    _exit(0);
  }
  close(ends[1]);
  ssize_t got;
  while ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0) length += (size_t)got;
  close(ends[0]);
  said[length] = '\0';
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void assert_exits_well(void (*work)(void)) {
  int status = run_child(work);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void assert_aborts(void (*work)(void)) {
  int status = run_child(work);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void assert_begins(const char *expected) {
  if (strncmp(said, expected, strlen(expected)) != 0) {
    fail_msg("expected at the beginning:\n%s\nfound:\n%s", expected, said);
  }
}

// ---- Messages -----------------------------------------------------------------------------------

static void say_one_thing(void) {
  errno = ESRCH;
  hz_log("%d of %s", 3, "four");
  if (errno != ESRCH) _exit(1);
}

static void message_is_one_line_and_keeps_errno(void **state) {
  (void)state;
  assert_exits_well(say_one_thing);
  assert_string_equal(said, "hakozuna: 3 of four\n");
}

static void say_too_much(void) {
  char text[2000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  hz_log("%s", text);
}

static void long_message_is_cut_and_says_so(void **state) {
  (void)state;
  assert_exits_well(say_too_much);
  assert_int_equal(strlen(said), HZ_LOG_LINE_BYTES);
  assert_string_equal(said + HZ_LOG_LINE_BYTES - 5, "x...\n");
}

static void say_what_just_fits(void) {
  char text[HZ_LOG_LINE_BYTES];
  size_t length = HZ_LOG_LINE_BYTES - strlen("hakozuna: ") - 1;
  memset(text, 'x', length);
  text[length] = '\0';
  hz_log("%s", text);
}

static void longest_message_is_not_cut(void **state) {
  (void)state;
  assert_exits_well(say_what_just_fits);
  assert_int_equal(strlen(said), HZ_LOG_LINE_BYTES);
  assert_string_equal(said + HZ_LOG_LINE_BYTES - 5, "xxxx\n");
}

static void close_stderr_and_speak(void) {
  hz_log_start();
  close(STDERR_FILENO);
  hz_log("last words");
}

static void messages_survive_a_closed_stderr(void **state) {
  (void)state;
  assert_exits_well(close_stderr_and_speak);
  assert_string_equal(said, "hakozuna: last words\n");
}

static void check_duplicate(void) {
  hz_log_start();
  int fd = hz_log_fd();
  if (fd < 100 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) _exit(1);
}

static void duplicate_has_a_high_number_and_is_closed_on_exec(void **state) {
  (void)state;
  assert_exits_well(check_duplicate);
}

static void start_under_a_low_limit(void) {
  struct rlimit limit = {30, 30};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(1);
  hz_log_start();
  int fd = hz_log_fd();
  if (fd < 20 || fd >= 30) _exit(2);
}

static void low_descriptor_limit_still_gives_a_duplicate(void **state) {
  (void)state;
  assert_exits_well(start_under_a_low_limit);
}

// The child puts a pipe where the duplicate was; nothing may arrive in it.
static void reuse_the_duplicate(void) {
  int ends[2];
  char byte;
  hz_log_start();
  int duplicate = hz_log_fd();
  if (pipe2(ends, O_NONBLOCK) != 0 || dup2(ends[1], duplicate) != duplicate) _exit(1);
  hz_log("not for the pipe");
  if (read(ends[0], &byte, 1) != -1) _exit(2);
}

static void number_that_became_another_file_is_left_alone(void **state) {
  (void)state;
  assert_exits_well(reuse_the_duplicate);
  assert_string_equal(said, "hakozuna: not for the pipe\n");
}

static void write_to_nowhere(void) {
  errno = ESRCH;
  if (hz_write_all(999, "x", 1) || errno != ESRCH) _exit(1);
  if (!hz_write_all(999, "", 0)) _exit(2);
}

static void refusing_descriptor_is_told_to_the_caller(void **state) {
  (void)state;
  assert_exits_well(write_to_nowhere);
}

// ---- Counters -----------------------------------------------------------------------------------

enum { THREADS = 40, ROUNDS = 1000 };

static void *count_many(void *unused) {
  (void)unused;
  for (int i = 0; i < ROUNDS; i++) hz_count(HZ_COUNT_committed, 3);
  return NULL;
}

static void counts_of_all_threads_add_up(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  hz_counters_reset();
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, count_many, NULL), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(hz_counter_read(HZ_COUNT_committed), 3 * THREADS * ROUNDS);
  assert_int_equal(hz_counter_read(HZ_COUNT_purged), 0);
  hz_counters_reset();
  assert_int_equal(hz_counter_read(HZ_COUNT_committed), 0);
}

static void counter_rows_are_in_the_order_of_their_ids(void **state) {
  (void)state;
  assert_string_equal(hz_counter_rows[HZ_COUNT_refills].name, "refills");
  assert_string_equal(hz_counter_rows[HZ_COUNT_committed].unit, "bytes");
  assert_string_equal(hz_counter_rows[HZ_COUNT_misuse_double].name, "misuse_double");
}

// ---- Misuse -------------------------------------------------------------------------------------

static const char *const place = (const char *)0x7f0000001230;

static void abort_on_double_free(void) {
  hz_misuse_profile("toy");
  hz_misuse(HZ_MISUSE_DOUBLE, place, "a block of 64 bytes");
}

static void abort_prints_one_line_and_a_backtrace(void **state) {
  (void)state;
  assert_aborts(abort_on_double_free);
  assert_begins("hakozuna: double free of 0x7f0000001230: the block is free already; a block of 64 "
                "bytes (profile toy). The program is stopped here; HAKOZUNA_ON_MISUSE=report drops "
                "such calls instead.\nhakozuna:   #0 /");
  assert_non_null(strstr(said, "hakozuna:   #1 "));
  assert_non_null(strstr(said, "+0x"));
}

static void abort_on_foreign_free(void) {
  hz_misuse(HZ_MISUSE_FOREIGN, place, NULL);
}

static void message_leaves_out_what_is_not_known(void **state) {
  (void)state;
  assert_aborts(abort_on_foreign_free);
  assert_begins("hakozuna: foreign free of 0x7f0000001230: no live block of this allocator is "
                "there. The program is stopped here; ");
}

__attribute__((noinline)) static void first_site(void) {
  hz_misuse(HZ_MISUSE_INTERIOR, place, NULL);
  __asm__ volatile(""); // keeps the call from becoming a jump, which would hide this frame
}

__attribute__((noinline)) static void second_site(void) {
  hz_misuse(HZ_MISUSE_DOUBLE, place, NULL);
  __asm__ volatile("");
}

static void report_two_sites(void) {
  hz_misuse_action = HZ_MISUSE_REPORT;
  errno = ESRCH;
  // Volatile: an unrolled loop would call from three places.
  for (volatile int i = 0; i < 3; i = i + 1) {
    first_site();
    second_site();
  }
  if (errno != ESRCH) _exit(1);
  if (hz_counter_read(HZ_COUNT_misuse_interior) != 3) _exit(2);
  if (hz_counter_read(HZ_COUNT_misuse_double) != 3) _exit(3);
}

static size_t occurrences(const char *part) {
  size_t count = 0;
  for (const char *at = said; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

static void report_tells_each_site_once_and_counts_every_call(void **state) {
  (void)state;
  hz_counters_reset();
  assert_exits_well(report_two_sites);
  assert_int_equal(occurrences("interior free of"), 1);
  assert_int_equal(occurrences("double free of"), 1);
}

static void ignore_one(void) {
  hz_misuse_action = HZ_MISUSE_IGNORE;
  hz_misuse(HZ_MISUSE_FOREIGN, place, NULL);
  if (hz_counter_read(HZ_COUNT_misuse_foreign) != 1) _exit(1);
}

static void ignore_says_nothing_and_counts(void **state) {
  (void)state;
  hz_counters_reset();
  assert_exits_well(ignore_one);
  assert_string_equal(said, "");
}

static void no_memory_is_null_and_enomem(void **state) {
  (void)state;
  errno = 0;
  assert_null(hz_no_memory());
  assert_int_equal(errno, ENOMEM);
}

static void break_an_invariant(void) {
  HZ_CHECK(said == NULL);
}

static void broken_invariant_is_named_and_aborts(void **state) {
  (void)state;
  assert_aborts(break_an_invariant);
  assert_begins("hakozuna: ");
  assert_non_null(strstr(said, "log_test.c:"));
  assert_non_null(strstr(said, ": `said == NULL` does not hold"));
  HZ_CHECK(said != NULL);
}

static void misuse_again(int signal_number) {
  (void)signal_number;
  hz_misuse(HZ_MISUSE_DOUBLE, place, NULL);
}

static void misuse_in_the_abort_handler(void) {
  signal(SIGABRT, misuse_again);
  hz_misuse(HZ_MISUSE_DOUBLE, place, NULL);
}

static void second_misuse_while_dying_is_silent(void **state) {
  (void)state;
  assert_aborts(misuse_in_the_abort_handler);
  assert_int_equal(occurrences("double free of"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(message_is_one_line_and_keeps_errno),
      cmocka_unit_test(long_message_is_cut_and_says_so),
      cmocka_unit_test(longest_message_is_not_cut),
      cmocka_unit_test(messages_survive_a_closed_stderr),
      cmocka_unit_test(duplicate_has_a_high_number_and_is_closed_on_exec),
      cmocka_unit_test(low_descriptor_limit_still_gives_a_duplicate),
      cmocka_unit_test(number_that_became_another_file_is_left_alone),
      cmocka_unit_test(refusing_descriptor_is_told_to_the_caller),
      cmocka_unit_test(counts_of_all_threads_add_up),
      cmocka_unit_test(counter_rows_are_in_the_order_of_their_ids),
      cmocka_unit_test(abort_prints_one_line_and_a_backtrace),
      cmocka_unit_test(message_leaves_out_what_is_not_known),
      cmocka_unit_test(report_tells_each_site_once_and_counts_every_call),
      cmocka_unit_test(ignore_says_nothing_and_counts),
      cmocka_unit_test(no_memory_is_null_and_enomem),
      cmocka_unit_test(broken_invariant_is_named_and_aborts),
      cmocka_unit_test(second_misuse_while_dying_is_silent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
