// gnuplot reads the script from its stdin and writes the drawings one after another to its stdout;
// both are files without a name, so that nothing is left behind however this ends.
//
// No text of a user's reaches gnuplot: names are placeholders, which the page fills in.
#include "tools/bench/picture.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "tools/bench/quantity.h"
#include "tools/bench/svg.h"
#include "tools/bench/verdict.h"
#include "tools/command.h"
#include "tools/text.h"

extern char **environ;

// ---- the script

enum { WIDTH = 480, ROW_HEIGHT = 25, FRAME_HEIGHT = 52 };

// The characters of the longest name make the left margin, which is the same in all drawings.
static size_t name_characters(const struct hz_result *result) {
  size_t most = 0;
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) most = hz_max(most, strlen(result->parties[i].name));
  return hz_min(most, 24);
}

static unsigned rows_of(const struct hz_result *result) {
  unsigned rows = 0;
  for (size_t i = 0; i < result->party_count; i++) rows += hz_takes_part(result, i);
  return rows;
}

static void print_start(FILE *script, const struct hz_result *result) {
  unsigned rows = rows_of(result);
  fprintf(script,
          "set encoding utf8\n"
          "set border 0\nunset key\n"
          "set style fill solid 1 noborder\n"
          "set grid xtics lt 1 lw 1 lc rgb " HZ_PAINT_FORMAT "\n"
          "set xtics scale 0\nset bars 0.5\n"
          "set yrange [%u.6:-0.6]\n"
          "set lmargin at screen %.3f\nset rmargin at screen 0.97\n"
          "set bmargin 3.2\nset tmargin 0.4\n",
          HZ_PAINT_GRID, 0u, rows - 1, (double)(name_characters(result) * 8 + 14) / WIDTH);
  fputs("set ytics scale 0 (", script);
  unsigned row = 0;
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i))
      fprintf(script, "%s\"@p%zu@\" %u", row ? ", " : "", i, row), row++;
  fputs(")\n", script);
}

// Each drawing is a document of its own, which begins with the terminal.
static void print_frame(FILE *script, const struct hz_result *result, const char *axis,
                        double greatest, double room) {
  double most = greatest > 0 ? greatest * room : 1;
  fprintf(script,
          "set terminal svg size %d,%u dynamic font 'sans-serif,13' noenhanced\n"
          "set xlabel '%s'\nset xrange [0:%.9g]\nset format x '%s'\n",
          WIDTH, rows_of(result) * ROW_HEIGHT + FRAME_HEIGHT, axis, most,
          most >= 1e5 ? "%.1s%c" : "%g");
}

static double value_of(enum hz_figure figure, double value) {
  return figure == HZ_PEAK || figure == HZ_REST ? value / 1024 : value;
}

// A row of data: middle and ends of the bar, its value with least and greatest, and its colour.
static void print_bar(FILE *script, const struct hz_summary *summary, enum hz_figure figure,
                      double top, double bottom, unsigned paint, size_t party) {
  fprintf(script, "%.9g %.9g %.9g %.9g %.2f %.2f " HZ_PAINT_FORMAT "\n",
          value_of(figure, summary->median), value_of(figure, summary->least),
          value_of(figure, summary->greatest), (top + bottom) / 2, top, bottom, paint,
          (unsigned)party);
}

static const char *nothing_word(const struct hz_lane_result *lane, size_t party) {
  return lane->cells[party].failure ? "@f0@" : "@n0@";
}

static double greatest_of(const struct hz_result *result, const struct hz_lane_result *lane,
                          enum hz_figure figure) {
  double greatest = 0;
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i))
      greatest = fmax(greatest, hz_cell_figure(lane, i, figure).greatest);
  return value_of(figure, greatest);
}

static void print_plot(FILE *script) {
  fputs("plot $bars using 1:4:(0):1:5:6:7 with boxxyerror lc rgb variable, "
        "$bars using 1:4:2:3 with xerrorbars pt -1 lw 1.2 lc rgb ",
        script);
  fprintf(script, HZ_PAINT_FORMAT, HZ_PAINT_ERROR, 0u);
  fputs(", $words using 1:2:3 with labels left offset 0.6,0\n", script);
}

static void print_speed(FILE *script, const struct hz_result *result,
                        const struct hz_lane_result *lane) {
  print_frame(script, result, "@u0@", greatest_of(result, lane, HZ_SPEED), 1.2);
  fputs("$bars << END\n", script);
  double row = 0;
  for (size_t i = 0; i < result->party_count; i++) {
    if (!hz_takes_part(result, i)) continue;
    struct hz_summary speed = hz_cell_figure(lane, i, HZ_SPEED);
    if (speed.count) print_bar(script, &speed, HZ_SPEED, row - 0.36, row + 0.36, HZ_PAINT_BAR, i);
    row++;
  }
  fputs("END\n$words << END\n", script);
  row = 0;
  for (size_t i = 0; i < result->party_count; i++) {
    if (!hz_takes_part(result, i)) continue;
    struct hz_summary speed = hz_cell_figure(lane, i, HZ_SPEED);
    fprintf(script, "%.9g %.0f \"%s\"\n", speed.greatest, row,
            speed.count ? hz_quantity(speed.median).text : nothing_word(lane, i));
    row++;
  }
  fputs("END\n", script);
  print_plot(script);
}

// Peak above, rest below, or the peak alone.
static void print_memory_bars(FILE *script, const struct hz_lane_result *lane, size_t party,
                              double row, bool with_rest) {
  struct hz_summary peak = hz_cell_figure(lane, party, HZ_PEAK);
  struct hz_summary rest = hz_cell_figure(lane, party, HZ_REST);
  double middle = with_rest ? row : row + 0.36;
  if (peak.count) print_bar(script, &peak, HZ_PEAK, row - 0.36, middle, HZ_PAINT_BAR, party);
  if (rest.count) print_bar(script, &rest, HZ_REST, row + 0.02, row + 0.38, HZ_PAINT_LIGHT, party);
}

static void print_memory_words(FILE *script, const struct hz_lane_result *lane, size_t party,
                               double row) {
  struct hz_summary peak = hz_cell_figure(lane, party, HZ_PEAK);
  struct hz_summary rest = hz_cell_figure(lane, party, HZ_REST);
  double end = fmax(value_of(HZ_PEAK, peak.greatest), value_of(HZ_REST, rest.greatest));
  if (!peak.count && !rest.count)
    fprintf(script, "0 %.0f \"%s\"\n", row, nothing_word(lane, party));
  else if (!rest.count) fprintf(script, "%.9g %.0f \"%s\"\n", end, row, hz_mib(peak.median).text);
  else
    fprintf(script, "%.9g %.0f \"%s / %s\"\n", end, row,
            peak.count ? hz_mib(peak.median).text : "-", hz_mib(rest.median).text);
}

static void print_memory(FILE *script, const struct hz_result *result,
                         const struct hz_lane_result *lane) {
  bool with_rest = hz_best(result, lane, HZ_REST, -1) >= 0;
  double greatest = fmax(greatest_of(result, lane, HZ_PEAK), greatest_of(result, lane, HZ_REST));
  print_frame(script, result,
              with_rest ? "MiB, peak / at rest (less is better)"
                        : "MiB at the peak (less is better)",
              greatest, with_rest ? 1.36 : 1.2);
  fputs("$bars << END\n", script);
  double row = 0;
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) print_memory_bars(script, lane, i, row++, with_rest);
  fputs("END\n$words << END\n", script);
  row = 0;
  for (size_t i = 0; i < result->party_count; i++)
    if (hz_takes_part(result, i)) print_memory_words(script, lane, i, row++);
  fputs("END\n", script);
  print_plot(script);
}

static bool has_speed(const struct hz_result *result, const struct hz_lane_result *lane) {
  return hz_best(result, lane, HZ_SPEED, -1) >= 0;
}

static bool has_memory(const struct hz_result *result, const struct hz_lane_result *lane) {
  return hz_best(result, lane, HZ_PEAK, -1) >= 0 || hz_best(result, lane, HZ_REST, -1) >= 0;
}

static void print_script(FILE *script, const struct hz_result *result) {
  print_start(script, result);
  for (size_t i = 0; i < result->lane_count; i++) {
    if (has_speed(result, result->lanes[i])) print_speed(script, result, result->lanes[i]);
    if (has_memory(result, result->lanes[i])) print_memory(script, result, result->lanes[i]);
  }
}

// ---- gnuplot

struct files {
  FILE *script, *drawings, *complaints;
};

// -d: nobody's ~/.gnuplot.
static int spawn(const struct files *files, pid_t *child) {
  char name[] = "gnuplot", defaults[] = "-d";
  char *argv[] = {name, defaults, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(files->script), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(files->drawings), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(files->complaints), STDERR_FILENO);
  int error = posix_spawnp(child, name, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

static void say_failure(FILE *complaints, int status) {
  char line[256] = "";
  rewind(complaints);
  while (fgets(line, sizeof line, complaints) && line[strspn(line, " ^\t\n")] == '\0') continue;
  line[strcspn(line, "\n")] = '\0';
  hz_log("gnuplot could not draw the pictures (wait status %d)%s%s; the page was not written.",
         status, line[0] ? ": " : "", line);
}

static int run_gnuplot(const struct files *files) {
  pid_t child;
  fflush(files->script);
  rewind(files->script);
  int error = spawn(files, &child);
  if (error == ENOENT) {
    hz_log("gnuplot is not installed, and the page's pictures are drawn by it; install it "
           "(package gnuplot-nox) and try again.");
    return HZ_EXIT_NOT_FOUND;
  }
  if (error) {
    hz_log("gnuplot cannot be started: %s; the page was not written.", strerror(error));
    return HZ_EXIT_SYSTEM;
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return HZ_EXIT_SYSTEM;
  if (status == 0) return HZ_EXIT_OK;
  say_failure(files->complaints, status);
  return HZ_EXIT_SYSTEM;
}

// ---- what came back

static char *read_all(FILE *file) {
  if (fseek(file, 0, SEEK_END) != 0) return NULL;
  long bytes = ftell(file);
  if (bytes < 0) return NULL;
  rewind(file);
  char *text = hz_zeroed((size_t)bytes + 1);
  size_t got = fread(text, 1, (size_t)bytes, file);
  text[got] = '\0';
  return text;
}

// The next drawing, cut off behind its end. NULL: there is none.
static const char *next_drawing(char **rest) {
  static const char end[] = "</svg>";
  char *drawing = *rest, *found = strstr(drawing, end);
  if (!found) return NULL;
  found += sizeof end - 1;
  *rest = found;
  if (*found) {
    *found = '\0'; // the newline between two documents
    *rest = found + 1;
  }
  return drawing;
}

static bool hand_out(const struct hz_result *result, struct hz_pictures *pictures) {
  char *rest = pictures->text;
  for (size_t i = 0; rest && i < result->lane_count; i++) {
    const struct hz_lane_result *lane = result->lanes[i];
    if (has_speed(result, lane) && !(pictures->speed[i] = next_drawing(&rest))) return false;
    if (has_memory(result, lane) && !(pictures->memory[i] = next_drawing(&rest))) return false;
  }
  return rest != NULL;
}

static int draw(const struct files *files, const struct hz_result *result,
                struct hz_pictures *pictures) {
  print_script(files->script, result);
  int code = run_gnuplot(files);
  if (code != HZ_EXIT_OK) return code;
  pictures->text = read_all(files->drawings);
  if (hand_out(result, pictures)) return HZ_EXIT_OK;
  hz_pictures_free(pictures);
  say_failure(files->complaints, 0);
  return HZ_EXIT_SYSTEM;
}

int hz_pictures_draw(const struct hz_result *result, struct hz_pictures *pictures) {
  *pictures = (struct hz_pictures){0};
  if (rows_of(result) == 0) return HZ_EXIT_OK; // nobody took part, so there is nothing to draw
  struct files files = {tmpfile(), tmpfile(), tmpfile()};
  int code = HZ_EXIT_SYSTEM;
  if (files.script && files.drawings && files.complaints) code = draw(&files, result, pictures);
  else hz_log("no temporary file could be made for gnuplot: %s.", strerror(errno));
  FILE *all[] = {files.script, files.drawings, files.complaints};
  for (size_t i = 0; i < hz_count_of(all); i++)
    if (all[i]) fclose(all[i]);
  return code;
}

void hz_pictures_free(struct hz_pictures *pictures) {
  free(pictures->text);
  *pictures = (struct hz_pictures){0};
}
