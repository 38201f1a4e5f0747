// Laying out a table of short texts. Widths are counted in characters of UTF-8; all that is printed
// here takes one column per character.
#include "tools/bench/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tools/print.h"
#include "tools/text.h"

enum { GAP = 2, INDENT = 2, COLUMNS_LEAST = 80, COLUMNS_UNSAID = 160 };

struct hz_grid hz_grid_new(size_t columns, size_t left, size_t rows) {
  struct hz_grid grid = {.columns = columns, .left = left, .most = columns * rows};
  grid.cells = hz_zeroed((grid.most + 1) * sizeof *grid.cells);
  return grid;
}

void hz_grid_add(struct hz_grid *grid, const char *style, const char *format, ...) {
  assert(grid->used < grid->most);
  struct hz_grid_cell *cell = &grid->cells[grid->used++];
  cell->style = style;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cell->text, sizeof cell->text, format, arguments);
  va_end(arguments);
}

static size_t characters(const char *text, size_t bytes) {
  size_t count = 0;
  for (size_t i = 0; i < bytes; i++) count += ((unsigned char)text[i] & 0xC0) != 0x80;
  return count;
}

// Where a cell is aligned: at its "±" or "/". NULL: it has none.
static const char *mark_of(const char *text) {
  const char *mark = strstr(text, "±");
  return mark ? mark : strstr(text, "/ ");
}

// before, after: of cells with a mark, the widest part on each side. whole: of those without.
struct width {
  size_t before, after, whole;
};

static size_t width_total(const struct width *width) {
  return hz_max(width->before + width->after, width->whole);
}

static void width_add(struct width *width, const char *text, bool marked) {
  const char *mark = marked ? mark_of(text) : NULL;
  size_t all = characters(text, strlen(text));
  if (!mark) {
    width->whole = hz_max(width->whole, all);
    return;
  }
  size_t before = characters(text, (size_t)(mark - text));
  width->before = hz_max(width->before, before);
  width->after = hz_max(width->after, all - before);
}

static struct width *widths_of(const struct hz_grid *grid) {
  struct width *widths = hz_zeroed(grid->columns * sizeof *widths);
  for (size_t i = 0; i < grid->used; i++) {
    size_t column = i % grid->columns;
    bool marked = column >= grid->left && i >= grid->columns; // not in headings
    width_add(&widths[column], grid->cells[i].text, marked);
  }
  return widths;
}

static void spaces(FILE *out, size_t count) {
  for (size_t i = 0; i < count; i++) putc(' ', out);
}

static void print_text(FILE *out, const struct hz_grid_cell *cell) {
  const char *off = cell->style[0] ? hz_style(out)->off : "";
  fprintf(out, "%s%s%s", cell->style, cell->text, off);
}

static void print_left(FILE *out, const struct hz_grid_cell *cell, const struct width *width) {
  print_text(out, cell);
  spaces(out, width_total(width) - characters(cell->text, strlen(cell->text)));
}

static void print_right(FILE *out, const struct hz_grid_cell *cell, const struct width *width,
                        bool heading, bool last) {
  const char *mark = heading ? NULL : mark_of(cell->text);
  size_t all = characters(cell->text, strlen(cell->text)), behind = 0;
  if (mark) behind = width->after - characters(mark, strlen(mark));
  spaces(out, width_total(width) - all - behind);
  print_text(out, cell);
  if (!last) spaces(out, behind);
}

static void print_row(const struct hz_grid *grid, const struct width *widths, FILE *out,
                      const struct hz_grid_cell *row, size_t from, size_t to) {
  spaces(out, INDENT);
  for (size_t i = 0; i < grid->left; i++) {
    if (i) spaces(out, GAP);
    print_left(out, &row[i], &widths[i]);
  }
  for (size_t i = from; i < to; i++) {
    spaces(out, GAP);
    print_right(out, &row[i], &widths[i], row == grid->cells, i + 1 == to);
  }
  putc('\n', out);
}

// The end of the part that begins with column `from`; at least one column.
static size_t part_end(const struct hz_grid *grid, const struct width *widths, size_t from,
                       size_t limit) {
  size_t used = INDENT;
  for (size_t i = 0; i < grid->left; i++) used += width_total(&widths[i]) + GAP;
  size_t to = from;
  while (to < grid->columns) {
    used += width_total(&widths[to]) + (to > from ? (size_t)GAP : 0);
    if (used > limit && to > from) break;
    to++;
  }
  return to;
}

void hz_grid_finish(struct hz_grid *grid, FILE *out) {
  struct width *widths = widths_of(grid);
  size_t from = grid->left, limit = hz_columns_of(out);
  do {
    size_t to = part_end(grid, widths, from, limit);
    if (from > grid->left) putc('\n', out);
    for (size_t i = 0; i + grid->columns <= grid->used; i += grid->columns)
      print_row(grid, widths, out, &grid->cells[i], from, to);
    from = to;
  } while (from < grid->columns);
  free(widths);
  free(grid->cells);
  grid->cells = NULL;
}

static size_t columns_said(FILE *out) {
  struct winsize size;
  int fd = fileno(out);
  if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char *columns = getenv("COLUMNS");
  long said = columns ? strtol(columns, NULL, 10) : 0;
  return said > 0 && said < 10000 ? (size_t)said : COLUMNS_UNSAID;
}

size_t hz_columns_of(FILE *out) {
  return hz_max(columns_said(out), COLUMNS_LEAST);
}
