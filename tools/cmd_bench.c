// `hakozuna bench`: the lanes under every allocator, or the results of an earlier run, as a table, a
// file of JSON, a page with pictures. The programs and scripts that run are those of a checkout.
#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/bench/changes.h"
#include "tools/bench/machine.h"
#include "tools/bench/measure.h"
#include "tools/bench/plan.h"
#include "tools/bench/result.h"
#include "tools/bench/variant.h"
#include "tools/bench/whole_file.h"
#include "tools/checkout.h"
#include "tools/command.h"
#include "tools/print.h"
#include "tools/text.h"

// Five rounds say a median to about a third of the range of their figures (sample.c). Shorter runs
// than half a second measure the start of the threads more than their work.
static const double usual_seconds = 0.5, quick_total_s = 260, quick_most_s = 0.25,
                    quick_least_s = 0.05;
enum { USUAL_ROUNDS = 5, QUICK_ROUNDS = 3 };

struct request {
  const char *profiles, *json, *html, *markdown, *from, *compare; // NULL: not given
  const char *peers[HZ_PEERS_MOST];
  size_t peer_count, rounds;
  double seconds;
  bool quick, list;
  char **lanes; // names, groups or parts of names; NULL-terminated
};

enum {
  KEY_PEER = 0x100,
  KEY_QUICK,
  KEY_JSON,
  KEY_HTML,
  KEY_MARKDOWN,
  KEY_FROM,
  KEY_COMPARE,
  KEY_LIST
};

static const struct argp_option options[] = {
    {"profiles", 'p', "LIST", 0,
     "Who takes part, separated by commas: profiles, glibc, jemalloc, tcmalloc, mimalloc, "
     "mimalloc3, snmalloc, tcmalloc-google; default: the default profile of each line, and all "
     "others",
     0},
    {"peer", KEY_PEER, "NAME=PATH", 0, "Any other library, too; may be given again", 0},
    {"rounds", 'n', "N", 0, "How often each lane is run under each allocator (5; quick: 3)", 0},
    {"seconds", 's', "S", 0, "How long a program works in one run (0.5)", 0},
    {"quick", KEY_QUICK, NULL, 0,
     "Shorter runs, so that all lanes together take less than five minutes; counts no instructions "
     "unless they are named",
     0},
    {"json", KEY_JSON, "FILE", 0, "Write the results there too, for --from and --compare", 0},
    {"html", KEY_HTML, "FILE", 0, "Write a page with a picture of each lane", 0},
    {"markdown", KEY_MARKDOWN, "FILE", 0,
     "Write the tables as Markdown: into a new FILE, or between the lines `<!-- generated: bench "
     "-->` and `<!-- end -->` of one that is there",
     0},
    {"from", KEY_FROM, "FILE", 0, "Measure nothing: take the results from a file of --json", 0},
    {"compare", KEY_COMPARE, "FILE", 0, "Say what has changed beyond noise since that --json", 0},
    {"list", KEY_LIST, NULL, 0, "List the lanes", 0},
    {0},
};

static const char doc[] =
    "Measures speed and memory of allocators, side by side.\v"
    "LANE is the name of a lane, of a group of lanes, or else a part of names; default: all lanes. "
    "`bench budgets` and `bench traits` run the scripts of those names instead: what the library "
    "promises to stay under, and what each profile changes.\n\n" HZ_EXIT_CODES_DOC;

static bool parse_number(const char *text, double least, double most, double *number) {
  char *end;
  *number = strtod(text, &end);
  return end != text && *end == '\0' && *number >= least && *number <= most;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct request *request = state->input;
  double number;
  switch (key) {
  case 'p':
    request->profiles = argument;
    return 0;
  case 'n':
    if (!parse_number(argument, 1, HZ_ROUNDS_MOST, &number) || number != (double)(size_t)number)
      argp_error(state, "--rounds is \"%s\"; expected 1 to %d", argument, HZ_ROUNDS_MOST);
    request->rounds = (size_t)number;
    return 0;
  case 's':
    if (!parse_number(argument, 0.01, 60, &request->seconds))
      argp_error(state, "--seconds is \"%s\"; expected 0.01 to 60", argument);
    return 0;
  case KEY_PEER:
    if (request->peer_count == HZ_PEERS_MOST)
      argp_error(state, "--peer: at most %d", HZ_PEERS_MOST);
    request->peers[request->peer_count++] = argument;
    return 0;
  case KEY_QUICK:
    request->quick = true;
    return 0;
  case KEY_JSON:
    request->json = argument;
    return 0;
  case KEY_HTML:
    request->html = argument;
    return 0;
  case KEY_MARKDOWN:
    request->markdown = argument;
    return 0;
  case KEY_FROM:
    request->from = argument;
    return 0;
  case KEY_COMPARE:
    request->compare = argument;
    return 0;
  case KEY_LIST:
    request->list = true;
    return 0;
  case ARGP_KEY_ARGS:
    request->lanes = state->argv + state->next;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

// ---- what is to be run

// A whole name of a lane or a group is no part of others.
static bool is_whole(const char *word) {
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(lanes[i].name, word) == 0 || strcmp(lanes[i].group, word) == 0) return true;
  return false;
}

static bool matches(const struct hz_lane *lane, const char *word) {
  if (is_whole(word)) return strcmp(lane->name, word) == 0 || strcmp(lane->group, word) == 0;
  return *word && strstr(lane->name, word);
}

static bool is_wanted(const struct hz_lane *lane, char *const *words) {
  for (size_t i = 0; words && words[i]; i++)
    if (matches(lane, words[i])) return true;
  return !words || !words[0];
}

// Each word must mean something: a typing error would otherwise be a shorter table.
static int choose_lanes(const struct request *request, struct hz_plan *plan) {
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; request->lanes && request->lanes[i]; i++) {
    bool known = false;
    for (size_t k = 0; k < count; k++) known |= matches(&lanes[k], request->lanes[i]);
    if (known) continue;
    hz_log("no lane and no group is called \"%s\"; `hakozuna bench --list` names them.",
           request->lanes[i]);
    return HZ_EXIT_USAGE;
  }
  plan->named = request->lanes != NULL;
  for (size_t i = 0; i < count; i++) {
    bool left_out = request->quick && !request->lanes && lanes[i].kind == HZ_LANE_INSTRUCTIONS;
    if (is_wanted(&lanes[i], request->lanes) && !left_out)
      plan->lanes[plan->lane_count++] = &lanes[i];
  }
  return HZ_EXIT_OK;
}

static int check_present(const struct hz_variants *variants) {
  for (size_t i = 0; i < variants->count; i++)
    if (!variants->rows[i].missing) return HZ_EXIT_OK;
  for (size_t i = 0; i < variants->count; i++) hz_log("%s", variants->rows[i].missing);
  hz_log("there is nobody to measure; name an allocator that is here with --profiles.");
  return HZ_EXIT_NO_LIBRARY;
}

static int choose_variants(const struct request *request, struct hz_variants *variants) {
  int failed = HZ_EXIT_OK;
  if (request->profiles) {
    failed = hz_variants_add_list(variants, request->profiles);
  } else {
    failed = hz_variants_add_others(variants);
    if (!failed) failed = hz_variants_add_lines(variants);
  }
  for (size_t i = 0; !failed && i < request->peer_count; i++)
    failed = hz_variants_add_peer(variants, request->peers[i]);
  return failed ? failed : check_present(variants);
}

// Quick: as long as fits, with a round less where many allocators leave too little for each run.
static void choose_length(const struct request *request, struct hz_plan *plan) {
  plan->quick = request->quick;
  plan->rounds = request->rounds ? request->rounds : request->quick ? QUICK_ROUNDS : USUAL_ROUNDS;
  plan->seconds = request->seconds ? request->seconds : usual_seconds;
  if (!request->quick || request->seconds) return;
  plan->seconds = hz_plan_seconds_for(plan, quick_total_s);
  if (!request->rounds && plan->seconds < quick_least_s) {
    plan->rounds--;
    plan->seconds = hz_plan_seconds_for(plan, quick_total_s);
  }
  if (plan->seconds < quick_least_s) plan->seconds = quick_least_s;
  if (plan->seconds > quick_most_s) plan->seconds = quick_most_s;
}

// The compiled programs: where the caller says, else where Bazel puts them.
static int locate_programs(const char *folder, char *bin) {
  const char *given = getenv("HAKOZUNA_BENCH_BIN");
  char probe[PATH_MAX + 32];
  hz_format(bin, PATH_MAX, "%s%s", given ? given : folder, given ? "" : "/bazel-bin/bench");
  hz_format(probe, sizeof probe, "%s/remote", bin);
  if (access(probe, X_OK) == 0) return HZ_EXIT_OK;
  hz_log("%s: %m; the programs of the lanes are built by `./hakozuna bench` or `bazel build "
         "//bench/...`, or found where HAKOZUNA_BENCH_BIN says.",
         probe);
  return HZ_EXIT_NO_FILE;
}

// ---- output

static bool print_markdown(FILE *out, const void *context) {
  fputc('\n', out);
  hz_result_print_markdown(context, out);
  fputc('\n', out);
  return true;
}

// A document that has a place for the tables keeps the rest of its text.
static const struct hz_place tables_place = {"<!-- generated: bench -->", "<!-- end -->"};

static int write_markdown(const struct hz_result *result, const char *path) {
  return hz_whole_file_fill(path, "the tables", &tables_place, print_markdown, result);
}

static int print_changes(const struct hz_result *result, const char *path) {
  int failed = HZ_EXIT_OK;
  struct hz_result *before = hz_result_read(path, &failed);
  if (!before) return failed;
  struct hz_changes changes = hz_changes_find(before, result);
  hz_changes_print(&changes, stdout);
  hz_changes_free(&changes);
  hz_result_free(before);
  return HZ_EXIT_OK;
}

// The files first: whoever reads the table may leave in the middle of it.
static int put_out(const struct request *request, const struct hz_result *result) {
  int failed = HZ_EXIT_OK, code;
  if (request->json && (code = hz_result_write(result, request->json)) != 0) failed = code;
  if (request->html && (code = hz_result_write_html(result, request->html)) != 0) failed = code;
  if (request->markdown && (code = write_markdown(result, request->markdown)) != 0) failed = code;
  hz_result_print_text(result, stdout);
  if (request->compare && (code = print_changes(result, request->compare)) != 0) failed = code;
  return failed;
}

static int list_lanes(void) {
  size_t count;
  const struct hz_lane *lanes = hz_lanes(&count);
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || strcmp(lanes[i].group, lanes[i - 1].group) != 0) printf("%s\n", lanes[i].group);
    printf("  %-24s %s\n    %s\n", lanes[i].name, lanes[i].about, lanes[i].command);
  }
  return HZ_EXIT_OK;
}

// ---- the command

// Names in the caller's folder, before the plan goes to the checkout's.
static int make_absolute(const char **path) {
  char folder[PATH_MAX];
  if (!*path || **path == '/') return HZ_EXIT_OK;
  if (!getcwd(folder, sizeof folder)) {
    hz_log("%s: the current folder has no name any more: %m.", *path);
    return HZ_EXIT_NO_FILE;
  }
  *path = hz_text("%s/%s", folder, *path);
  return HZ_EXIT_OK;
}

// An hour's figures must not meet a folder that does not exist.
static int check_files(struct request *request) {
  const char **written[] = {&request->json, &request->html, &request->markdown};
  int failed = make_absolute(&request->compare);
  for (size_t i = 0; !failed && i < hz_count_of(written); i++) {
    failed = make_absolute(written[i]);
    if (!failed && *written[i]) failed = hz_whole_file_check(*written[i]);
  }
  if (!failed && request->markdown)
    failed = hz_whole_file_check_place(request->markdown, &tables_place);
  if (failed || !request->compare) return failed;
  struct hz_result *before = hz_result_read(request->compare, &failed);
  hz_result_free(before);
  return failed;
}

// Measures and puts out. The result lives here alone.
static int measure(const struct request *request, const struct hz_plan *plan, char **words) {
  struct hz_result *result = hz_result_new();
  hz_machine_describe(result, words);
  hz_plan_prepare(plan, result);
  hz_catch_interrupts();
  bool good = hz_plan_carry_out(plan, result);
  int failed = put_out(request, result);
  hz_result_free(result);
  if (!failed && hz_interrupted()) failed = HZ_EXIT_SIGNAL + hz_interrupted();
  return failed ? failed : good ? HZ_EXIT_OK : HZ_EXIT_FOUND;
}

static int run_lanes(struct request *request, char **words) {
  char folder[PATH_MAX], bin[PATH_MAX];
  static struct hz_plan plan;
  int failed = check_files(request);
  if (!failed) failed = hz_checkout_find(folder);
  if (!failed) failed = locate_programs(folder, bin);
  if (!failed) failed = choose_lanes(request, &plan);
  if (!failed) failed = choose_variants(request, &plan.variants);
  if (failed) return failed;
  if (chdir(folder) != 0) {
    hz_log("%s: %m.", folder);
    return HZ_EXIT_NO_FILE;
  }
  plan.bin = bin;
  choose_length(request, &plan);
  failed = measure(request, &plan, words);
  hz_variants_free(&plan.variants);
  return failed;
}

// All that the file has: a part of it under the same heading would look like the whole.
static int show_earlier(struct request *request) {
  if (request->lanes || request->profiles || request->peer_count) {
    hz_log("--from shows all that %s holds; expected no lanes, no --profiles and no --peer beside "
           "it.",
           request->from);
    return HZ_EXIT_USAGE;
  }
  int failed = check_files(request);
  struct hz_result *result = failed ? NULL : hz_result_read(request->from, &failed);
  if (!result) return failed;
  failed = put_out(request, result);
  hz_result_free(result);
  return failed;
}

int hz_cmd_bench(int argc, char **argv) {
  static const char *const scripts[] = {"budgets", "traits"};
  for (size_t i = 0; i < hz_count_of(scripts); i++)
    if (argc > 1 && strcmp(argv[1], scripts[i]) == 0)
      return hz_checkout_run_script(scripts[i], argv + 1);
  struct request request = {.rounds = 0};
  char **words = hz_zeroed(((size_t)argc + 1) * sizeof *words);
  memcpy(words, argv, (size_t)argc * sizeof *words);
  struct argp parser = {options, parse, "[LANE...]", doc, NULL, NULL, NULL};
  int code = HZ_EXIT_USAGE;
  if (argp_parse(&parser, argc, argv, 0, NULL, &request) == 0)
    code = request.list   ? list_lanes()
           : request.from ? show_earlier(&request)
                          : run_lanes(&request, words);
  free(words);
  return code;
}
