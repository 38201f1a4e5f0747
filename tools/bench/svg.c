// One pass over gnuplot's text with a table of what becomes of which beginning. What is unknown is
// kept, so that a gnuplot that writes a little differently still makes a picture.
#include "tools/bench/svg.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/page.h"

struct cursor {
  const char *at;
  FILE *out;
  hz_svg_word *word;
  const void *context;
};

static bool starts(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

// Past the next `end`; at the end of the text where there is none.
static const char *past(const char *text, const char *end) {
  const char *found = strstr(text, end);
  return found ? found + strlen(end) : text + strlen(text);
}

static const char *skip_blanks(const char *text) {
  return text + strspn(text, " \t\r\n");
}

// What is the same in every drawing, and is left out: the style sheet says it.
static const char *const dropped[] = {
    " stroke=\"none\" fill=\"black\"", " font-family=\"sans-serif\"", " font-size=\"13.00\" ",
    " shape-rendering='crispEdges'",   " class=\"gridline\"",         " text-anchor=\"start\"",
};

static bool drop(struct cursor *cursor) {
  for (size_t i = 0; i < hz_count_of(dropped); i++) {
    if (!starts(cursor->at, dropped[i])) continue;
    cursor->at += strlen(dropped[i]);
    return true;
  }
  return false;
}

// Two drawings in one page must not name things alike.
static bool drop_names(struct cursor *cursor) {
  if (starts(cursor->at, " id=\"")) cursor->at = past(cursor->at + 5, "\"");
  else if (starts(cursor->at, "<title>")) cursor->at = past(cursor->at, "</title>");
  else return false;
  return true;
}

// gnuplot opens a group with all of its settings for each thing it draws, often for nothing, and
// draws tics of no length.
static bool shorten_group(struct cursor *cursor) {
  if (starts(cursor->at, "<path stroke='black'")) {
    cursor->at = past(cursor->at, "/>");
    return true;
  }
  if (!starts(cursor->at, "<g fill=\"none\" color=")) return false;
  const char *content = skip_blanks(past(cursor->at, ">"));
  bool empty = starts(content, "</g>");
  cursor->at = empty ? past(content, "</g>") : content;
  if (!empty) fputs("<g>", cursor->out);
  return true;
}

static void print_class(FILE *out, unsigned paint, unsigned index) {
  static const char *const others[] = {"grid", "error"};
  if (paint < hz_count_of(others)) fprintf(out, " class=\"%s\"", others[paint]);
  else fprintf(out, " class=\"bar%s c%u\"", paint == HZ_PAINT_LIGHT ? " light" : "", index);
}

static bool replace_paint(struct cursor *cursor) {
  static const char *const forms[] = {" fill = 'rgb(", " stroke='rgb("};
  for (size_t i = 0; i < hz_count_of(forms); i++) {
    unsigned red, paint, index;
    if (!starts(cursor->at, forms[i])) continue;
    const char *numbers = cursor->at + strlen(forms[i]);
    if (sscanf(numbers, "%u , %u , %u", &red, &paint, &index) != 3 || red != 1) return false;
    print_class(cursor->out, paint, index);
    cursor->at = past(numbers, "'");
    return true;
  }
  return false;
}

static bool replace_word(struct cursor *cursor) {
  char letter;
  unsigned number;
  int length = 0;
  if (*cursor->at != '@' || sscanf(cursor->at, "@%c%u@%n", &letter, &number, &length) != 2 ||
      !length)
    return false;
  cursor->word(cursor->out, letter, number, cursor->context);
  cursor->at += length;
  return true;
}

// Between elements nothing, between numbers one blank.
static bool shorten_blanks(struct cursor *cursor) {
  const char *content = skip_blanks(cursor->at);
  if (content < cursor->at + 1 || (*cursor->at == ' ' && content == cursor->at + 1)) return false;
  if (cursor->at[-1] != '>' && *content != '<') putc(' ', cursor->out);
  cursor->at = content;
  return true;
}

static void write_content(struct cursor *cursor, const char *end) {
  while (cursor->at < end) {
    if (drop(cursor) || drop_names(cursor) || shorten_group(cursor) || replace_paint(cursor) ||
        replace_word(cursor) || shorten_blanks(cursor))
      continue;
    putc(*cursor->at++, cursor->out);
  }
}

bool hz_svg_write(FILE *out, const char *drawing, const char *label, hz_svg_word *word,
                  const void *context) {
  unsigned width, height;
  const char *box = strstr(drawing, "viewBox=\""), *begin = strstr(drawing, "</defs>");
  const char *end = begin ? strstr(begin, "</svg>") : NULL;
  if (!box || !end || sscanf(box, "viewBox=\"0 0 %u %u\"", &width, &height) != 2) return false;
  fprintf(out, "<svg viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"", width, height);
  hz_page_text(out, label);
  fputs("\"><g>", out); // the group that gnuplot opens before its definitions
  struct cursor cursor = {begin + strlen("</defs>"), out, word, context};
  write_content(&cursor, end);
  fputs("</svg>\n", out);
  return true;
}
