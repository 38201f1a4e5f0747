// Every invariant of lines/hz3/hz3_model.h, walked. Takes the locks one at a time; what other
// threads have in their hands is not looked at.
#include "lines/hz3/hz3_model.h"

static const char *check_magazine(const struct hz_magazine *m, unsigned class_id) {
  if (m->count == 0 || m->count > m->capacity) return "hz3: a waiting magazine's count is off";
  if (m->capacity != hz3_limits[class_id].capacity) return "hz3: a magazine of another class";
  if (m->slots[0] != NULL) return "hz3: a magazine lost its lower sentinel";
  if (m->slots[m->capacity + 1] != HZ_MAGAZINE_FULL)
    return "hz3: a magazine lost its upper sentinel";
  for (uint32_t i = 1; i <= m->count; i++)
    if (hz3_tag_class(hz3_tag_of(m->slots[i])) != class_id || hz3_tag_of(m->slots[i]) == 0)
      return "hz3: the tag of a waiting block names another class";
  return NULL;
}

static const char *check_depot(const struct hz_depot *depot, unsigned class_id) {
  uint32_t count = 0;
  for (const struct hz_magazine *m = depot->full; m != NULL; m = m->next, count++) {
    const char *broken = check_magazine(m, class_id);
    if (broken != NULL) return broken;
  }
  if (count != depot->count) return "hz3: a depot miscounts its magazines";
  return depot->low > depot->count ? "hz3: a depot's low mark is above its count" : NULL;
}

static const char *check_shard(struct hz3_shard *shard) {
  const char *broken = NULL;
  hz_lock(&shard->lock);
  for (unsigned c = 0; c < HZ_CLASS_COUNT && broken == NULL; c++)
    broken = check_depot(&shard->depots[c], c);
  hz_unlock(&shard->lock);
  return broken;
}

const char *hz3_check(void) {
  const char *broken = hz_arena_check();
  if (broken == NULL) broken = hz_central_check(NULL);
  for (unsigned s = 0; s < hz3_options.shards && broken == NULL; s++)
    broken = check_shard(&hz3_shards[s]);
  return broken;
}
