// Builds and takes apart the table of results; the files of JSON are result_json.c's.
#include "tools/bench/result.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "tools/command.h"
#include "tools/text.h"

const struct hz_figure_kind hz_figure_kinds[HZ_FIGURES] = {
    [HZ_SPEED] = {"speed", "speed", "speed", ""},
    [HZ_PEAK] = {"peak_kib", "peak RSS", "peak", "KiB"},
    [HZ_REST] = {"rest_kib", "RSS at rest", "rest", "KiB"},
    [HZ_FREED] = {"rest0_kib", "RSS when freed", "freed", "KiB"},
    [HZ_EARLY] = {"rest1_kib", "RSS soon after", "soon", "KiB"},
    [HZ_FAULTS] = {"faults", "minor faults", "faults", ""},
    [HZ_USER] = {"user_s", "user time", "user", "s"},
    [HZ_SYSTEM] = {"system_s", "system time", "system", "s"},
};

struct hz_result *hz_result_new(void) {
  struct hz_result *result = hz_zeroed(sizeof *result);
  char **texts[] = {&result->version, &result->commit, &result->date,   &result->machine,
                    &result->kernel,  &result->libc,   &result->command};
  for (size_t i = 0; i < hz_count_of(texts); i++) *texts[i] = hz_text("%s", "");
  return result;
}

static void free_lane(struct hz_lane_result *lane) {
  for (size_t i = 0; i < HZ_ALLOCATORS_MOST; i++) free(lane->cells[i].failure);
  free(lane->name);
  free(lane->group);
  free(lane->about);
  free(lane->command);
  free(lane->unit);
  free(lane);
}

void hz_result_free(struct hz_result *result) {
  if (!result) return;
  for (size_t i = 0; i < result->lane_count; i++) free_lane(result->lanes[i]);
  for (size_t i = 0; i < result->party_count; i++) {
    free(result->parties[i].name);
    free(result->parties[i].library);
    free(result->parties[i].about);
    free(result->parties[i].missing);
  }
  free(result->version);
  free(result->commit);
  free(result->date);
  free(result->machine);
  free(result->kernel);
  free(result->libc);
  free(result->command);
  free(result);
}

struct hz_party *hz_result_add_party(struct hz_result *result, const char *name) {
  if (result->party_count == HZ_ALLOCATORS_MOST) {
    hz_log("%s is one allocator too many for a table; at most %d fit.", name, HZ_ALLOCATORS_MOST);
    exit(HZ_EXIT_USAGE);
  }
  struct hz_party *party = &result->parties[result->party_count++];
  *party = (struct hz_party){
      .name = hz_text("%s", name), .library = hz_text("%s", ""), .about = hz_text("%s", "")};
  return party;
}

struct hz_lane_result *hz_result_add_lane(struct hz_result *result, const char *name) {
  if (result->lane_count == HZ_LANES_MOST) {
    hz_log("%s is one lane too many for a table; at most %d fit.", name, HZ_LANES_MOST);
    exit(HZ_EXIT_USAGE);
  }
  struct hz_lane_result *lane = hz_zeroed(sizeof *lane);
  lane->name = hz_text("%s", name);
  lane->group = hz_text("%s", "");
  lane->about = hz_text("%s", "");
  lane->command = hz_text("%s", "");
  lane->unit = hz_text("%s", "");
  return result->lanes[result->lane_count++] = lane;
}

bool hz_lane_is_exact(const struct hz_lane_result *lane) {
  return strcmp(lane->unit, "instructions") == 0;
}

const struct hz_lane_result *hz_result_lane(const struct hz_result *result, const char *name) {
  for (size_t i = 0; i < result->lane_count; i++)
    if (strcmp(result->lanes[i]->name, name) == 0) return result->lanes[i];
  return NULL;
}
