// A table in the terminal: columns as wide as their cells need, aligned at "±" and "/", and laid
// out in several parts, each with its first columns again, where the terminal is too narrow.
#ifndef HZ_TOOLS_BENCH_GRID_H
#define HZ_TOOLS_BENCH_GRID_H

#include <stdio.h>

#include "core/base.h"

enum { HZ_GRID_CELL_BYTES = 64 }; // a longer text is cut

struct hz_grid_cell {
  char text[HZ_GRID_CELL_BYTES];
  const char *style; // of hz_style
};

// left: so many columns are aligned to the left and repeated in each part.
struct hz_grid {
  size_t columns, left, used, most;
  struct hz_grid_cell *cells;
};

// rows: at most, the heading's row included. Ends the process where there is no memory.
struct hz_grid hz_grid_new(size_t columns, size_t left, size_t rows);

// Fills in the next cell, row by row; the first row is the heading.
void hz_grid_add(struct hz_grid *grid, const char *style, const char *format, ...) HZ_PRINTF(3, 4);

// Prints and frees.
void hz_grid_finish(struct hz_grid *grid, FILE *out);

// Columns of the terminal; COLUMNS where `out` is none; 160 where nothing is said. At least 80.
size_t hz_columns_of(FILE *out);

#endif
