// What was looked at, what was found, and what to do about it: rows that `doctor` prints and that
// `run` warns from.
#ifndef HZ_TOOLS_FINDINGS_H
#define HZ_TOOLS_FINDINGS_H

#include <stdio.h>

#include "core/base.h"

enum hz_verdict {
  HZ_OK,
  HZ_NOTE,  // works; worth knowing
  HZ_WRONG, // the library will not do its work
};

enum { HZ_FINDINGS_MAX = 48, HZ_FINDING_BYTES = 512 };

struct hz_finding {
  enum hz_verdict verdict;
  const char *check;  // what was looked at: "overcommit"
  const char *advice; // what to do, a whole sentence; NULL where nothing is to be done
  char found[HZ_FINDING_BYTES];
};

struct hz_findings {
  size_t count;
  struct hz_finding rows[HZ_FINDINGS_MAX];
};

// Appends a row; `format` says what was found. `check` and `advice` must outlive the findings.
void hz_found(struct hz_findings *findings, enum hz_verdict verdict, const char *check,
              const char *advice, const char *format, ...) HZ_PRINTF(5, 6);

// True: at least one row is HZ_WRONG.
bool hz_findings_wrong(const struct hz_findings *findings);

// One row per line, the advice indented below it.
void hz_findings_print(const struct hz_findings *findings, FILE *out);

// {"schema":1,"wrong":N,"rows":[{"check":...,"status":...,"found":...,"advice":...},...]}
void hz_findings_print_json(const struct hz_findings *findings, FILE *out);

#endif
