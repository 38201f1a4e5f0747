// The report: the same facts in the same order, once as text and once as JSON.
//
// Each section has two functions side by side, so that a fact that is added to one form is missed
// in the other at a glance.
#include "stats/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/options.h"
#include "config/value.h"
#include "core/counter.h"
#include "core/log.h"
#include "core/version.h"
#include "stats/destination.h"
#include "stats/writer.h"

// ---- Header -------------------------------------------------------------------------------------

static void text_fact(struct hz_writer *w, const char *label, const char *value) {
  hz_writer_format(w, "  %-10s", label);
  hz_writer_plain(w, value);
}

static void text_header(struct hz_writer *w, const struct hz_report *r) {
  const struct hz_config *config = r->config;
  hz_writer_format(w, "hakozuna %s, commit %s: report (%s)\n", HZ_VERSION, hz_commit, r->reason);
  text_fact(w, "program", r->program);
  hz_writer_format(w, ", process %" PRIu64 ", %" PRIu64 ".%03u s\n", r->pid,
                   r->wall_ns / 1000000000u, (unsigned)(r->wall_ns / 1000000u % 1000u));
  text_fact(w, "profile", config->profile->profile->name);
  hz_writer_format(w, " of line %s (", config->profile->line);
  hz_writer_plain(w, config->profile_source);
  hz_writer_put(w, ")\n", 2);
  text_fact(w, "file", config->file[0] != '\0' ? config->file : "none");
  hz_writer_put(w, "\n", 1);
  text_fact(w, "goes to", config->stats_path[0] != '\0' ? config->stats_path : "standard error");
  hz_writer_put(w, "\n", 1);
}

static void json_string(struct hz_writer *w, const char *name, const char *value) {
  hz_writer_format(w, "\"%s\":", name);
  hz_writer_json(w, value);
  hz_writer_put(w, ",", 1);
}

static void json_header(struct hz_writer *w, const struct hz_report *r) {
  const struct hz_config *config = r->config;
  hz_writer_format(w, "\"schema\":%d,", HZ_REPORT_SCHEMA);
  json_string(w, "version", HZ_VERSION);
  json_string(w, "commit", hz_commit);
  json_string(w, "reason", r->reason);
  json_string(w, "program", r->program);
  hz_writer_format(w, "\"pid\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",", r->pid, r->wall_ns);
  json_string(w, "profile", config->profile->profile->name);
  json_string(w, "line", config->profile->line);
  json_string(w, "profile_source", config->profile_source);
  json_string(w, "file", config->file);
  json_string(w, "stats_path", config->stats_path);
}

// ---- Options ------------------------------------------------------------------------------------

static void text_option(struct hz_writer *w, const struct hz_option *row) {
  char value[HZ_VALUE_BYTES];
  hz_value_format(row, *row->dest, value);
  const char *unit = row->type == HZ_OPTION_COUNT ? row->unit : "";
  size_t name_bytes = strlen(row->section) + 1 + strlen(row->key);
  int padding = name_bytes < 26 ? (int)(26 - name_bytes) : 1;
  hz_writer_format(w, "  %s.%s%*s%12s %-8s ", row->section, row->key, padding, "", value, unit);
  hz_writer_plain(w, hz_config_source(row));
  hz_writer_put(w, "\n", 1);
}

static void json_option(struct hz_writer *w, const struct hz_option *row) {
  hz_writer_format(w, "\"%s.%s\":{\"value\":", row->section, row->key);
  if (row->type == HZ_OPTION_ENUM) {
    hz_writer_json(w, row->names[*row->dest]);
  } else if (row->type == HZ_OPTION_BOOL) {
    hz_writer_format(w, "%s", *row->dest != 0 ? "true" : "false");
  } else {
    hz_writer_format(w, "%" PRIu64, *row->dest);
  }
  hz_writer_format(w, ",\"unit\":\"%s\",\"source\":", row->unit);
  hz_writer_json(w, hz_config_source(row));
  hz_writer_put(w, "}", 1);
}

static void text_options(struct hz_writer *w, const struct hz_report *r) {
  hz_writer_format(w, "options\n");
  for (size_t g = 0; g < r->group_count; g++) {
    for (size_t i = 0; i < r->groups[g].count; i++) text_option(w, &r->groups[g].rows[i]);
  }
}

static void json_options(struct hz_writer *w, const struct hz_report *r) {
  const char *before = "";
  hz_writer_format(w, "\"options\":{");
  for (size_t g = 0; g < r->group_count; g++) {
    for (size_t i = 0; i < r->groups[g].count; i++) {
      hz_writer_put(w, before, strlen(before));
      json_option(w, &r->groups[g].rows[i]);
      before = ",";
    }
  }
  hz_writer_format(w, "},");
}

// ---- Gauges and counters: values with a name, a unit and a meaning -----------------------------

// "12.5 MiB" beside numbers of bytes that nobody reads at a glance.
static void text_size(struct hz_writer *w, uint64_t bytes) {
  static const struct {
    const char *name;
    size_t bytes;
  } steps[] = {{"TiB", HZ_TIB}, {"GiB", HZ_GIB}, {"MiB", HZ_MIB}, {"KiB", HZ_KIB}};
  for (size_t i = 0; i < hz_count_of(steps); i++) {
    if (bytes < steps[i].bytes) continue;
    uint64_t tenths = bytes % steps[i].bytes * 10 / steps[i].bytes;
    hz_writer_format(w, "%" PRIu64 ".%" PRIu64 " %s: ", bytes / steps[i].bytes, tenths,
                     steps[i].name);
    return;
  }
}

static void text_value(struct hz_writer *w, const char *name, uint64_t value, const char *unit,
                       const char *meaning) {
  hz_writer_format(w, "  %-20s%18" PRIu64 " %-8s ", name, value, unit);
  if (strcmp(unit, "bytes") == 0) text_size(w, value);
  hz_writer_format(w, "%s\n", meaning);
}

static void json_value(struct hz_writer *w, const char *name, uint64_t value, const char *unit,
                       const char *before) {
  hz_writer_format(w, "%s\"%s\":{\"value\":%" PRIu64 ",\"unit\":\"%s\"}", before, name, value,
                   unit);
}

static void text_values(struct hz_writer *w, const struct hz_report *r) {
  hz_writer_format(w, "now\n");
  for (size_t i = 0; i < r->gauge_count; i++) {
    const struct hz_gauge *g = &r->gauges[i];
    text_value(w, g->name, g->value, g->unit, g->meaning);
  }
  hz_writer_format(w, "since the start\n");
  for (unsigned i = 0; i < HZ_COUNTER_COUNT; i++) {
    const struct hz_counter_row *row = &hz_counter_rows[i];
    text_value(w, row->name, hz_counter_read((enum hz_counter)i), row->unit, row->meaning);
  }
}

static void json_values(struct hz_writer *w, const struct hz_report *r) {
  hz_writer_format(w, "\"gauges\":{");
  for (size_t i = 0; i < r->gauge_count; i++) {
    json_value(w, r->gauges[i].name, r->gauges[i].value, r->gauges[i].unit, i == 0 ? "" : ",");
  }
  hz_writer_format(w, "},\"counters\":{");
  for (unsigned i = 0; i < HZ_COUNTER_COUNT; i++) {
    json_value(w, hz_counter_rows[i].name, hz_counter_read((enum hz_counter)i),
               hz_counter_rows[i].unit, i == 0 ? "" : ",");
  }
  hz_writer_format(w, "}");
}

// ---- Exact calls --------------------------------------------------------------------------------

static bool is_idle(const struct hz_exact_class *c) {
  return c->allocs == 0 && c->frees == 0;
}

static struct hz_exact_class exact_total(const struct hz_report *r) {
  struct hz_exact_class total = {0};
  for (size_t i = 0; i < r->exact_count; i++) {
    total.allocs += r->exact[i].allocs;
    total.frees += r->exact[i].frees;
    total.remote_frees += r->exact[i].remote_frees;
  }
  return total;
}

// Share of remote frees in tenths of a percent.
static unsigned remote_share(const struct hz_exact_class *c) {
  return c->frees == 0 ? 0 : (unsigned)((double)c->remote_frees * 1000.0 / (double)c->frees + 0.5);
}

static void text_exact_row(struct hz_writer *w, const char *name, const struct hz_exact_class *c) {
  unsigned share = remote_share(c);
  hz_writer_format(w, "  %-20s%18" PRIu64 "%18" PRIu64 "%18" PRIu64 "%8u.%u %%\n", name, c->allocs,
                   c->frees, c->remote_frees, share / 10, share % 10);
}

static void text_exact(struct hz_writer *w, const struct hz_report *r) {
  hz_writer_format(w, "%-22s%18s%18s%18s%12s\n", "calls by block size", "allocated", "freed",
                   "by other threads", "share");
  for (size_t i = 0; i < r->exact_count; i++) {
    if (is_idle(&r->exact[i])) continue;
    char name[32] = "larger";
    if (r->exact[i].bytes != UINT64_MAX) {
      snprintf(name, sizeof name, "%" PRIu64, r->exact[i].bytes);
    }
    text_exact_row(w, name, &r->exact[i]);
  }
  struct hz_exact_class total = exact_total(r);
  text_exact_row(w, "all", &total);
}

static void json_exact_counts(struct hz_writer *w, const struct hz_exact_class *c) {
  hz_writer_format(w, "\"allocs\":%" PRIu64 ",\"frees\":%" PRIu64 ",\"remote_frees\":%" PRIu64 "}",
                   c->allocs, c->frees, c->remote_frees);
}

static void json_exact(struct hz_writer *w, const struct hz_report *r) {
  struct hz_exact_class total = exact_total(r);
  hz_writer_format(w, ",\"exact\":{\"total\":{");
  json_exact_counts(w, &total);
  hz_writer_format(w, ",\"classes\":[");
  for (size_t i = 0; i < r->exact_count; i++) {
    const struct hz_exact_class *c = &r->exact[i];
    hz_writer_format(w, "%s{\"bytes\":", i == 0 ? "" : ",");
    if (c->bytes == UINT64_MAX) {
      hz_writer_format(w, "null,");
    } else {
      hz_writer_format(w, "%" PRIu64 ",", c->bytes);
    }
    json_exact_counts(w, c);
  }
  hz_writer_format(w, "]}");
}

// ---- The whole ----------------------------------------------------------------------------------

static void write_text(struct hz_writer *w, const struct hz_report *r) {
  text_header(w, r);
  text_options(w, r);
  text_values(w, r);
  if (r->exact != NULL) text_exact(w, r);
}

static void write_json(struct hz_writer *w, const struct hz_report *r) {
  hz_writer_put(w, "{", 1);
  json_header(w, r);
  json_options(w, r);
  json_values(w, r);
  if (r->exact != NULL) json_exact(w, r);
  hz_writer_put(w, "}\n", 2);
}

// The big buffer holds a whole report. It is never waited for: a second report at the same moment,
// or a child forked during one, makes do with a small buffer and several writes.
bool hz_report_write(const struct hz_report *report, enum hz_report_format format, int fd) {
  static char whole[32 * HZ_KIB];
  static atomic_flag whole_taken = ATOMIC_FLAG_INIT;
  char part[HZ_KIB];
  bool has_whole = !atomic_flag_test_and_set_explicit(&whole_taken, memory_order_acquire);
  struct hz_writer writer = {.buffer = has_whole ? whole : part,
                             .capacity = has_whole ? sizeof whole : sizeof part,
                             .fd = fd};
  if (format == HZ_REPORT_JSON) {
    write_json(&writer, report);
  } else {
    write_text(&writer, report);
  }
  bool written = hz_writer_flush(&writer);
  if (has_whole) atomic_flag_clear_explicit(&whole_taken, memory_order_release);
  return written;
}

bool hz_report_send(const struct hz_report *report, enum hz_report_format format,
                    const char *path) {
  int fd = hz_destination_open(path, report->pid, report->program);
  bool written = hz_report_write(report, format, fd);
  hz_destination_close(fd);
  return written;
}
