// The drawings of a result: per lane one of speed and one of memory, all by one gnuplot.
#ifndef HZ_TOOLS_BENCH_PICTURE_H
#define HZ_TOOLS_BENCH_PICTURE_H

#include "tools/bench/result.h"

// NULL: the lane has no such figure.
struct hz_pictures {
  char *text; // all of them
  const char *speed[HZ_LANES_MOST], *memory[HZ_LANES_MOST];
};

// Returns an exit code; after an error the sentence was printed and there is nothing to free.
int hz_pictures_draw(const struct hz_result *result, struct hz_pictures *pictures);
void hz_pictures_free(struct hz_pictures *pictures);

// Words in the drawings (hz_svg_word): "@p3@" the name of party 3; "@u0@" speed's unit, its
// direction included; "@f0@" failed; "@n0@" not measured.

#endif
