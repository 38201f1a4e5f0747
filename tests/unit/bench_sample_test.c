// tools/bench/sample: medians, spreads, and how often noise is taken for a difference.
#include "tools/bench/sample.h"

#include <math.h>

#include "tests/unit/bench_support.h"

// ---- A machine whose figures are normally distributed -------------------------------------------

static uint64_t seed;

// In (0, 1]: the upper bits of a linear congruential generator.
static double draw_uniform(void) {
  seed = seed * 6364136223846793005U + 1442695040888963407U;
  return (double)((seed >> 11) + 1) / 9007199254740992.0;
}

static double draw_normal(void) {
  double length = sqrt(-2 * log(draw_uniform()));
  return length * cos(2 * 3.14159265358979323846 * draw_uniform());
}

static struct hz_summary draw_summary(size_t rounds, double mean) {
  struct hz_sample sample = {.count = rounds};
  for (size_t i = 0; i < rounds; i++) sample.values[i] = mean + draw_normal();
  return hz_summarize(&sample);
}

enum { TRIALS = 20000 };

// In how many of a thousand trials two samples of one figure are told apart.
static double false_alarms(size_t rounds) {
  size_t alarms = 0;
  for (size_t i = 0; i < TRIALS; i++) {
    struct hz_summary a = draw_summary(rounds, 1000), b = draw_summary(rounds, 1000);
    alarms += hz_summary_compare(&a, &b) != 0;
  }
  return 1000.0 * (double)alarms / TRIALS;
}

// In how many of a thousand trials a ratio that is 1 is told from 1.
static double false_alarms_of_ratios(size_t rounds) {
  size_t alarms = 0;
  for (size_t i = 0; i < TRIALS; i++) {
    struct hz_sample above = {.count = rounds}, below = {.count = rounds};
    for (size_t k = 0; k < rounds; k++) {
      above.values[k] = 5 + draw_normal(); // far more noise than the resolution
      below.values[k] = 5;
    }
    struct hz_summary ratio = hz_summarize_ratio(&above, &below);
    alarms += hz_summary_compare_to(&ratio, 1) != 0;
  }
  return 1000.0 * (double)alarms / TRIALS;
}

static void ratios_within_the_resolution_are_the_same(void **state) {
  (void)state;
  struct hz_sample base = {3, {1000, 1000, 1000}}, close = {3, {1009, 1009, 1009}};
  struct hz_sample apart = {3, {1011, 1011, 1011}};
  struct hz_summary same = hz_summarize_ratio(&close, &base);
  struct hz_summary more = hz_summarize_ratio(&apart, &base);
  struct hz_summary less = hz_summarize_ratio(&base, &apart);
  assert_int_equal(hz_summary_compare_to(&same, 1), 0);
  assert_int_equal(hz_summary_compare_to(&more, 1), 1);
  assert_int_equal(hz_summary_compare_to(&less, 1), -1);
}

// ---- Summaries ----------------------------------------------------------------------------------

static struct hz_summary summary_of(size_t count, const double *values) {
  struct hz_sample sample = {.count = count};
  for (size_t i = 0; i < count; i++) sample.values[i] = values[i];
  return hz_summarize(&sample);
}

#define SUMMARY(...)                                                                               \
  summary_of(sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static void median_of_an_odd_count_is_the_middle_figure(void **state) {
  (void)state;
  assert_near(SUMMARY(9, 1, 5).median, 5);
  assert_near(SUMMARY(-1, 7, 7, 7, 1e9).median, 7);
}

static void median_of_an_even_count_is_between_the_middle_figures(void **state) {
  (void)state;
  assert_near(SUMMARY(4, 1).median, 2.5);
  assert_near(SUMMARY(10, 1, 4, 2).median, 3);
}

static void least_and_greatest_are_those_of_all_rounds(void **state) {
  (void)state;
  struct hz_summary summary = SUMMARY(3, -8, 2, 90, 4);
  assert_int_equal(summary.count, 5);
  assert_near(summary.least, -8);
  assert_near(summary.greatest, 90);
}

static void one_round_knows_nothing_of_its_spread(void **state) {
  (void)state;
  struct hz_summary one = SUMMARY(7), far = SUMMARY(1e9, 1e9, 1e9);
  assert_near(one.median, 7);
  assert_true(isinf(one.spread));
  assert_int_equal(hz_summary_compare(&one, &far), 0);
  assert_int_equal(hz_summary_compare_to(&one, 1e9), 0);
}

static void nothing_measured_is_zero_and_differs_from_nothing(void **state) {
  (void)state;
  struct hz_sample none = {.count = 0};
  struct hz_summary summary = hz_summarize(&none), some = SUMMARY(5, 5, 5);
  assert_int_equal(summary.count, 0);
  assert_true(summary.median == 0 && summary.least == 0 && summary.greatest == 0);
  assert_true(summary.spread == 0);
  assert_int_equal(hz_summary_compare(&summary, &some), 0);
  assert_int_equal(hz_summary_compare(&some, &summary), 0);
}

static void equal_figures_have_no_spread(void **state) {
  (void)state;
  struct hz_summary a = SUMMARY(5, 5, 5), b = SUMMARY(6, 6);
  assert_true(a.spread == 0);
  assert_true(hz_summary_compare(&a, &b) < 0);
  assert_int_equal(hz_summary_compare(&a, &a), 0);
  assert_int_equal(hz_summary_compare_to(&a, 5), 0);
}

static void more_rounds_of_the_same_range_spread_less(void **state) {
  (void)state;
  double last = INFINITY;
  for (size_t rounds = 2; rounds <= HZ_ROUNDS_MOST; rounds++) {
    struct hz_sample sample = {.count = rounds, .values = {10, 11}};
    for (size_t i = 2; i < rounds; i++) sample.values[i] = 10.5;
    double spread = hz_summarize(&sample).spread;
    assert_true(spread > 0 && spread <= last);
    last = spread;
  }
}

// ---- Ratios -------------------------------------------------------------------------------------

static void ratios_pair_the_figures_of_one_round(void **state) {
  (void)state;
  struct hz_sample a = {.count = 3, .values = {10, 30, 9}}, b = {.count = 2, .values = {5, 10}};
  struct hz_sample ratios = hz_ratios(&a, &b), inverse = hz_ratios(&b, &a);
  assert_int_equal(ratios.count, 2);
  assert_near(ratios.values[0], 2);
  assert_near(ratios.values[1], 3);
  assert_int_equal(inverse.count, 2);
  assert_near(inverse.values[0], 0.5);
}

static void ratios_leave_out_rounds_that_divide_by_zero(void **state) {
  (void)state;
  struct hz_sample a = {.count = 3, .values = {10, 30, 9}}, b = {.count = 3, .values = {5, 0, 3}};
  struct hz_sample ratios = hz_ratios(&a, &b);
  assert_int_equal(ratios.count, 2);
  assert_near(ratios.values[0], 2);
  assert_near(ratios.values[1], 3);
}

// ---- Noise --------------------------------------------------------------------------------------

static void equal_figures_are_told_apart_about_once_in_a_hundred_times(void **state) {
  (void)state;
  for (size_t rounds = 2; rounds <= 20; rounds++) {
    seed = rounds;
    double alarms = false_alarms(rounds);
    if (alarms > 13) fail_msg("%zu rounds: %.1f of 1000, too many", rounds, alarms);
    if (alarms < 3) fail_msg("%zu rounds: %.1f of 1000, too few", rounds, alarms);
  }
}

static void a_ratio_of_equal_figures_is_told_from_one_about_once_in_fifty(void **state) {
  (void)state;
  for (size_t rounds = 2; rounds <= 20; rounds++) {
    seed = rounds;
    double alarms = false_alarms_of_ratios(rounds);
    if (alarms > 26) fail_msg("%zu rounds: %.1f of 1000, too many", rounds, alarms);
    if (alarms < 12) fail_msg("%zu rounds: %.1f of 1000, too few", rounds, alarms);
  }
}

static void a_difference_of_many_spreads_is_told_with_its_sign(void **state) {
  (void)state;
  seed = 1;
  for (size_t i = 0; i < 1000; i++) {
    struct hz_summary slow = draw_summary(5, 1000), fast = draw_summary(5, 1030);
    assert_int_equal(hz_summary_compare(&slow, &fast), -1);
    assert_int_equal(hz_summary_compare(&fast, &slow), 1);
    assert_int_equal(hz_summary_compare_to(&fast, 1000), 1);
    assert_int_equal(hz_summary_compare_to(&slow, 1030), -1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(median_of_an_odd_count_is_the_middle_figure),
      cmocka_unit_test(median_of_an_even_count_is_between_the_middle_figures),
      cmocka_unit_test(least_and_greatest_are_those_of_all_rounds),
      cmocka_unit_test(one_round_knows_nothing_of_its_spread),
      cmocka_unit_test(nothing_measured_is_zero_and_differs_from_nothing),
      cmocka_unit_test(equal_figures_have_no_spread),
      cmocka_unit_test(ratios_within_the_resolution_are_the_same),
      cmocka_unit_test(more_rounds_of_the_same_range_spread_less),
      cmocka_unit_test(ratios_pair_the_figures_of_one_round),
      cmocka_unit_test(ratios_leave_out_rounds_that_divide_by_zero),
      cmocka_unit_test(equal_figures_are_told_apart_about_once_in_a_hundred_times),
      cmocka_unit_test(a_ratio_of_equal_figures_is_told_from_one_about_once_in_fifty),
      cmocka_unit_test(a_difference_of_many_spreads_is_told_with_its_sign),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
