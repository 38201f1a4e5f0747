// What a program says at its end: one line of key=value words on stdout, or a sentence on stderr
// that says why there is none.
#ifndef HZ_BENCH_REPORT_H
#define HZ_BENCH_REPORT_H

#include <stdarg.h>
#include <stdio.h>

#include "crew.h"
#include "proof.h"
#include "resident.h"

struct figures {
  uint64_t ops, begin_ns, end_ns;
  double mops; // 0: the operations over the time
  long peak_kib, rest_kib;
  struct witness witness;
};

// Adds up what the workers have stamped and seen; memory is not read yet.
static inline struct figures figures_of_crew(void) {
  struct figures f = {.begin_ns = UINT64_MAX};
  for (size_t i = 0; i < crew.count; i++) {
    const struct worker *w = crew_worker(i);
    f.ops += w->ops;
    if (w->begin_ns < f.begin_ns) f.begin_ns = w->begin_ns;
    if (w->end_ns > f.end_ns) f.end_ns = w->end_ns;
    witness_add(&f.witness, &w->witness);
  }
  return f;
}

// Reads rest_kib after the idle time, and peak_kib: to be called when everything was freed. The
// kernel's peak is less exact than what is resident now, and may fall short of it.
static inline void figures_rest(struct figures *f) {
  resident_idle(resident_rules.rest_ms);
  long rest_kib = resident_kib(), peak_kib = resident_peak_kib();
  f->rest_kib = resident_above(rest_kib, crew.before_kib);
  f->peak_kib = resident_above(peak_kib > rest_kib ? peak_kib : rest_kib, crew.before_kib);
}

static inline double figures_seconds(const struct figures *f) {
  return (double)(f->end_ns - f->begin_ns) / 1e9;
}

static inline void figures_judge(const struct figures *f) {
  const struct witness *w = &f->witness;
  if (w->damaged == 0) return;
  fail(EXIT_BROKEN,
       "%llu blocks were damaged between their write and their free; an example: at %p, offset "
       "%zu, expected %#llx, found %#llx",
       (unsigned long long)w->damaged, w->first_block, w->first_offset,
       (unsigned long long)w->first_expected, (unsigned long long)w->first_found);
}

static inline double figures_mops(const struct figures *f) {
  return f->mops != 0 ? f->mops : (double)f->ops / 1e6 / figures_seconds(f);
}

static inline double seconds_between(struct timeval begin, struct timeval end) {
  return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_usec - begin.tv_usec) / 1e6;
}

// The words that all programs print. Page faults (minor ones) and times of the CPU are the crew's,
// from the making of its threads to the end of the last: not the harness's, nor the idle time's.
static inline void figures_print(const struct figures *f) {
  const struct rusage *before = &crew.usage_before, *after = &crew.usage;
  printf("mops=%.3f seconds=%.3f ops=%llu peak_kib=%ld rest_kib=%ld", figures_mops(f),
         figures_seconds(f), (unsigned long long)f->ops, f->peak_kib, f->rest_kib);
  printf(" faults=%ld user_s=%.6f system_s=%.6f", after->ru_minflt - before->ru_minflt,
         seconds_between(before->ru_utime, after->ru_utime),
         seconds_between(before->ru_stime, after->ru_stime));
}

// Prints the line. special: printf's format of the program's own words, "" if it has none. Damaged
// blocks, or doubts about who served, end the process with a sentence in place of the line.
__attribute__((format(printf, 2, 3))) static inline void report(const struct figures *f,
                                                                const char *special, ...) {
  char words[1024];
  figures_judge(f);
  const char *served = proof_find();
  va_list arguments;
  va_start(arguments, special);
  vsnprintf(words, sizeof words, special, arguments);
  va_end(arguments);
  figures_print(f);
  printf("%s%s served=%s\n", words[0] != '\0' ? " " : "", words, served);
}

#endif
