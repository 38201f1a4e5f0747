// `hakozuna config`: what a process would be configured with, what is wrong with it, and the
// reference of all options, made from the same rows that the library parses with.
#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/show.h"
#include "config/value.h"
#include "tools/command.h"
#include "tools/print.h"
#include "tools/settings.h"

// ---- config show --------------------------------------------------------------------------------

struct show_request {
  const char *profile, *config, *program;
  bool json;
};

static const struct argp_option show_options[] = {
    {"profile", 'p', "NAME", 0, "As if HAKOZUNA_PROFILE were NAME", 0},
    {"config", 'c', "FILE", 0, "As if HAKOZUNA_CONFIG were FILE", 0},
    {"program", 'P', "NAME", 0, "As the program NAME sees it: with [program:NAME]", 0},
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {0},
};

static error_t parse_show(int key, char *argument, struct argp_state *state) {
  struct show_request *request = state->input;
  switch (key) {
  case 'p':
    request->profile = argument;
    return 0;
  case 'c':
    request->config = argument;
    return 0;
  case 'P':
    request->program = argument;
    return 0;
  case 'j':
    request->json = true;
    return 0;
  case ARGP_KEY_ARG:
    argp_error(state, "\"%s\" is one argument too many", argument);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static void show_text(void *context, const char *name, const char *value, const char *unit,
                      const char *source) {
  const struct hz_style *style = context;
  char shown[HZ_VALUE_BYTES + 32];
  hz_format(shown, sizeof shown, "%s%s%s", value, unit[0] ? " " : "", unit);
  bool set = strcmp(source, "default") != 0;
  printf("%-26s = %s%-14s%s  %s(%s)%s\n", name, set ? style->bold : "", shown, style->off,
         style->dim, source, style->off);
}

struct json_list {
  bool started;
};

static void show_json(void *context, const char *name, const char *value, const char *unit,
                      const char *source) {
  struct json_list *list = context;
  fputs(list->started ? ",{\"name\":" : "{\"name\":", stdout);
  list->started = true;
  hz_json_string(stdout, name);
  hz_json_member(stdout, "value", value);
  hz_json_member(stdout, "unit", unit);
  hz_json_member(stdout, "source", source);
  putchar('}');
}

static void print_settings(const struct hz_config_input *input, const struct hz_config *config,
                           bool json) {
  if (json) {
    struct json_list list = {.started = false};
    fputs("{\"schema\":1,\"file\":", stdout);
    hz_json_string(stdout, config->file[0] ? config->file : NULL);
    printf(",\"problems\":%u,\"settings\":[", config->problems);
    hz_config_show(input, config, show_json, &list);
    fputs("]}\n", stdout);
    return;
  }
  const struct hz_style *style = hz_style(stdout);
  printf("%sfile: %s%s\n", style->dim, config->file[0] ? config->file : "none", style->off);
  hz_config_show(input, config, show_text, (void *)(uintptr_t)style);
}

static int cmd_show(int argc, char **argv) {
  static const struct argp parser = {
      .options = show_options,
      .parser = parse_show,
      .doc = "Shows the value of every option that a program started now would run with, and where "
             "each comes from."
             "\v" HZ_EXIT_CODES_DOC};
  struct show_request request = {.program = ""};
  if (argp_parse(&parser, argc, argv, 0, NULL, &request)) return HZ_EXIT_USAGE;
  char file[PATH_MAX];
  if (request.config) {
    int failed = hz_readable_file("--config", request.config, file);
    if (failed) return failed;
    setenv("HAKOZUNA_CONFIG", file, 1);
  }
  if (request.profile) setenv("HAKOZUNA_PROFILE", request.profile, 1);
  struct hz_config_input input = hz_settings_input();
  struct hz_config config;
  input.program = request.program;
  hz_config_load(&input, &config); // problems are told on stderr as the library tells them
  print_settings(&input, &config, request.json);
  return config.problems ? HZ_EXIT_CONFIG : HZ_EXIT_OK;
}

// ---- config check -------------------------------------------------------------------------------

static error_t parse_check(int key, char *argument, struct argp_state *state) {
  const char **file = state->input;
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if (*file) argp_error(state, "one FILE at most, \"%s\" is a second one", argument);
  *file = argument;
  return 0;
}

static void print_problem(void *context, const char *sentence) {
  (void)context;
  printf("%s\n", sentence);
}

static int cmd_check(int argc, char **argv) {
  static const struct argp parser = {
      .parser = parse_check,
      .args_doc = "[FILE]",
      .doc = "Checks FILE, the sections of all programs included. Without FILE: the file and the "
             "variables that a program started now would read. Prints every problem."
             "\v" HZ_EXIT_CODES_DOC};
  const char *given = NULL;
  if (argp_parse(&parser, argc, argv, 0, NULL, &given)) return HZ_EXIT_USAGE;
  struct hz_config_input input = hz_settings_input();
  char variable[PATH_MAX + 32] = "HAKOZUNA_CONFIG=";
  const char *const environment[] = {variable, NULL};
  if (given) {
    int failed = hz_readable_file("config check", given, variable + strlen(variable));
    if (failed) return failed;
    input.environment = environment;
  }
  input.check_programs = true;
  input.problem = print_problem;
  struct hz_config config;
  hz_config_load(&input, &config);
  const char *what = config.file[0] ? config.file : "no configuration file";
  if (config.problems == 0) printf("%s: no problems\n", what);
  else printf("%s: %u problem%s\n", what, config.problems, config.problems == 1 ? "" : "s");
  return config.problems ? HZ_EXIT_CONFIG : HZ_EXIT_OK;
}

// ---- config reference ---------------------------------------------------------------------------

// The values that a row accepts, for a cell of a Markdown table.
static void print_accepted(const struct hz_option *row) {
  char least[HZ_VALUE_BYTES], most[HZ_VALUE_BYTES];
  switch (row->type) {
  case HZ_OPTION_BOOL:
    fputs("`on`, `off`", stdout);
    return;
  case HZ_OPTION_ENUM:
    for (size_t i = 0; row->names[i]; i++) printf("%s`%s`", i ? ", " : "", row->names[i]);
    return;
  default:
    hz_value_format(row, row->min, least);
    hz_value_format(row, row->max, most);
    printf("%s to %s%s%s", least, most, row->type == HZ_OPTION_COUNT && row->unit[0] ? " " : "",
           row->type == HZ_OPTION_COUNT ? row->unit : "");
  }
}

static void print_row(const struct hz_option *row) {
  char usual[HZ_VALUE_BYTES];
  hz_value_format(row, row->value, usual);
  printf("| `%s.%s` | `%s` | ", row->section, row->key, usual);
  print_accepted(row);
  printf(" | %s |\n", row->help);
}

static error_t parse_nothing(int key, char *argument, struct argp_state *state) {
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  argp_error(state, "\"%s\" is one argument too many", argument);
  return 0;
}

static int cmd_reference(int argc, char **argv) {
  static const struct argp parser = {
      .parser = parse_nothing,
      .doc = "Prints the table of all options as Markdown: README.md holds it as it is printed "
             "here.\v" HZ_EXIT_CODES_DOC};
  if (argp_parse(&parser, argc, argv, 0, NULL, NULL)) return HZ_EXIT_USAGE;
  struct hz_config_input input = hz_settings_input();
  printf("| Option | Default | Values | Meaning |\n|---|---|---|---|\n");
  printf(
      "| `hakozuna.profile` | `%s` | a name of `hakozuna profiles` | Which allocator line serves "
      "the process, and how it is tuned. |\n",
      input.profiles[0].profile->name);
  for (size_t i = 0; i < input.group_count; i++)
    for (size_t j = 0; j < input.groups[i].count; j++) print_row(&input.groups[i].rows[j]);
  return HZ_EXIT_OK;
}

int hz_cmd_config(int argc, char **argv) {
  static const struct hz_command commands[] = {
      {"show", "the value and the source of every option", cmd_show},
      {"check", "find the problems of a configuration", cmd_check},
      {"reference", "the table of all options, as Markdown", cmd_reference},
  };
  return hz_command_dispatch(commands, hz_count_of(commands), "hakozuna config",
                             "Shows, checks and documents the configuration.", argc, argv);
}
