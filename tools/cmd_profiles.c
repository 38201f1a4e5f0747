// `hakozuna profiles`: what can be chosen with --profile, from the catalogue of lines.
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/value.h"
#include "core/misuse.h"
#include "tools/command.h"
#include "tools/print.h"
#include "tools/settings.h"

struct request {
  const char *name; // NULL: all
  bool json, plain;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {"plain", 'p', NULL, 0,
     "Print one line per profile with tabs between name, line and summary, "
     "as in a pipe",
     0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct request *request = state->input;
  switch (key) {
  case 'j':
    request->json = true;
    return 0;
  case 'p':
    request->plain = true;
    return 0;
  case ARGP_KEY_ARG:
    if (request->name) argp_error(state, "one NAME at most, \"%s\" is a second one", argument);
    request->name = argument;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct hz_option *setting_row(const struct hz_setting *setting) {
  const struct hz_option *row = hz_option_find(setting->section, setting->key);
  HZ_CHECK(row != NULL); // a profile that sets an option nobody has is an error in the catalogue
  return row;
}

static void print_settings(const struct hz_profile *profile, const struct hz_style *style) {
  if (!profile->settings->section) {
    printf("settings  all options keep their defaults\n");
    return;
  }
  const char *label = "settings";
  for (const struct hz_setting *setting = profile->settings; setting->section; setting++) {
    const struct hz_option *row = setting_row(setting);
    char value[HZ_VALUE_BYTES], usual[HZ_VALUE_BYTES];
    hz_value_format(row, setting->value, value);
    hz_value_format(row, row->value, usual);
    const char *unit = row->type == HZ_OPTION_COUNT ? row->unit : ""; // other values say theirs
    printf("%-8s  %s.%s = %s%s%s%s%s  (default %s)\n", label, row->section, row->key, style->bold,
           value, unit[0] ? " " : "", unit, style->off, usual);
    label = "";
  }
}

static void print_one(const struct hz_found_profile *found) {
  const struct hz_style *style = hz_style(stdout);
  printf("%s%s%s  %s\n", style->bold, found->profile->name, style->off, found->profile->summary);
  printf("line      %s (%s): %s\n", found->line->name, found->line->title, found->line->summary);
  printf("trades    %s\n", found->profile->trades);
  print_settings(found->profile, style);
}

static void print_json_one(const struct hz_line_info *line, const struct hz_profile *profile) {
  fputs("{\"name\":", stdout);
  hz_json_string(stdout, profile->name);
  hz_json_member(stdout, "line", line->name);
  hz_json_member(stdout, "summary", profile->summary);
  hz_json_member(stdout, "trades", profile->trades);
  fputs(",\"settings\":{", stdout);
  for (const struct hz_setting *setting = profile->settings; setting->section; setting++) {
    char value[HZ_VALUE_BYTES];
    hz_value_format(setting_row(setting), setting->value, value);
    printf("%s\"%s.%s\":", setting == profile->settings ? "" : ",", setting->section, setting->key);
    hz_json_string(stdout, value);
  }
  fputs("}}", stdout);
}

static int name_width(void) {
  size_t width = strlen("PROFILE");
  for (size_t i = 0; i < hz_line_catalog_count; i++)
    for (size_t j = 0; j < hz_line_catalog[i]->profile_count; j++)
      width = hz_max(width, strlen(hz_line_catalog[i]->profiles[j].name));
  return (int)width;
}

static void print_row(const struct hz_line_info *line, const struct hz_profile *profile, bool plain,
                      int width) {
  const struct hz_style *style = hz_style(stdout);
  if (plain) printf("%s\t%s\t%s\n", profile->name, line->name, profile->summary);
  else
    printf("%s%-*s%s  %-4s  %s\n", style->bold, width, profile->name, style->off, line->name,
           profile->summary);
}

static void print_all(bool json, bool plain) {
  const struct hz_style *style = hz_style(stdout);
  int width = name_width();
  if (json) fputs("{\"schema\":1,\"profiles\":[", stdout);
  else if (!plain)
    printf("%s%-*s  %-4s  %s%s\n", style->dim, width, "PROFILE", "LINE", "SUMMARY", style->off);
  for (size_t i = 0; i < hz_line_catalog_count; i++) {
    const struct hz_line_info *line = hz_line_catalog[i];
    for (size_t j = 0; j < line->profile_count; j++) {
      if (json && i + j > 0) putchar(',');
      if (json) print_json_one(line, &line->profiles[j]);
      else print_row(line, &line->profiles[j], plain, width);
    }
  }
  if (json) fputs("]}\n", stdout);
  else if (!plain)
    printf("%s%s is the default. `hakozuna profiles NAME` says what a profile trades.%s\n",
           style->dim, hz_line_catalog[0]->profiles[0].name, style->off);
}

int hz_cmd_profiles(int argc, char **argv) {
  static const struct argp parser = {
      .options = options,
      .parser = parse,
      .args_doc = "[NAME]",
      .doc = "Lists the profiles. With NAME: what that one trades, and which options it sets."
             "\v" HZ_EXIT_CODES_DOC};
  struct request request = {.name = NULL};
  if (argp_parse(&parser, argc, argv, 0, NULL, &request)) return HZ_EXIT_USAGE;
  if (!request.name) {
    print_all(request.json, request.plain || !hz_is_terminal(stdout));
    return HZ_EXIT_OK;
  }
  struct hz_found_profile found;
  if (!hz_profile_find(request.name, &found)) return HZ_EXIT_CONFIG;
  if (request.json) print_json_one(found.line, found.profile);
  else if (request.plain) print_row(found.line, found.profile, true, 0);
  else print_one(&found);
  if (request.json) putchar('\n');
  return HZ_EXIT_OK;
}
