// Gathering the state of the heap: see dispatch/summary.h. Also the rules for malloc_trim, mallopt
// and the functions that tell of the heap.
#include "dispatch/summary.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "config/options.h"
#include "core/counter.h"
#include "core/tick.h"
#include "core/version.h"
#include "dispatch/exact.h"
#include "dispatch/rules.h"
#include "dispatch/start.h"
#include "stats/report.h"

// Zeros in a process in which the library has stepped aside.
static struct hz_gauges read_gauges(void) {
  struct hz_gauges gauges = {0};
  if (hz_process.line != NULL) hz_process.line->gauges(&gauges);
  return gauges;
}

// ---- The report ---------------------------------------------------------------------------------

#define HZ_GAUGE_ROWS(X)                                                                           \
  X(reserved_bytes, "bytes", "address space held")                                                 \
  X(committed_bytes, "bytes", "of it, usable without another system call")                         \
  X(live_bytes, "bytes", "in blocks that the program or a thread's cache holds")                   \
  X(cached_bytes, "bytes", "of these, in caches, as far as can be read")                           \
  X(free_bytes, "bytes", "free blocks and slabs that were in use, and caches of large ones")       \
  X(large_bytes, "bytes", "in live blocks above 4 MiB")                                            \
  X(large_blocks, "blocks", "how many of those")                                                   \
  X(threads, "threads", "with a heap now")

enum { MAX_GAUGES = 16 };

// Everything that a report points to.
struct gathered {
  struct hz_report report;
  struct hz_gauge gauges[MAX_GAUGES];
  struct hz_exact_class exact[HZ_EXACT_ROWS];
  char replaced[256]; // the meaning of that gauge
};

static const char *name_replaced(struct gathered *all) {
  const struct hz_neighbours *neighbours = &hz_process.neighbours;
  size_t used = (size_t)snprintf(all->replaced, sizeof all->replaced,
                                 "loaded as well, their malloc is not used");
  for (size_t i = 0; i < HZ_REPLACED_NAMED && neighbours->replaced_paths[i] != NULL; i++) {
    if (used >= sizeof all->replaced) break;
    used += (size_t)snprintf(all->replaced + used, sizeof all->replaced - used, "%s %s",
                             i == 0 ? ":" : ",", neighbours->replaced_paths[i]);
  }
  return all->replaced;
}

static void gather_gauges(struct gathered *all) {
  const struct hz_gauges now = read_gauges();
  size_t count = 0;
#define HZ_GAUGE_ROW(name, unit, meaning)                                                          \
  all->gauges[count++] = (struct hz_gauge){#name, unit, now.name, meaning};
  HZ_GAUGE_ROWS(HZ_GAUGE_ROW)
#undef HZ_GAUGE_ROW
  all->gauges[count++] = (struct hz_gauge){"replaced_allocators", "libraries",
                                           hz_process.neighbours.replaced, name_replaced(all)};
  if (hz_common.stats_exact)
    all->gauges[count++] =
        (struct hz_gauge){"exact_remote_known", "yes=1", hz_exact_knows_remote(),
                          "0: no memory to note who allocated, remote frees are not counted"};
  all->report.gauges = all->gauges;
  all->report.gauge_count = count;
}

static void gather(struct gathered *all, const char *reason) {
  all->report = (struct hz_report){
      .config = &hz_process.config,
      .groups = hz_process.options,
      .group_count = hz_count_of(hz_process.options),
      .program = hz_process.program,
      .reason = reason,
      .pid = (uint64_t)getpid(),
      .wall_ns = hz_now_ns() - hz_process.start_ns,
  };
  gather_gauges(all);
  if (!hz_common.stats_exact) return;
  hz_exact_read(all->exact);
  all->report.exact = all->exact;
  all->report.exact_count = HZ_EXACT_ROWS;
}

void hz_summary_send(const char *reason) {
  if (hz_process.line == NULL || hz_common.stats == HZ_STATS_OFF) return;
  const int saved = errno;
  struct gathered all;
  gather(&all, reason);
  hz_report_send(&all.report, hz_common.stats == HZ_STATS_JSON ? HZ_REPORT_JSON : HZ_REPORT_TEXT,
                 hz_process.config.stats_path);
  errno = saved;
}

// ---- Interval reports ---------------------------------------------------------------------------

static _Atomic uint64_t interval_due_ms;

static void report_when_due(uint64_t now_ms) {
  const uint64_t interval_ms = hz_common.stats_interval_s * 1000;
  uint64_t due = atomic_load(&interval_due_ms);
  if (due == 0) // the first tick
    atomic_compare_exchange_strong(&interval_due_ms, &due, now_ms + interval_ms);
  else if (now_ms >= due &&
           atomic_compare_exchange_strong(&interval_due_ms, &due, now_ms + interval_ms))
    hz_summary_send("interval");
}

void hz_summary_start_interval(void) {
  if (hz_common.stats != HZ_STATS_OFF && hz_common.stats_interval_s != 0)
    hz_tick_hook = report_when_due;
}

// ---- Rules: trim and options --------------------------------------------------------------------

int hz_rule_malloc_trim(size_t pad) {
  if (hz_process.line == NULL) return 0;
  const int saved = errno;
  hz_count(HZ_COUNT_trims, 1);
  const bool gave = hz_process.line->trim(pad);
  errno = saved;
  return gave;
}

// Parameters of another allocator's making: accepted, as glibc accepts those it does not know, and
// without effect. Ours are options.
int hz_rule_mallopt(int parameter, int value) {
  (void)parameter, (void)value;
  return 1;
}

// ---- Rules: telling of the heap -----------------------------------------------------------------

static uint64_t less(uint64_t from, uint64_t what) {
  return from > what ? from - what : 0;
}

// What glibc calls the arena is everything but the large blocks; free blocks are not counted one by
// one, so ordblks and smblks are 0.
struct mallinfo2 hz_rule_mallinfo2(void) {
  const struct hz_gauges now = read_gauges();
  const uint64_t arena = less(now.committed_bytes, now.large_bytes);
  const uint64_t in_use = less(now.live_bytes, now.large_bytes + now.cached_bytes);
  return (struct mallinfo2){
      .arena = arena,
      .hblks = now.large_blocks,
      .hblkhd = now.large_bytes,
      .fsmblks = now.cached_bytes,
      .uordblks = in_use,
      .fordblks = less(arena, in_use),
      .keepcost = now.free_bytes,
  };
}

static int to_int(size_t n) {
  return n > INT_MAX ? INT_MAX : (int)n;
}

// The same in the int fields of old: what does not fit is the largest int, not a remainder.
struct mallinfo hz_rule_mallinfo(void) {
  const struct mallinfo2 wide = hz_rule_mallinfo2();
  return (struct mallinfo){
      .arena = to_int(wide.arena),
      .hblks = to_int(wide.hblks),
      .hblkhd = to_int(wide.hblkhd),
      .fsmblks = to_int(wide.fsmblks),
      .uordblks = to_int(wide.uordblks),
      .fordblks = to_int(wide.fordblks),
      .keepcost = to_int(wide.keepcost),
  };
}

void hz_rule_malloc_stats(void) {
  if (hz_process.line == NULL) return;
  const int saved = errno;
  struct gathered all;
  gather(&all, "request");
  hz_report_write(&all.report, HZ_REPORT_TEXT, STDERR_FILENO);
  errno = saved;
}

// The elements that readers of glibc's document look for, in its order, filled with what they ask:
// "fast" is free in threads' caches, "rest" free below them. Free blocks are not counted one by one
// (count is 0) and no maximum is kept, so there is none.
static void print_totals(FILE *out, const struct hz_gauges *now) {
  const uint64_t system = now->committed_bytes, space = now->reserved_bytes;
  fprintf(out,
          "<total type=\"fast\" count=\"0\" size=\"%ju\"/>\n"
          "<total type=\"rest\" count=\"0\" size=\"%ju\"/>\n"
          "<total type=\"mmap\" count=\"%ju\" size=\"%ju\"/>\n"
          "<system type=\"current\" size=\"%ju\"/>\n"
          "<aspace type=\"total\" size=\"%ju\"/>\n"
          "<aspace type=\"mprotect\" size=\"%ju\"/>\n",
          (uintmax_t)now->cached_bytes, (uintmax_t)now->free_bytes, (uintmax_t)now->large_blocks,
          (uintmax_t)now->large_bytes, (uintmax_t)system, (uintmax_t)space, (uintmax_t)system);
}

int hz_rule_malloc_info(int options, FILE *out) {
  if (options != 0) return EINVAL;
  const struct hz_gauges now = read_gauges();
  fputs("<malloc version=\"1\">\n", out);
  fprintf(out, "<!-- hakozuna %s, profile %s -->\n", HZ_VERSION, hz_process_profile());
  fputs("<heap nr=\"0\">\n<sizes>\n</sizes>\n", out);
  print_totals(out, &now);
  fputs("</heap>\n", out);
  print_totals(out, &now);
  fprintf(out, "<live size=\"%ju\" threads=\"%ju\"/>\n", (uintmax_t)now.live_bytes,
          (uintmax_t)now.threads);
  fputs("</malloc>\n", out);
  return 0;
}
