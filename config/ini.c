// INI text to settings: inih pulls line after line from our reader, which counts and checks them.
#include "config/ini.h"

#include <ini.h>
#include <string.h>

enum { SHOWN_BYTES = 80 }; // of a bad line

struct cursor {
  const struct hz_ini_handler *handler;
  const char *next, *end;
  unsigned line;
  const char *start; // the line that inih is working on
  size_t length;
  bool answer_due; // it should lead to an entry
};

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static void bad_line(const struct cursor *at, const char *what) {
  char text[SHOWN_BYTES + 1];
  size_t length = hz_min(at->length, SHOWN_BYTES);
  memcpy(text, at->start, length);
  text[length] = '\0';
  at->handler->bad_line(at->handler->context, at->line, text, what);
}

// Moves to the next line, without the blanks around it. False at the end of the text.
static bool take_line(struct cursor *at) {
  if (at->next >= at->end) return false;
  const char *newline = memchr(at->next, '\n', (size_t)(at->end - at->next));
  const char *stop = newline != NULL ? newline : at->end;
  at->start = at->next;
  at->next = stop + (newline != NULL);
  while (at->start < stop && is_blank(*at->start)) at->start++;
  while (stop > at->start && is_blank(stop[-1])) stop--;
  at->length = (size_t)(stop - at->start);
  at->line++;
  return true;
}

// Whether inih should see the line; sets whether it owes an entry for it.
static bool check_line(struct cursor *at, size_t room) {
  at->answer_due = false;
  if (at->length == 0 || *at->start == ';' || *at->start == '#') return false;
  if (at->length > room) {
    bad_line(at, "is too long a line, so it is skipped; shorten it");
    return false;
  }
  if (memchr(at->start, '\0', at->length) != NULL) {
    bad_line(at, "holds a zero byte, so the line is skipped; is this a text file?");
    return false;
  }
  if (*at->start != '[') return at->answer_due = true;
  const char *close = memchr(at->start, ']', at->length);
  if (close == NULL) {
    bad_line(at, "has no closing ], so the line is skipped; write [section]");
    return false;
  }
  if (close - at->start - 1 > HZ_INI_NAME_BYTES) {
    bad_line(at, "has too long a name: a section's name has at most 49 bytes");
  }
  return true;
}

static void settle(struct cursor *at) {
  if (at->answer_due) bad_line(at, "is neither [section] nor key = value, so it is skipped");
  at->answer_due = false;
}

// inih's reader, in the manner of fgets: one line into `to`, NULL at the end.
static char *read_line(char *to, int capacity, void *stream) {
  struct cursor *at = stream;
  settle(at);
  do {
    if (!take_line(at)) return NULL;
  } while (!check_line(at, (size_t)capacity - 2));
  memcpy(to, at->start, at->length);
  to[at->length] = '\n';
  to[at->length + 1] = '\0';
  return to;
}

static int take_entry(void *user, const char *section, const char *key, const char *value) {
  struct cursor *at = user;
  at->answer_due = false;
  at->handler->entry(at->handler->context, at->line, section, key, value);
  return 1;
}

void hz_ini_parse(const char *text, size_t bytes, const struct hz_ini_handler *handler) {
  struct cursor at = {.handler = handler, .next = text, .end = text + bytes};
  static const char byte_order_mark[] = "\xEF\xBB\xBF";
  if (bytes >= 3 && memcmp(text, byte_order_mark, 3) == 0) at.next += 3;
  int result = ini_parse_stream(read_line, &at, take_entry, &at);
  settle(&at);
  // -2: inih got no memory for its line buffer, so that nothing was read at all.
  if (result == -2) handler->bad_line(handler->context, 0, "", "could not be read: no memory");
}
