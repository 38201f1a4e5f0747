// The list behind `doctor`: append and print. The checks themselves are in system.c and program.c.
#include "tools/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/misuse.h"
#include "tools/print.h"

static const char *const verdict_names[] = {"ok", "note", "wrong"};

void hz_found(struct hz_findings *findings, enum hz_verdict verdict, const char *check,
              const char *advice, const char *format, ...) {
  HZ_CHECK(findings->count < HZ_FINDINGS_MAX);
  struct hz_finding *row = &findings->rows[findings->count++];
  row->verdict = verdict;
  row->check = check;
  row->advice = advice;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(row->found, sizeof row->found, format, arguments);
  va_end(arguments);
}

static size_t count_of(const struct hz_findings *findings, enum hz_verdict verdict) {
  size_t n = 0;
  for (size_t i = 0; i < findings->count; i++) n += findings->rows[i].verdict == verdict;
  return n;
}

bool hz_findings_wrong(const struct hz_findings *findings) {
  return count_of(findings, HZ_WRONG) != 0;
}

static const char *verdict_colour(const struct hz_style *style, enum hz_verdict verdict) {
  if (verdict == HZ_WRONG) return style->bad;
  return verdict == HZ_NOTE ? style->note : style->good;
}

void hz_findings_print(const struct hz_findings *findings, FILE *out) {
  const struct hz_style *style = hz_style(out);
  int width = 0;
  for (size_t i = 0; i < findings->count; i++)
    width = (int)hz_max((size_t)width, strlen(findings->rows[i].check));
  for (size_t i = 0; i < findings->count; i++) {
    const struct hz_finding *row = &findings->rows[i];
    fprintf(out, "%s%-5s%s  %-*s  %s\n", verdict_colour(style, row->verdict),
            verdict_names[row->verdict], style->off, width, row->check, row->found);
    if (row->advice)
      fprintf(out, "%*s%s%s%s\n", width + 9, "", style->dim, row->advice, style->off);
  }
  size_t wrong = count_of(findings, HZ_WRONG), notes = count_of(findings, HZ_NOTE);
  fprintf(out, "%zu wrong, %zu worth knowing, %zu ok\n", wrong, notes,
          findings->count - wrong - notes);
}

void hz_findings_print_json(const struct hz_findings *findings, FILE *out) {
  fprintf(out, "{\"schema\":1,\"wrong\":%zu,\"rows\":[", count_of(findings, HZ_WRONG));
  for (size_t i = 0; i < findings->count; i++) {
    const struct hz_finding *row = &findings->rows[i];
    fputs(i ? ",{\"check\":" : "{\"check\":", out);
    hz_json_string(out, row->check);
    hz_json_member(out, "status", verdict_names[row->verdict]);
    hz_json_member(out, "found", row->found);
    hz_json_member(out, "advice", row->advice);
    putc('}', out);
  }
  fputs("]}\n", out);
}
