// Carries out a plan: each run becomes a figure of its cell, or the reason why it did not.
#include "tools/bench/plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/bench/measure.h"
#include "tools/bench/progress.h"
#include "tools/command.h"
#include "tools/find.h"
#include "tools/print.h"
#include "tools/text.h"

enum { WORDS_MOST = 24, REST_MS = 10, QUICK_REST_MS = 2 };

// Numbers of pairs that are counted under callgrind: the differences leave the start out.
static const unsigned pairs[] = {100000, 300000, 500000};

// What runs besides a run's own seconds takes about that long, for plans of a given length.
static const double overhead_s = 0.02, command_s = 0.5, service_s = 0.9, instructions_s = 3.5;

// What the scripts of bench/real need to load a server evenly.
static const double service_least_s = 0.3;

// A run that takes that much longer than it should hangs. Services do a fixed number of requests.
static unsigned limit_s(const struct hz_plan *plan) {
  return 90 + 30 * (unsigned)(plan->seconds + 0.5);
}

// ---- a lane's command line

struct command {
  char *text, *program;                                   // the words' memory
  char *words[WORDS_MOST + 1], *settings[WORDS_MOST + 1]; // NULL-terminated
};

static unsigned rest_ms(const struct hz_plan *plan, const struct hz_lane *lane) {
  if (lane->rest_ms) return plan->quick ? lane->rest_ms / 3 : lane->rest_ms;
  return plan->quick ? QUICK_REST_MS : REST_MS;
}

static void split(struct command *command) {
  size_t words = 0, settings = 0;
  char *rest = NULL;
  for (char *word = strtok_r(command->text, " ", &rest); word && words < WORDS_MOST;
       word = strtok_r(NULL, " ", &rest)) {
    if (words == 0 && strchr(word, '=')) command->settings[settings++] = word;
    else command->words[words++] = word;
  }
}

// A server and its clients take longer to get going than a program of ours.
static double seconds_of(const struct hz_plan *plan, const struct hz_lane *lane) {
  bool service = lane->kind == HZ_LANE_SERVICE;
  return service && plan->seconds < service_least_s ? service_least_s : plan->seconds;
}

// The command as people would type it in the checkout, but for the allocator. To be freed.
// round: from 1. It is the seed of what is drawn at random, so that the spread of the rounds holds
// that of the input too; all allocators of a round do the same.
static char *command_line(const struct hz_plan *plan, const struct hz_lane *lane, size_t round) {
  const char *mark = strstr(lane->command, "%s");
  char *text = mark ? hz_text("%.*s%.3g%s", (int)(mark - lane->command), lane->command,
                              seconds_of(plan, lane), mark + 2)
                    : hz_text("%s", lane->command);
  if (lane->kind != HZ_LANE_PROGRAM) return text;
  char *whole = hz_text("%s rest_ms=%u seed=%zu", text, rest_ms(plan, lane), round);
  free(text);
  return whole;
}

static struct command command_of(const struct hz_plan *plan, const struct hz_lane *lane,
                                 size_t round) {
  struct command command = {.text = command_line(plan, lane, round)};
  split(&command);
  bool own = lane->kind == HZ_LANE_PROGRAM || lane->kind == HZ_LANE_INSTRUCTIONS;
  // Joined now, not before: the folder's name may have blanks.
  if (own) command.words[0] = command.program = hz_text("%s/%s", plan->bin, command.words[0]);
  return command;
}

static void free_command(struct command *command) {
  free(command->text);
  free(command->program);
}

// ---- who served

// What the program found out about itself. Returns why that is not the variant; NULL: it is.
static char *check_served(const struct hz_variant *variant, const char *out) {
  char served[1024] = "nobody that it would name";
  hz_find_word(out, "served", served, sizeof served);
  const char *file = strrchr(served, '/') ? strrchr(served, '/') + 1 : served;
  bool right = *variant->library
                   ? strcmp(served, variant->library) == 0
                   : strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libc-", 5) == 0;
  if (right) return NULL;
  return hz_text(
      "the program was served by %s, not by %s: the figure would be another allocator's.", served,
      *variant->library ? variant->library : "the C library");
}

static char *check_opened(const struct hz_variant *variant, const struct hz_measured *m) {
  if (!hz_variant_can_serve(variant))
    return hz_text("%s does not define malloc and free: the program was served by another "
                   "allocator.",
                   variant->library);
  if (!*variant->library || m->opened) return NULL;
  return hz_text("nobody opened %s while the program ran: it was served by another allocator.",
                 variant->library);
}

// ---- figures

static void append(struct hz_cell *cell, enum hz_figure figure, double value) {
  hz_sample_append(&cell->figures[figure], value);
}

// What the program says of itself counts; what it does not say is the kernel's count.
static void append_figure(struct hz_cell *cell, enum hz_figure figure, const char *out,
                          double otherwise) {
  double value;
  append(cell, figure,
         hz_find_figure(out, hz_figure_kinds[figure].key, &value) ? value : otherwise);
}

static char *take_figures(const struct hz_lane *lane, const struct hz_measured *m,
                          struct hz_cell *cell) {
  double speed = m->wall_s, rest;
  const char *key = lane->kind == HZ_LANE_PROGRAM ? "mops" : "speed";
  if (lane->kind != HZ_LANE_COMMAND && !hz_find_figure(m->out, key, &speed))
    return hz_text("the program printed no %s=; its output was: %s", key, m->out);
  append(cell, HZ_SPEED, speed);
  append_figure(cell, HZ_PEAK, m->out, m->peak_kib);
  static const enum hz_figure rests[] = {HZ_REST, HZ_FREED, HZ_EARLY};
  for (size_t i = 0; i < hz_count_of(rests); i++)
    if (hz_find_figure(m->out, hz_figure_kinds[rests[i]].key, &rest)) append(cell, rests[i], rest);
  append_figure(cell, HZ_FAULTS, m->out, m->faults);
  append_figure(cell, HZ_USER, m->out, m->user_s);
  append_figure(cell, HZ_SYSTEM, m->out, m->system_s);
  return NULL;
}

// ---- one run

struct turn {
  const struct hz_plan *plan;
  const struct hz_lane *lane;
  const struct hz_variant *variant;
  size_t round; // from 1
  struct hz_cell *cell;
  bool absent; // set by the run: what the lane measures is not on this machine
};

// Each of these returns why there is no figure; NULL: there is one, or the run was interrupted.

static char *run_timed(struct turn *turn) {
  const struct hz_lane *lane = turn->lane;
  struct command command = command_of(turn->plan, lane, turn->round);
  struct hz_measure_order order = {.variant = turn->variant,
                                   .argv = command.words,
                                   .settings = command.settings,
                                   .input = lane->input,
                                   .how = lane->kind == HZ_LANE_SERVICE ? HZ_TOLD : HZ_PRELOADED,
                                   .limit_s = limit_s(turn->plan)};
  struct hz_measured m;
  hz_measure(&order, &m);
  free_command(&command);
  turn->absent = (lane->kind == HZ_LANE_COMMAND && m.code == HZ_EXIT_NOT_FOUND) ||
                 (lane->kind == HZ_LANE_SERVICE && m.code == HZ_EXIT_NO_LIBRARY);
  if (m.failure || m.interrupted) return m.failure;
  char *wrong = lane->kind == HZ_LANE_COMMAND ? check_opened(turn->variant, &m)
                                              : check_served(turn->variant, m.out);
  return wrong ? wrong : take_figures(lane, &m, turn->cell);
}

// The number of instructions that callgrind counts in a whole run; < 0: see the failure.
static double count_instructions(const struct turn *turn, unsigned count, char **failure) {
  struct command command = command_of(turn->plan, turn->lane, turn->round);
  char *last = hz_text("pairs=%u", count);
  char *argv[WORDS_MOST + 5] = {"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"};
  size_t words = 3;
  for (size_t i = 0; command.words[i]; i++) argv[words++] = command.words[i];
  argv[words] = last;
  struct hz_measure_order order = {
      .variant = turn->variant, .argv = argv, .how = HZ_PRELOADED, .limit_s = limit_s(turn->plan)};
  struct hz_measured m;
  hz_measure(&order, &m);
  free(last);
  free_command(&command);
  *failure = m.failure;
  if (m.failure && m.code > HZ_EXIT_SIGNAL) { // callgrind has the last word in what it says
    hz_text_replace(failure, hz_text("under callgrind it was ended by signal %d (%s).",
                                     m.code - HZ_EXIT_SIGNAL, strsignal(m.code - HZ_EXIT_SIGNAL)));
  }
  if (m.failure || m.interrupted) return -1;
  *failure = check_served(turn->variant, m.out);
  const char *total = strstr(m.err, "Collected : ");
  if (!total && !*failure) *failure = hz_text("callgrind printed no total; it said: %s", m.err);
  return *failure ? -1 : strtod(total + strlen("Collected : "), NULL);
}

// The sample's two values are of two lengths, not of two rounds: they show how exact the count is.
static char *run_counted(struct turn *turn) {
  double before = 0;
  char valgrind[PATH_MAX];
  turn->absent = hz_program_find("valgrind", valgrind) != HZ_EXIT_OK;
  if (turn->absent)
    return hz_text("there is no valgrind to count the instructions; `apt-get install valgrind` "
                   "brings it.");
  for (size_t i = 0; i < hz_count_of(pairs); i++) {
    char *failure;
    double total = count_instructions(turn, pairs[i], &failure);
    if (total < 0) return failure;
    if (i) append(turn->cell, HZ_SPEED, (total - before) / (pairs[i] - pairs[i - 1]));
    before = total;
  }
  return NULL;
}

// ---- everything

void hz_plan_add_parties(const struct hz_variants *variants, struct hz_result *result) {
  for (size_t i = 0; i < variants->count; i++) {
    const struct hz_variant *variant = &variants->rows[i];
    struct hz_party *party = hz_result_add_party(result, variant->name);
    hz_text_replace(&party->library, hz_text("%s", variant->library));
    hz_text_replace(&party->about, hz_text("%s", variant->about));
    party->missing = variant->missing ? hz_text("%s", variant->missing) : NULL;
    party->ours = *variant->profile != '\0';
  }
}

void hz_plan_prepare(const struct hz_plan *plan, struct hz_result *result) {
  result->rounds = plan->rounds;
  hz_plan_add_parties(&plan->variants, result);
  for (size_t i = 0; i < plan->lane_count; i++) {
    const struct hz_lane *lane = plan->lanes[i];
    struct hz_lane_result *row = hz_result_add_lane(result, lane->name);
    hz_text_replace(&row->group, hz_text("%s", lane->group));
    hz_text_replace(&row->about, hz_text("%s", lane->about));
    hz_text_replace(&row->command, command_line(plan, lane, 1));
    hz_text_replace(&row->unit, hz_text("%s", lane->unit));
    row->more_is_better = lane->more_is_better;
  }
}

// The exact lanes need one round.
static bool is_due(const struct hz_lane *lane, size_t round) {
  return lane->kind != HZ_LANE_INSTRUCTIONS || round == 0;
}

// A lane that cannot be run on this machine is told once, and is no allocator's failure.
static void leave_out(const struct hz_plan *plan, struct hz_lane_result *lane, const char *why) {
  for (size_t i = 0; i < plan->variants.count; i++)
    if (!lane->cells[i].failure) lane->cells[i].failure = hz_text("%s", why);
}

// False: the run failed under an allocator, or cannot be had in a lane, that was asked for.
static bool take_turn(struct turn *turn, struct hz_lane_result *lane,
                      struct hz_progress *progress) {
  bool counted = turn->lane->kind == HZ_LANE_INSTRUCTIONS;
  turn->cell->failure = counted ? run_counted(turn) : run_timed(turn);
  if (!turn->cell->failure) return true;
  hz_progress_clear(progress);
  if (turn->absent) {
    hz_log("%s is left out: %s", lane->name, turn->cell->failure);
    leave_out(turn->plan, lane, turn->cell->failure);
    return !turn->plan->named;
  }
  hz_log("%s, %s, round %zu: %s", lane->name, turn->variant->name, turn->round,
         turn->cell->failure);
  return !turn->variant->asked;
}

// The allocators take turns in going first.
static bool run_lane(const struct hz_plan *plan, size_t index, size_t round,
                     struct hz_result *result, struct hz_progress *progress) {
  bool good = true;
  size_t count = plan->variants.count;
  struct hz_lane_result *lane = result->lanes[index];
  for (size_t place = 0; place < count && !hz_interrupted(); place++) {
    size_t i = (place + round) % count;
    struct turn turn = {.plan = plan,
                        .lane = plan->lanes[index],
                        .variant = &plan->variants.rows[i],
                        .round = round + 1,
                        .cell = &lane->cells[i]};
    if (turn.variant->missing) {
      good &= !turn.variant->asked;
      continue;
    }
    hz_progress_step(progress, turn.round, lane->name, turn.variant->name);
    if (!turn.cell->failure) good &= take_turn(&turn, lane, progress);
  }
  return good;
}

static size_t count_runs(const struct hz_plan *plan) {
  size_t present = 0, runs = 0;
  for (size_t i = 0; i < plan->variants.count; i++) present += !plan->variants.rows[i].missing;
  for (size_t i = 0; i < plan->lane_count; i++)
    for (size_t round = 0; round < plan->rounds; round++)
      if (is_due(plan->lanes[i], round)) runs += present;
  return runs;
}

bool hz_plan_carry_out(const struct hz_plan *plan, struct hz_result *result) {
  bool good = true;
  struct hz_progress progress;
  hz_progress_begin(&progress, count_runs(plan), plan->rounds);
  for (size_t round = 0; round < plan->rounds; round++)
    for (size_t i = 0; i < plan->lane_count && !hz_interrupted(); i++)
      if (is_due(plan->lanes[i], round)) good &= run_lane(plan, i, round, result, &progress);
  hz_progress_clear(&progress);
  result->seconds = hz_progress_seconds(&progress);
  result->interrupted = hz_interrupted();
  return good;
}

double hz_plan_seconds_for(const struct hz_plan *plan, double total_s) {
  size_t present = 0, programs = 0;
  double fixed_s = 0;
  for (size_t i = 0; i < plan->variants.count; i++) present += !plan->variants.rows[i].missing;
  for (size_t i = 0; i < plan->lane_count; i++) {
    enum hz_lane_kind kind = plan->lanes[i]->kind;
    if (kind == HZ_LANE_PROGRAM) programs++;
    if (kind == HZ_LANE_PROGRAM) fixed_s += overhead_s + rest_ms(plan, plan->lanes[i]) / 1e3;
    if (kind == HZ_LANE_COMMAND) fixed_s += command_s;
    if (kind == HZ_LANE_SERVICE) fixed_s += service_s;
    if (kind == HZ_LANE_INSTRUCTIONS) fixed_s += instructions_s / (double)plan->rounds;
  }
  double runs = (double)(present * plan->rounds);
  if (programs == 0 || runs == 0) return total_s;
  return (total_s / runs - fixed_s) / (double)programs;
}
