// Finds the subcommand that argv names, and prints the help of the level above it. glibc's argp
// parses and lays out the text.
#include "tools/command.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/nearest.h"
#include "core/log.h"
#include "core/version.h"
#include "tools/print.h"

struct level {
  const struct hz_command *commands;
  size_t count;
  const char *parent;
  const struct hz_command *chosen;
  int first; // the chosen command's place in argv
};

const struct hz_command *hz_command_find(const struct hz_command *commands, size_t count,
                                         const char *parent, const char *name) {
  struct hz_nearest nearest = {.word = name};
  for (size_t i = 0; i < count; i++) {
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
    if (commands[i].summary) hz_nearest_offer(&nearest, commands[i].name);
  }
  hz_log("there is no command \"%s %s\"; the nearest one is `%s %s`. `%s --help` lists all.",
         parent, name, parent, nearest.best, parent);
  return NULL;
}

static error_t parse_level(int key, char *argument, struct argp_state *state) {
  struct level *level = state->input;
  switch (key) {
  case ARGP_KEY_ARG:
    if (strcmp(argument, "help") == 0) argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    level->chosen = hz_command_find(level->commands, level->count, level->parent, argument);
    if (!level->chosen) exit(HZ_EXIT_USAGE);
    level->first = state->next - 1;
    state->next = state->argc; // the rest belongs to the command
    return 0;
  case ARGP_KEY_NO_ARGS:
    argp_state_help(state, stderr, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK);
    exit(HZ_EXIT_USAGE);
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

// argp asks for the text below the options: the list of commands, made from the table.
static char *list_commands(int key, const char *text, void *input) {
  const struct level *level = input;
  if (key != ARGP_KEY_HELP_POST_DOC || !level) return (char *)(uintptr_t)text;
  char *list = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&list, &bytes);
  if (!out) return (char *)(uintptr_t)text;
  fputs("Commands:\n", out);
  for (size_t i = 0; i < level->count; i++)
    if (level->commands[i].summary)
      fprintf(out, "  %-10s %s\n", level->commands[i].name, level->commands[i].summary);
  fprintf(out, "\n`%s COMMAND --help` says more of each.\n\n%s", level->parent, HZ_EXIT_CODES_DOC);
  fclose(out);
  return list;
}

static void print_version(FILE *out, struct argp_state *state) {
  (void)state;
  fprintf(out, "hakozuna %s (commit %s)\n", HZ_VERSION, hz_commit);
}

int hz_command_dispatch(const struct hz_command *commands, size_t count, const char *parent,
                        const char *doc, int argc, char **argv) {
  argp_program_version_hook = print_version;
  argp_err_exit_status = HZ_EXIT_USAGE;
  char text[1024];
  hz_format(text, sizeof text, "%s\v ", doc); // what follows \v is replaced by list_commands
  struct argp parser = {.parser = parse_level,
                        .args_doc = "COMMAND [ARG...]",
                        .doc = text,
                        .help_filter = list_commands};
  struct level level = {.commands = commands, .count = count, .parent = parent};
  char *name = argv[0];
  argv[0] = (char *)(uintptr_t)parent;
  error_t failed = argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &level);
  argv[0] = name;
  if (failed || !level.chosen) return HZ_EXIT_USAGE;
  char full_name[64];
  hz_format(full_name, sizeof full_name, "%s %s", parent, level.chosen->name);
  argv[level.first] = full_name;
  return level.chosen->run(argc - level.first, argv + level.first);
}
