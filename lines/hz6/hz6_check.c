// Every invariant of lines/hz6/hz6_model.h, walked, part by part. Takes the locks one at a time;
// what other threads have in their hands is not looked at.
#include "lines/hz6/hz6_model.h"

const char *hz6_check(void) {
  const char *broken = hz_arena_check();
  if (broken == NULL) broken = hz_central_check(hz6_route_check);
  if (broken == NULL) broken = hz6_transfer_check();
  return broken;
}
