// What gnuplot draws, made fit to stand in a page beside others of its kind: no ids, no repeated
// definitions, colours and fonts left to the page's style sheet.
#ifndef HZ_TOOLS_BENCH_SVG_H
#define HZ_TOOLS_BENCH_SVG_H

#include <stdio.h>

#include "core/base.h"

// Colours that gnuplot is told to use, which become classes of the style sheet:
// #01KKII, KK a kind, II its index.
enum hz_paint {
  HZ_PAINT_GRID,
  HZ_PAINT_ERROR, // bars of least and greatest
  HZ_PAINT_BAR,   // class "bar cII"
  HZ_PAINT_LIGHT, // class "bar light cII"
};
#define HZ_PAINT_FORMAT "0x01%02x%02x"

// Text in the drawing of the form "@LETTER NUMBER@" is not gnuplot's to lay out as markup: it is
// replaced on the way out. Writes what stands for it, as HTML.
typedef void hz_svg_word(FILE *out, char letter, unsigned number, const void *context);

// Writes one drawing. `label` is what is read out instead of it. False: `drawing` is no SVG as
// gnuplot writes it; then nothing was written.
bool hz_svg_write(FILE *out, const char *drawing, const char *label, hz_svg_word *word,
                  const void *context);

#endif
