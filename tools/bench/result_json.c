// Results as a file of JSON: written whole or not at all, read back with every field checked.
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "tools/bench/result.h"
#include "tools/bench/whole_file.h"
#include "tools/command.h"
#include "tools/text.h"

enum { FORMAT_VERSION = 1 };
static const char format_name[] = "hakozuna-bench";

// ---- writing

// A command line may hold bytes that are no UTF-8, which JSON cannot: they become question marks.
static json_t *json_of_text(const char *text) {
  json_t *string = json_string(text);
  if (string) return string;
  char *plain = hz_text("%s", text);
  for (char *c = plain; *c; c++)
    if ((unsigned char)*c >= 0x80) *c = '?';
  string = json_string(plain);
  free(plain);
  return string;
}

static json_t *text_or_null(const char *text) {
  return text ? json_of_text(text) : json_null();
}

// Samples are what counts; the summary is for those who read the file without us.
static json_t *json_of_sample(const struct hz_sample *sample) {
  struct hz_summary summary = hz_summarize(sample);
  json_t *samples = json_array();
  for (size_t i = 0; i < sample->count; i++)
    json_array_append_new(samples, json_real(sample->values[i]));
  json_t *spread = isfinite(summary.spread) ? json_real(summary.spread) : json_null();
  return json_pack("{s:f, s:f, s:f, s:o, s:o}", "median", summary.median, "least", summary.least,
                   "greatest", summary.greatest, "spread", spread, "samples", samples);
}

static json_t *json_of_cell(const struct hz_party *party, const struct hz_cell *cell) {
  json_t *object = json_object();
  json_object_set_new(object, "allocator", json_of_text(party->name));
  json_object_set_new(object, "failure", text_or_null(cell->failure));
  for (size_t f = 0; f < HZ_FIGURES; f++)
    if (cell->figures[f].count)
      json_object_set_new(object, hz_figure_kinds[f].key, json_of_sample(&cell->figures[f]));
  return object;
}

static json_t *json_of_lane(const struct hz_result *result, const struct hz_lane_result *lane) {
  json_t *cells = json_array();
  for (size_t i = 0; i < result->party_count; i++)
    if (!result->parties[i].missing)
      json_array_append_new(cells, json_of_cell(&result->parties[i], &lane->cells[i]));
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "name", json_of_text(lane->name), "group",
                   json_of_text(lane->group), "about", json_of_text(lane->about), "command",
                   json_of_text(lane->command), "unit", json_of_text(lane->unit), "more_is_better",
                   lane->more_is_better, "results", cells);
}

static json_t *json_of_party(const struct hz_party *party) {
  return json_pack("{s:o, s:o, s:o, s:b, s:o}", "name", json_of_text(party->name), "library",
                   json_of_text(party->library), "about", json_of_text(party->about), "ours",
                   party->ours, "missing", text_or_null(party->missing));
}

static json_t *json_of_result(const struct hz_result *r) {
  json_t *parties = json_array(), *lanes = json_array();
  for (size_t i = 0; i < r->party_count; i++)
    json_array_append_new(parties, json_of_party(&r->parties[i]));
  for (size_t i = 0; i < r->lane_count; i++)
    json_array_append_new(lanes, json_of_lane(r, r->lanes[i]));
  return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:I, s:b, s:o, s:o}",
                   "format", format_name, "format_version", FORMAT_VERSION, "version",
                   json_of_text(r->version), "commit", json_of_text(r->commit), "date",
                   json_of_text(r->date), "machine", json_of_text(r->machine), "kernel",
                   json_of_text(r->kernel), "libc", json_of_text(r->libc), "command",
                   json_of_text(r->command), "seconds", r->seconds, "rounds", (json_int_t)r->rounds,
                   "interrupted", r->interrupted, "allocators", parties, "lanes", lanes);
}

static bool print_json(FILE *out, const void *context) {
  json_t *root = json_of_result(context);
  bool printed = root && json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) == 0;
  fputc('\n', out);
  json_decref(root);
  if (!printed) hz_log("the results could not be turned into JSON: out of memory.");
  return printed;
}

int hz_result_write(const struct hz_result *result, const char *path) {
  return hz_whole_file_write(path, "the results", print_json, result);
}

// ---- reading

// Where the reader is, for its sentences; the first thing wrong ends the reading.
struct reader {
  const char *path;
  char *trouble; // what is wrong, without the file's name; NULL: nothing so far
};

static void expect(struct reader *in, bool holds, const char *where, const char *key,
                   const char *expected) {
  if (holds || in->trouble) return;
  in->trouble = hz_text("%s%s%s: expected %s", where, *where ? "." : "", key, expected);
}

static void read_text(struct reader *in, const json_t *object, const char *where, const char *key,
                      char **text) {
  const json_t *value = json_object_get(object, key);
  expect(in, json_is_string(value), where, key, "a string");
  free(*text);
  *text = hz_text("%s", json_is_string(value) ? json_string_value(value) : "");
}

static void read_text_or_null(struct reader *in, const json_t *object, const char *where,
                              const char *key, char **text) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_null(value)) read_text(in, object, where, key, text);
}

static bool read_bool(struct reader *in, const json_t *object, const char *where, const char *key) {
  const json_t *value = json_object_get(object, key);
  expect(in, json_is_boolean(value), where, key, "true or false");
  return json_is_true(value);
}

static const json_t *read_array(struct reader *in, const json_t *object, const char *where,
                                const char *key, size_t most) {
  const json_t *array = json_object_get(object, key);
  expect(in, json_is_array(array), where, key, "an array");
  if (json_array_size(array) <= most) return array;
  char *expected = hz_text("at most %zu elements", most);
  expect(in, false, where, key, expected);
  free(expected);
  return NULL;
}

static void read_sample(struct reader *in, const json_t *cell, const char *where, const char *key,
                        struct hz_sample *sample) {
  const json_t *object = json_object_get(cell, key);
  if (!object) return; // not measured
  char *inside = hz_text("%s.%s", where, key);
  const json_t *samples = read_array(in, object, inside, "samples", HZ_ROUNDS_MOST);
  for (size_t i = 0; i < json_array_size(samples); i++) {
    const json_t *value = json_array_get(samples, i);
    expect(in, json_is_number(value), inside, "samples", "numbers only");
    sample->values[sample->count++] = json_number_value(value);
  }
  free(inside);
}

static int find_party(const struct hz_result *result, const char *name) {
  for (size_t i = 0; i < result->party_count; i++)
    if (strcmp(result->parties[i].name, name) == 0) return (int)i;
  return -1;
}

static void read_cell(struct reader *in, const json_t *object, const char *where,
                      const struct hz_result *result, struct hz_lane_result *lane) {
  char *name = NULL;
  read_text(in, object, where, "allocator", &name);
  int party = find_party(result, name);
  expect(in, party >= 0, where, "allocator", "one of the names under allocators");
  if (party >= 0) {
    struct hz_cell *cell = &lane->cells[party];
    read_text_or_null(in, object, where, "failure", &cell->failure);
    for (size_t f = 0; f < HZ_FIGURES; f++) {
      cell->figures[f].count = 0;
      read_sample(in, object, where, hz_figure_kinds[f].key, &cell->figures[f]);
    }
  }
  free(name);
}

static void read_lane(struct reader *in, const json_t *object, const char *where,
                      struct hz_result *result) {
  struct hz_lane_result *lane = hz_result_add_lane(result, "");
  read_text(in, object, where, "name", &lane->name);
  read_text(in, object, where, "group", &lane->group);
  read_text(in, object, where, "about", &lane->about);
  read_text(in, object, where, "command", &lane->command);
  read_text(in, object, where, "unit", &lane->unit);
  lane->more_is_better = read_bool(in, object, where, "more_is_better");
  const json_t *cells = read_array(in, object, where, "results", HZ_ALLOCATORS_MOST);
  for (size_t i = 0; i < json_array_size(cells); i++) {
    char *inside = hz_text("%s.results[%zu]", where, i);
    read_cell(in, json_array_get(cells, i), inside, result, lane);
    free(inside);
  }
}

static void read_party(struct reader *in, const json_t *object, const char *where,
                       struct hz_result *result) {
  struct hz_party *party = hz_result_add_party(result, "");
  read_text(in, object, where, "name", &party->name);
  read_text(in, object, where, "library", &party->library);
  read_text(in, object, where, "about", &party->about);
  read_text_or_null(in, object, where, "missing", &party->missing);
  party->ours = read_bool(in, object, where, "ours");
}

static void read_header(struct reader *in, const json_t *root, struct hz_result *r) {
  struct {
    const char *key;
    char **text;
  } texts[] = {{"version", &r->version}, {"commit", &r->commit}, {"date", &r->date},
               {"machine", &r->machine}, {"kernel", &r->kernel}, {"libc", &r->libc},
               {"command", &r->command}};
  for (size_t i = 0; i < hz_count_of(texts); i++)
    read_text(in, root, "", texts[i].key, texts[i].text);
  r->interrupted = read_bool(in, root, "", "interrupted");
  const json_t *rounds = json_object_get(root, "rounds");
  expect(in, json_is_integer(rounds) && json_integer_value(rounds) >= 0, "", "rounds", "a number");
  r->rounds = (size_t)json_integer_value(rounds);
  const json_t *seconds = json_object_get(root, "seconds");
  expect(in, json_is_number(seconds), "", "seconds", "a number");
  r->seconds = json_number_value(seconds);
}

static void read_root(struct reader *in, const json_t *root, struct hz_result *result) {
  const char *format = json_string_value(json_object_get(root, "format"));
  expect(in, format && strcmp(format, format_name) == 0, "", "format",
         "\"hakozuna-bench\": a file that `hakozuna bench --json` or `compare --json` wrote");
  json_int_t version = json_integer_value(json_object_get(root, "format_version"));
  expect(in, version == FORMAT_VERSION, "", "format_version", "1, the only one known here");
  if (in->trouble) return;
  read_header(in, root, result);
  const json_t *parties = read_array(in, root, "", "allocators", HZ_ALLOCATORS_MOST);
  for (size_t i = 0; i < json_array_size(parties); i++) {
    char *where = hz_text("allocators[%zu]", i);
    read_party(in, json_array_get(parties, i), where, result);
    free(where);
  }
  const json_t *lanes = read_array(in, root, "", "lanes", HZ_LANES_MOST);
  for (size_t i = 0; i < json_array_size(lanes); i++) {
    char *where = hz_text("lanes[%zu]", i);
    read_lane(in, json_array_get(lanes, i), where, result);
    free(where);
  }
}

// Says why there is no JSON, and returns the exit code for it. error_number: errno of the attempt.
static int tell_no_json(const char *path, const json_error_t *error, int error_number) {
  static const char expected[] = "expected a file that `hakozuna bench --json` wrote";
  struct stat is;
  // A folder can be opened, and has nothing to read.
  bool folder = stat(path, &is) == 0 && S_ISDIR(is.st_mode);
  if (folder || json_error_code(error) == json_error_cannot_open_file) {
    hz_log("%s: %s; %s.", path, strerror(folder ? EISDIR : error_number), expected);
    return HZ_EXIT_NO_FILE;
  }
  hz_log("%s, line %d, column %d: this is no JSON: %s; %s.", path, error->line, error->column,
         error->text, expected);
  return HZ_EXIT_DATA;
}

struct hz_result *hz_result_read(const char *path, int *exit_code) {
  json_error_t error;
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    *exit_code = tell_no_json(path, &error, errno);
    return NULL;
  }
  struct reader in = {.path = path};
  struct hz_result *result = hz_result_new();
  read_root(&in, root, result);
  json_decref(root);
  if (!in.trouble) return result;
  hz_log("%s: %s.", path, in.trouble);
  free(in.trouble);
  hz_result_free(result);
  *exit_code = HZ_EXIT_DATA;
  return NULL;
}
