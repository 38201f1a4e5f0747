// The valid name that a misspelt one most likely meant: least edit distance, first come on a tie.
#include "config/nearest.h"

#include <ctype.h>
#include <string.h>

enum { NAME_MAX_BYTES = 63 };

static bool same(char a, char b) {
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static unsigned least(unsigned a, unsigned b) {
  return a < b ? a : b;
}

// Three rows of the classic table: row[0] is the current one, row[1] and row[2] those before.
unsigned hz_edit_distance(const char *from, const char *to) {
  size_t from_length = strnlen(from, NAME_MAX_BYTES), to_length = strnlen(to, NAME_MAX_BYTES);
  unsigned rows[3][NAME_MAX_BYTES + 1] = {{0}};
  unsigned *row[3] = {rows[0], rows[1], rows[2]};
  for (size_t j = 0; j <= to_length; j++) row[0][j] = (unsigned)j;

  for (size_t i = 1; i <= from_length; i++) {
    unsigned *oldest = row[2];
    row[2] = row[1];
    row[1] = row[0];
    row[0] = oldest;
    row[0][0] = (unsigned)i;
    for (size_t j = 1; j <= to_length; j++) {
      unsigned replaced = row[1][j - 1] + !same(from[i - 1], to[j - 1]);
      row[0][j] = least(replaced, least(row[1][j], row[0][j - 1]) + 1);
      bool swapped = i > 1 && j > 1 && same(from[i - 1], to[j - 2]) && same(from[i - 2], to[j - 1]);
      if (swapped) row[0][j] = least(row[0][j], row[2][j - 2] + 1);
    }
  }
  return row[0][to_length];
}

void hz_nearest_offer(struct hz_nearest *search, const char *name) {
  unsigned distance = hz_edit_distance(search->word, name);
  if (search->best == NULL || distance < search->distance) {
    search->best = name;
    search->distance = distance;
  }
}
