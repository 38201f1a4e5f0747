// `redislike`: five patterns of a store of strings, one after another.
//
//   redislike [threads=4] [ops=2000] [min=16] [max=256] [seed=1] [seconds=0.5 | steps=N]
//             [rest_ms=10]
//
// Each thread has a pool of 2 * `ops` places for strings that fill min to max bytes. Work comes in
// cycles of `ops` steps; before each cycle the pool is made half full. The patterns, each for a
// fifth of the time, begun by all threads at once:
//   SET     a string is allocated, its key printed into it, and freed
//   GET     a random string of the pool is read to its end
//   LPUSH   a string is put at the pool's end or, in half of the cases or when the pool is full,
//           in the place of a random one, which is freed
//   LPOP    a random string is freed, and the last one takes its place
//   RANDOM  70 % GET, 20 % SET, 5 % LPUSH, 5 % LPOP
// Strings begin with the key that their place in the pool knows and go on with a letter of it; GET
// verifies key and length, the free every byte.
//
// A step is one operation. Prints besides the common figures set_mops= get_mops= lpush_mops=
// lpop_mops= random_mops=: a pattern's rate is the sum of its threads' rates, each over the time
// from the pattern's first begin to its last end, without what this thread took to fill its pool
// in between. mops= is the geometric mean of the five, so that each counts alike: by sums GET,
// which is fast and allocates nothing, would outweigh the others. ops= and seconds= are those of
// the whole run, filling included.
#include "crew.h"
#include "report.h"

enum { SET, GET, LPUSH, LPOP, RANDOM, PATTERNS };
// OPS_MOST: draw_place has 20 bits.
enum { KEY_BYTES = 12, OPS_MOST = 1 << 19, MEAN_STEPS = 100 };

static struct { size_t threads, ops; } rules;

static const struct argument arguments[] = {
    THREADS_ARGUMENT(&rules.threads, 4),
    {.key = "ops", .value = &rules.ops, .usual = 2000, .least = 1, .most = OPS_MOST},
    SIZE_ARGUMENTS(16, 256),
    SEED_ARGUMENT,
    PACE_ARGUMENTS,
    REST_ARGUMENT(10),
};

struct entry {
  char *text;
  uint32_t key, length;
};

// fill_ns: what lay between the cycles.
struct part {
  uint64_t begin_ns, end_ns, fill_ns, ops;
};

struct redis_worker {
  struct worker worker;
  struct entry *pool;
  size_t count;
  uint32_t next_key;
  struct part parts[PATTERNS];
};

static _Atomic uint64_t pattern_begin_ns[PATTERNS]; // of the first thread

// "key:" and eight digits, then a letter to the end.
static char key_letter(uint32_t key) {
  return (char)('a' + key % 26);
}

static void note_damage(struct redis_worker *w, const struct entry *e, size_t offset,
                        uint64_t expected, uint64_t found) {
  witness_note(&w->worker.witness, e->text, offset, expected, found);
}

static void verify_key(struct redis_worker *w, const struct entry *e) {
  uint64_t key = 0;
  for (size_t i = 4; i < KEY_BYTES; i++) {
    char c = e->text[i];
    key = key * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  if (key != e->key) note_damage(w, e, 4, e->key, key);
}

static struct entry make_string(struct redis_worker *w, uint64_t drawn) {
  size_t bytes = draw_size(drawn, block_rules.min, block_rules.max);
  char *text = malloc(bytes);
  block_accept(text, bytes, BLOCK_ALIGNMENT, "malloc");
  uint32_t key = w->next_key++;
  snprintf(text, bytes, "key:%08x", key);
  memset(text + KEY_BYTES, key_letter(key), bytes - 1 - KEY_BYTES);
  text[bytes - 1] = '\0';
  return (struct entry){.text = text, .key = key, .length = (uint32_t)(bytes - 1)};
}

static void free_string(struct redis_worker *w, struct entry *e) {
  verify_key(w, e);
  for (size_t i = KEY_BYTES; i <= e->length; i++) {
    char expected = i == e->length ? '\0' : key_letter(e->key);
    if (e->text[i] == expected) continue;
    note_damage(w, e, i, (unsigned char)expected, (unsigned char)e->text[i]);
    break;
  }
  memset(e->text, '#', KEY_BYTES); // whoever owns the string too will notice
  free(e->text);
}

static void do_set(struct redis_worker *w, uint64_t drawn) {
  struct entry e = make_string(w, drawn);
  free_string(w, &e);
}

static void do_get(struct redis_worker *w, uint64_t drawn) {
  if (w->count == 0) return;
  const struct entry *e = &w->pool[draw_place(drawn, w->count)];
  size_t length = strnlen(e->text, block_rules.max);
  if (length != e->length) note_damage(w, e, length, e->length, length);
  verify_key(w, e);
}

static void do_lpush(struct redis_worker *w, uint64_t drawn) {
  bool append = w->count == 0 || (w->count < 2 * rules.ops && drawn >> 63 != 0);
  struct entry *e = &w->pool[append ? w->count++ : draw_place(drawn, w->count)];
  if (!append) free_string(w, e);
  *e = make_string(w, drawn);
}

static void do_lpop(struct redis_worker *w, uint64_t drawn) {
  if (w->count == 0) return;
  struct entry *e = &w->pool[draw_place(drawn, w->count)];
  free_string(w, e);
  *e = w->pool[--w->count];
}

static void do_step(struct redis_worker *w, int pattern) {
  uint64_t drawn = draw(&w->worker.random);
  if (pattern == RANDOM) {
    size_t percent = draw_case(drawn, 100);
    pattern = percent < 70 ? GET : percent < 90 ? SET : percent < 95 ? LPUSH : LPOP;
    drawn = draw(&w->worker.random); // the case's bits must not choose again
  }
  if (pattern == SET) do_set(w, drawn);
  if (pattern == GET) do_get(w, drawn);
  if (pattern == LPUSH) do_lpush(w, drawn);
  if (pattern == LPOP) do_lpop(w, drawn);
}

static void make_half_full(struct redis_worker *w) {
  while (w->count > rules.ops) free_string(w, &w->pool[--w->count]);
  while (w->count < rules.ops) w->pool[w->count++] = make_string(w, draw(&w->worker.random));
}

// The pool is filled before the clock starts, and again between cycles, whose time is noted.
static void do_pattern(struct redis_worker *w, int pattern) {
  struct part *part = &w->parts[pattern];
  make_half_full(w);
  pthread_barrier_wait(&crew.barrier);
  part->begin_ns = now_ns();
  uint64_t first_ns = crew_first_ns(&pattern_begin_ns[pattern], part->begin_ns);
  struct pace pace = pace_begin(first_ns, PATTERNS);
  size_t left = rules.ops;
  for (size_t batch; (batch = pace_next(&pace, left)) != 0;) {
    for (size_t i = 0; i < batch; i++) do_step(w, pattern);
    left -= batch;
    if (left != 0) continue;
    uint64_t pause_ns = now_ns();
    make_half_full(w);
    part->fill_ns += now_ns() - pause_ns;
    left = rules.ops;
  }
  part->end_ns = now_ns();
  part->ops = pace.done;
}

static void *work(void *argument) {
  struct redis_worker *w = argument;
  uint64_t ops = 0;
  worker_begin(&w->worker);
  for (int pattern = 0; pattern < PATTERNS; pattern++) {
    do_pattern(w, pattern);
    ops += w->parts[pattern].ops;
  }
  worker_end(&w->worker, ops);
  while (w->count > 0) free_string(w, &w->pool[--w->count]);
  return NULL;
}

static const struct part *find_part(size_t worker, int pattern) {
  return &((const struct redis_worker *)crew_worker(worker))->parts[pattern];
}

static double pattern_mops(int pattern) {
  uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  for (size_t i = 0; i < rules.threads; i++) {
    const struct part *part = find_part(i, pattern);
    if (part->begin_ns < begin_ns) begin_ns = part->begin_ns;
    if (part->end_ns > end_ns) end_ns = part->end_ns;
  }
  double mops = 0;
  for (size_t i = 0; i < rules.threads; i++) {
    const struct part *part = find_part(i, pattern);
    mops += (double)part->ops * 1e3 / (double)(end_ns - begin_ns - part->fill_ns);
  }
  return mops;
}

// The fifth root of the product, by Newton's method: from the arithmetic mean, which is never
// below it, each step comes nearer. (The mathematical library is not linked.)
static double geometric_mean(const double values[PATTERNS]) {
  double product = 1, mean = 0;
  for (int i = 0; i < PATTERNS; i++) {
    product *= values[i];
    mean += values[i] / PATTERNS;
  }
  for (int i = 0; i < MEAN_STEPS; i++) {
    double fourth = mean * mean * mean * mean;
    mean -= (mean - product / fourth) / PATTERNS;
  }
  return mean;
}

int main(int argc, char **argv) {
  arguments_read(arguments, ARGUMENT_COUNT(arguments), argc, argv);
  block_rules.touch = BLOCK_LEAST_TOUCHED; // strings are always verified
  block_rules_check();
  if (pace_rules.steps != 0 && pace_rules.steps < PATTERNS) {
    fail(EXIT_USAGE, "steps=%zu: expected at least %d, one for each pattern", pace_rules.steps,
         PATTERNS);
  }
  crew_map(rules.threads, sizeof(struct redis_worker));
  for (size_t i = 0; i < rules.threads; i++) {
    struct redis_worker *w = crew_worker(i);
    w->pool = state_map(2 * rules.ops * sizeof *w->pool);
    w->next_key = (uint32_t)i << 22; // not the keys of a neighbour, nor its letters
  }
  crew_run(work);
  struct figures figures = figures_of_crew();
  double mops[PATTERNS];
  for (int pattern = 0; pattern < PATTERNS; pattern++) mops[pattern] = pattern_mops(pattern);
  figures.mops = geometric_mean(mops);
  figures_rest(&figures);
  report(&figures, "set_mops=%.3f get_mops=%.3f lpush_mops=%.3f lpop_mops=%.3f random_mops=%.3f",
         mops[SET], mops[GET], mops[LPUSH], mops[LPOP], mops[RANDOM]);
  return 0;
}
