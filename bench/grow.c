// `grow`: buffers that grow by realloc, as strings and vectors do.
//
//   grow [threads=1] [ws=16] [min=16] [max=262144] [seed=1] [seconds=0.5 | steps=N] [rest_ms=10]
//
// Each thread has `ws` buffers. A step draws one and makes it larger: by 16 to 272 bytes, or in one
// of four cases by half its length (all lengths are multiples of 8). One that would get longer than
// max is freed and begins anew with min bytes. A buffer counts in its words from a number of its
// own. After each realloc the words at both ends of what was there before, and some between, are
// verified; before the free, all of them.
//
// A realloc, the first one of NULL included, is one operation. Prints besides the common figures
// moved= (per cent of the reallocs of a buffer that changed its address) and copied_mib= (old
// lengths where the address changed: what had to be moved, by copy or otherwise).
#include "crew.h"
#include "report.h"

enum { BUFFERS_MOST = 1 << 16, SAMPLES = 4 };

static struct { size_t threads, ws; } rules;

static const struct argument arguments[] = {
    THREADS_ARGUMENT(&rules.threads, 1),
    {.key = "ws", .value = &rules.ws, .usual = 16, .least = 1, .most = BUFFERS_MOST},
    SIZE_ARGUMENTS(16, 262144),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

struct buffer {
  uint64_t *words; // words[i] is first + i
  size_t count;
  uint64_t first;
};

struct grow_worker {
  struct worker worker;
  struct buffer *buffers;
  uint64_t grown, moved, copied_bytes;
};

static inline void verify_word(struct grow_worker *w, const struct buffer *b, size_t i) {
  if (b->words[i] == b->first + i) return;
  witness_note(&w->worker.witness, b->words, i * sizeof *b->words, b->first + i, b->words[i]);
}

// Of the first `count` words: two at each end, and some that the draw chooses.
static void verify_samples(struct grow_worker *w, const struct buffer *b, size_t count,
                           uint64_t drawn) {
  verify_word(w, b, 0);
  verify_word(w, b, 1);
  verify_word(w, b, count - 2);
  verify_word(w, b, count - 1);
  for (size_t i = 0; i < SAMPLES; i++) verify_word(w, b, (drawn >> (8 * i)) % count);
}

static void release(struct grow_worker *w, struct buffer *b) {
  if (b->words == NULL) return;
  for (size_t i = 0; i < b->count; i++) verify_word(w, b, i);
  b->words[0] = ~b->first;
  free(b->words);
  b->words = NULL;
  b->count = 0;
}

static void resize(struct grow_worker *w, struct buffer *b, size_t count, uint64_t drawn) {
  uintptr_t old = (uintptr_t)b->words;
  size_t old_count = b->count, bytes = count * sizeof *b->words;
  if (old == 0) b->first = witness_stamp(&w->worker.witness);
  b->words = realloc(b->words, bytes);
  block_accept(b->words, bytes, BLOCK_ALIGNMENT, "realloc");
  if (old != 0) {
    bool moved = old != (uintptr_t)b->words;
    w->grown++;
    w->moved += moved;
    w->copied_bytes += moved ? old_count * sizeof *b->words : 0;
    verify_samples(w, b, old_count, drawn);
  }
  for (size_t i = old_count; i < count; i++) b->words[i] = b->first + i;
  b->count = count;
}

static void step(struct grow_worker *w) {
  uint64_t drawn = draw(&w->worker.random);
  struct buffer *b = &w->buffers[draw_place(drawn, rules.ws)];
  bool by_half = draw_case(drawn, 4) == 0;
  size_t count = b->count + (by_half ? b->count / 2 : draw_size(drawn, 2, 34));
  if (count * sizeof *b->words > block_rules.max) release(w, b);
  if (b->words == NULL) count = (block_rules.min + 7) / 8;
  resize(w, b, count, drawn);
}

static void *work(void *argument) {
  struct grow_worker *w = argument;
  worker_begin(&w->worker);
  for (size_t batch; (batch = pace_next(&w->worker.pace, PACE_BATCH)) != 0;) {
    for (size_t i = 0; i < batch; i++) step(w);
  }
  worker_end(&w->worker, w->worker.pace.done);
  for (size_t i = 0; i < rules.ws; i++) release(w, &w->buffers[i]);
  return NULL;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules.touch = BLOCK_LEAST_TOUCHED; // contents are always verified here
  block_rules_check();
  crew_map(rules.threads, sizeof(struct grow_worker));
  for (size_t i = 0; i < rules.threads; i++) {
    ((struct grow_worker *)crew_worker(i))->buffers = state_map(rules.ws * sizeof(struct buffer));
  }
  crew_run(work);
  struct figures figures = figures_of_crew();
  uint64_t grown = 0, moved = 0, copied_bytes = 0;
  for (size_t i = 0; i < rules.threads; i++) {
    const struct grow_worker *w = crew_worker(i);
    grown += w->grown;
    moved += w->moved;
    copied_bytes += w->copied_bytes;
  }
  figures_rest(&figures);
  report(&figures, "moved=%.1f copied_mib=%.1f",
         grown == 0 ? 0.0 : 100.0 * (double)moved / (double)grown,
         (double)copied_bytes / (1024.0 * 1024.0));
  return 0;
}
