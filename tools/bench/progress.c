#include "tools/bench/progress.h"

#include <stdio.h>
#include <string.h>

#include "tools/bench/clock.h"
#include "tools/print.h"

enum { BAR_COLUMNS = 24 };

void hz_progress_begin(struct hz_progress *progress, size_t total, size_t rounds) {
  *progress = (struct hz_progress){
      .total = total, .rounds = rounds, .begin_s = hz_now_s(), .shown = hz_is_terminal(stderr)};
}

// "3 min 20 s", from the time that the steps took so far.
static void print_left(const struct hz_progress *progress) {
  if (progress->done == 0) return;
  double each_s = (hz_now_s() - progress->begin_s) / (double)progress->done;
  unsigned left_s = (unsigned)(each_s * (double)(progress->total - progress->done) + 0.5);
  if (left_s >= 60) fprintf(stderr, ", %u min %u s left", left_s / 60, left_s % 60);
  if (left_s < 60) fprintf(stderr, ", %u s left", left_s);
}

void hz_progress_step(struct hz_progress *progress, size_t round, const char *lane,
                      const char *allocator) {
  if (progress->shown) {
    static const char bar[BAR_COLUMNS + 1] = "########################";
    size_t filled = progress->total ? progress->done * BAR_COLUMNS / progress->total : 0;
    fprintf(stderr, "\r\033[K[%-*.*s] round %zu of %zu, %s, %s", BAR_COLUMNS, (int)filled, bar,
            round, progress->rounds, lane, allocator);
    print_left(progress);
    fflush(stderr);
  }
  progress->done++;
}

void hz_progress_clear(struct hz_progress *progress) {
  if (progress->shown) fputs("\r\033[K", stderr);
}

double hz_progress_seconds(const struct hz_progress *progress) {
  return hz_now_s() - progress->begin_s;
}
