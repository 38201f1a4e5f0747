// The valid name that a misspelt one most likely meant.
#ifndef HZ_CONFIG_NEAREST_H
#define HZ_CONFIG_NEAREST_H

#include "core/base.h"

// Steps (insert, delete, replace, swap of neighbours) from one name to the other, letters of both
// cases being the same. Names count as far as their first 63 bytes.
unsigned hz_edit_distance(const char *from, const char *to);

// A search: `word` set, `best` NULL at first. Each offered name replaces a farther one.
struct hz_nearest {
  const char *word, *best;
  unsigned distance;
};
void hz_nearest_offer(struct hz_nearest *search, const char *name);

#endif
