// `hakozuna compare`: one command under several allocators in turn, and what the difference is. The
// run that people otherwise write by hand, with the mistakes that belong to it.
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/bench/machine.h"
#include "tools/bench/measure.h"
#include "tools/bench/plan.h"
#include "tools/bench/progress.h"
#include "tools/bench/result.h"
#include "tools/bench/variant.h"
#include "tools/bench/whole_file.h"
#include "tools/command.h"
#include "tools/find.h"
#include "tools/findings.h"
#include "tools/program.h"
#include "tools/text.h"

enum { USUAL_ROUNDS = 5, USUAL_WARMUPS = 1 };

struct request {
  const char *profiles, *json, *input; // NULL: not given
  const char *peers[HZ_PEERS_MOST];
  size_t peer_count, rounds, warmups;
  unsigned limit_s;
  char **command; // NULL-terminated
};

enum { KEY_PEER = 0x100, KEY_JSON, KEY_WARMUP };

static const struct argp_option options[] = {
    {"profiles", 'p', "LIST", 0,
     "Who takes part, separated by commas: profiles, glibc, jemalloc, tcmalloc, mimalloc, "
     "mimalloc3, snmalloc, tcmalloc-google; default: glibc, the default profile of each line, and "
     "the others that "
     "are installed. The first one is what the others are compared with",
     0},
    {"peer", KEY_PEER, "NAME=PATH", 0, "Any other library, too; may be given again", 0},
    {"rounds", 'n', "N", 0, "How often the command is run under each allocator (5)", 0},
    {"warmup", KEY_WARMUP, "N", 0, "Rounds before that are not counted (1)", 0},
    {"input", 'i', "FILE", 0, "What the command reads from its stdin (nothing)", 0},
    {"limit", 't', "SECONDS", 0, "Longest run; one that takes longer is killed (no limit)", 0},
    {"json", KEY_JSON, "FILE", 0, "Write the figures there too", 0},
    {0},
};

static size_t parse_count(struct argp_state *state, const char *option, const char *text,
                          size_t least, size_t most) {
  char *end;
  unsigned long number = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || number < least || number > most)
    argp_error(state, "%s is \"%s\"; expected %zu to %zu", option, text, least, most);
  return number;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct request *request = state->input;
  switch (key) {
  case 'p':
    request->profiles = argument;
    return 0;
  case 'n':
    request->rounds = parse_count(state, "--rounds", argument, 1, HZ_ROUNDS_MOST);
    return 0;
  case 'i':
    request->input = argument;
    return 0;
  case 't':
    request->limit_s = (unsigned)parse_count(state, "--limit", argument, 1, 86400);
    return 0;
  case KEY_WARMUP:
    request->warmups = parse_count(state, "--warmup", argument, 0, 100);
    return 0;
  case KEY_JSON:
    request->json = argument;
    return 0;
  case KEY_PEER:
    if (request->peer_count == HZ_PEERS_MOST)
      argp_error(state, "--peer: at most %d", HZ_PEERS_MOST);
    request->peers[request->peer_count++] = argument;
    return 0;
  case ARGP_KEY_ARG: // the command; what follows is its own
    request->command = &state->argv[state->next - 1];
    state->next = state->argc;
    return 0;
  case ARGP_KEY_NO_ARGS:
    argp_error(state, "no command is given to run");
    return EINVAL;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

// ---- who takes part

// Allocators that nobody asked for by name and that are not here are left out.
static void drop_missing(struct hz_variants *variants) {
  size_t kept = 0;
  for (size_t i = 0; i < variants->count; i++) {
    if (variants->rows[i].missing) hz_log("%s", variants->rows[i].missing);
    else variants->rows[kept++] = variants->rows[i];
  }
  variants->count = kept;
}

// The commands cannot be asked who served them, so at least the library must be able to.
static int check_peers(const struct hz_variants *variants) {
  for (size_t i = 0; i < variants->count; i++) {
    const struct hz_variant *row = &variants->rows[i];
    if (hz_variant_can_serve(row)) continue;
    hz_log("%s: %s does not define malloc and free: the command would be served by another "
           "allocator; expected an allocator's library.",
           row->name, row->library);
    return HZ_EXIT_NO_LIBRARY;
  }
  return HZ_EXIT_OK;
}

static int choose_variants(const struct request *request, struct hz_variants *variants) {
  int failed;
  if (request->profiles) {
    failed = hz_variants_add_list(variants, request->profiles);
  } else {
    failed = hz_variants_add_list(variants, "glibc");
    if (!failed) failed = hz_variants_add_lines(variants);
    if (!failed) failed = hz_variants_add_others(variants);
  }
  for (size_t i = 0; !failed && i < request->peer_count; i++)
    failed = hz_variants_add_peer(variants, request->peers[i]);
  if (failed) return failed;
  drop_missing(variants);
  if (variants->count > 1) return check_peers(variants);
  hz_log("there is nothing to compare: at least two allocators are needed; name them with "
         "--profiles.");
  return HZ_EXIT_USAGE;
}

// A mistyped name would otherwise be a failure of each run.
static int check_files(const struct request *request) {
  if (request->input) {
    struct stat there;
    const char *trouble = NULL;
    if (stat(request->input, &there) != 0 || access(request->input, R_OK) != 0)
      trouble = strerror(errno);
    else if (S_ISDIR(there.st_mode)) trouble = strerror(EISDIR);
    if (trouble) {
      hz_log("--input %s: %s; expected a file that the command can read.", request->input, trouble);
      return HZ_EXIT_NO_FILE;
    }
  }
  return request->json ? hz_whole_file_check(request->json) : HZ_EXIT_OK;
}

// A program that no preloaded library can serve would be measured against itself.
static int check_program(const char *name) {
  char path[PATH_MAX];
  struct hz_findings findings = {.count = 0};
  int failed = hz_program_find(name, path);
  if (failed) {
    hz_log("%s: %m; expected a program.", name);
    return failed;
  }
  hz_program_check(path, HZ_PROGRAM_WHOLE, &findings);
  for (size_t i = 0; i < findings.count; i++) {
    const struct hz_finding *row = &findings.rows[i];
    if (row->verdict != HZ_WRONG) continue;
    hz_log("%s: no preloaded allocator would serve it, so there is nothing to compare.",
           row->found);
    return HZ_EXIT_FOUND;
  }
  return HZ_EXIT_OK;
}

// ---- running

static void append(struct hz_cell *cell, enum hz_figure figure, double value) {
  hz_sample_append(&cell->figures[figure], value);
}

// One run; `counted`: its figures go into the cell. Returns why it failed, or NULL.
static char *run_once(const struct request *request, const struct hz_variant *variant,
                      struct hz_cell *cell, bool counted) {
  struct hz_measure_order order = {.variant = variant,
                                   .argv = request->command,
                                   .input = request->input,
                                   .how = HZ_PRELOADED,
                                   .limit_s = request->limit_s};
  struct hz_measured m;
  hz_measure(&order, &m);
  if (m.failure || m.interrupted) return m.failure;
  if (*variant->library && !m.opened)
    return hz_text("nobody opened %s while the command ran: it was served by another allocator.",
                   variant->library);
  if (!counted) return NULL;
  append(cell, HZ_SPEED, m.wall_s);
  append(cell, HZ_PEAK, m.peak_kib);
  append(cell, HZ_FAULTS, m.faults);
  append(cell, HZ_USER, m.user_s);
  append(cell, HZ_SYSTEM, m.system_s);
  return NULL;
}

static void run_round(const struct request *request, const struct hz_variants *variants,
                      struct hz_lane_result *lane, size_t round, struct hz_progress *progress) {
  for (size_t turn = 0; turn < variants->count && !hz_interrupted(); turn++) {
    size_t i = (turn + round) % variants->count;
    const struct hz_variant *variant = &variants->rows[i];
    struct hz_cell *cell = &lane->cells[i];
    hz_progress_step(progress, round + 1, request->command[0], variant->name);
    if (!cell->failure) cell->failure = run_once(request, variant, cell, round >= request->warmups);
  }
}

static void run_all(const struct request *request, const struct hz_variants *variants,
                    struct hz_result *result) {
  struct hz_progress progress;
  size_t rounds = request->warmups + request->rounds;
  hz_catch_interrupts();
  hz_progress_begin(&progress, rounds * variants->count, rounds);
  for (size_t round = 0; round < rounds && !hz_interrupted(); round++)
    run_round(request, variants, result->lanes[0], round, &progress);
  hz_progress_clear(&progress);
  result->seconds = hz_progress_seconds(&progress);
  result->interrupted = hz_interrupted();
}

// ---- verdicts

static struct hz_sample cpu_of(const struct hz_cell *cell) {
  struct hz_sample cpu = cell->figures[HZ_USER];
  for (size_t i = 0; i < cpu.count; i++) cpu.values[i] += cell->figures[HZ_SYSTEM].values[i];
  return cpu;
}

static struct hz_sample time_of(const struct hz_cell *cell) {
  return cell->figures[HZ_SPEED];
}

static struct hz_sample peak_of(const struct hz_cell *cell) {
  return cell->figures[HZ_PEAK];
}

static struct hz_sample faults_of(const struct hz_cell *cell) {
  return cell->figures[HZ_FAULTS];
}

// "hz3 takes 12 % (+-2) less time than glibc", or that there is no difference beyond noise.
static void print_verdict(const char *what, const char *name, const char *base,
                          const struct hz_sample *sample, const struct hz_sample *reference) {
  struct hz_summary ratio = hz_summarize_ratio(sample, reference);
  int order = hz_summary_compare_to(&ratio, 1);
  if (sample->count < 2)
    printf("%s: %s against %s: one round is too few to tell.\n", what, name, base);
  else if (ratio.count < 2)
    printf("%s: %s against %s: too little for the kernel to count.\n", what, name, base);
  else if (order == 0)
    printf("%s: %s and %s: no difference beyond noise (%+.1f %%, +-%.1f).\n", what, name, base,
           100 * (ratio.median - 1), 100 * ratio.spread);
  else
    printf("%s: %s takes %.1f %% (+-%.1f) %s than %s.\n", what, name, 100 * fabs(ratio.median - 1),
           100 * ratio.spread, order < 0 ? "less" : "more", base);
}

static void print_verdicts_of(const char *what, const struct hz_result *result,
                              struct hz_sample (*figure_of)(const struct hz_cell *)) {
  const struct hz_cell *cells = result->lanes[0]->cells;
  struct hz_sample base = figure_of(&cells[0]);
  for (size_t i = 1; i < result->party_count; i++) {
    struct hz_sample sample = figure_of(&cells[i]);
    if (!cells[i].failure && sample.count)
      print_verdict(what, result->parties[i].name, result->parties[0].name, &sample, &base);
  }
}

static void print_verdicts(const struct hz_result *result) {
  static const struct {
    const char *what;
    struct hz_sample (*figure_of)(const struct hz_cell *);
  } kinds[] = {{"time", time_of}, {"CPU", cpu_of}, {"peak RSS", peak_of}, {"faults", faults_of}};
  if (result->lanes[0]->cells[0].failure) return;
  for (size_t i = 0; i < hz_count_of(kinds); i++)
    print_verdicts_of(kinds[i].what, result, kinds[i].figure_of);
}

// ---- the command

static struct hz_result *prepare(const struct request *request, const struct hz_variants *variants,
                                 char **words) {
  struct hz_result *result = hz_result_new();
  hz_machine_describe(result, words);
  result->rounds = request->rounds;
  hz_plan_add_parties(variants, result);
  const char *slash = strrchr(request->command[0], '/');
  struct hz_lane_result *lane = hz_result_add_lane(result, slash ? slash + 1 : request->command[0]);
  free(lane->command);
  free(lane->unit);
  lane->command = hz_text_of_words(request->command);
  lane->unit = hz_text("s");
  return result;
}

static bool any_failed(const struct hz_result *result) {
  for (size_t i = 0; i < result->party_count; i++)
    if (result->lanes[0]->cells[i].failure) return true;
  return false;
}

static int compare(const struct request *request, char **words) {
  struct hz_variants variants = {.count = 0};
  int failed = check_program(request->command[0]);
  if (!failed) failed = check_files(request);
  if (!failed) failed = choose_variants(request, &variants);
  if (!failed) {
    struct hz_result *result = prepare(request, &variants, words);
    run_all(request, &variants, result);
    if (request->json) failed = hz_result_write(result, request->json);
    hz_result_print_text(result, stdout);
    print_verdicts(result);
    if (!failed && hz_interrupted()) failed = HZ_EXIT_SIGNAL + hz_interrupted();
    if (!failed && any_failed(result)) failed = HZ_EXIT_FOUND;
    hz_result_free(result);
  }
  hz_variants_free(&variants);
  return failed;
}

int hz_cmd_compare(int argc, char **argv) {
  static const struct argp parser = {
      .options = options,
      .parser = parse,
      .args_doc = "[--] PROGRAM [ARG...]",
      .doc = "Runs a command under several allocators in turn and says what differs: time, CPU, "
             "peak memory, page faults."
             "\vEach round runs the command once under each allocator, so that what else the "
             "machine does meets all of them. What the command prints is not shown. A run that "
             "fails is told and ends that allocator's part; the exit code is then 1."
             "\n\n" HZ_EXIT_CODES_DOC};
  struct request request = {.rounds = USUAL_ROUNDS, .warmups = USUAL_WARMUPS};
  char **words = hz_zeroed(((size_t)argc + 1) * sizeof *words);
  memcpy(words, argv, (size_t)argc * sizeof *words);
  int code = HZ_EXIT_USAGE;
  if (argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &request) == 0)
    code = compare(&request, words);
  free(words);
  return code;
}
