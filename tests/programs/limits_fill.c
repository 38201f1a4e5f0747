// Allocates until there is no more, checks every block, frees them all, and does it again: a limit
// ends in NULL with ENOMEM and nothing is lost. Arguments: mix (tiny, small, medium, runs, large,
// all), MiB (none).
//
// With MiB the program sets that limit itself, when the heap exists already: address space that was
// taken before and is not in use must not count against it. Such a limit need not be the end: what
// was reserved before may serve, so it fills no more than the limit. Each block carries the list of
// blocks, so that the program needs no memory besides.
#define _GNU_SOURCE 1
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/check.h"
#include "tests/support/memory.h"
#include "tests/support/pattern.h"
#include "tests/support/random.h"

enum { ROUNDS = 3 };

static const struct mix {
  const char *name;
  size_t low, high;
} mixes[] = {
    {"tiny", 24, 64},         {"small", 24, 512},           {"medium", 513, 65536},
    {"runs", 65537, 1 << 20}, {"large", 4 << 20, 16 << 20}, {"all", 24, 2 << 20},
};

struct block {
  struct block *next;
  size_t bytes;
  unsigned char contents[];
};

// Takes blocks until the heap refuses or `most` bytes are reached. Returns them, their bytes in
// *total.
static struct block *fill(const struct mix *mix, struct random_state *random, size_t most,
                          size_t *total) {
  struct block *list = NULL;
  for (*total = 0; *total < most; *total += list->bytes) {
    size_t bytes = random_between(random, mix->low, mix->high);
    errno = 0;
    struct block *block = malloc(bytes);
    if (block == NULL) {
      CHECK(errno == ENOMEM, "the refusal set errno %d, expected ENOMEM", errno);
      break;
    }
    *block = (struct block){list, bytes};
    pattern_fill(block->contents, bytes - sizeof *block, (unsigned)bytes);
    list = block;
  }
  return list;
}

static void check_and_free(struct block *list) {
  while (list != NULL) {
    struct block *next = list->next;
    size_t contents = list->bytes - sizeof *list;
    size_t intact = pattern_intact(list->contents, contents, contents, (unsigned)list->bytes);
    CHECK(intact == contents, "byte %zu of a block of %zu bytes changed", intact, list->bytes);
    errno = 4711;
    free(list);
    CHECK(errno == 4711, "free set errno %d", errno);
    list = next;
  }
}

// At the limit other calls fail as cleanly.
static void require_refusals(struct block *list) {
  size_t most = (size_t)1 << 40;
  CHECK(calloc(most, 1) == NULL && errno == ENOMEM, "calloc at the limit");
  CHECK(memalign(4096, most) == NULL && errno == ENOMEM, "memalign at the limit");
  if (list == NULL) return;
  size_t was = list->bytes;
  struct block *moved = realloc(opaque(list), opaque_size(most));
  CHECK(moved == NULL && errno == ENOMEM, "realloc at the limit");
  CHECK(((struct block *)opaque(list))->bytes == was, "realloc that failed changed its block");
}

static const struct mix *mix_named(const char *name) {
  for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) {
    if (strcmp(mixes[i].name, name) == 0) return &mixes[i];
  }
  FAIL("mix '%s' is not one of tiny, small, medium, runs, large, all", name);
}

// Returns the bytes of the limit.
static size_t set_limit(const char *mib) {
  struct rlimit limit;
  free(opaque(malloc(100)));
  getrlimit(RLIMIT_AS, &limit);
  if (mib != NULL) {
    limit.rlim_cur = strtoul(mib, NULL, 10) << 20;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "a limit of %s MiB is refused", mib);
  }
  CHECK(limit.rlim_cur != RLIM_INFINITY, "no limit is set: run me after ulimit -v, or name it");
  return limit.rlim_cur;
}

int main(int argc, char **argv) {
  CHECK(argc == 2 || argc == 3, "usage: limits_fill MIX [MIB]");
  const struct mix *mix = mix_named(argv[1]);
  size_t limit = set_limit(argv[2]), most = argc == 3 ? limit : SIZE_MAX, first = 0;
  uint64_t seed = random_seed(NULL);
  say("seed %llu\n", (unsigned long long)seed);
  for (int round = 0; round < ROUNDS; round++) {
    struct random_state random = random_start(seed);
    size_t total;
    struct block *list = fill(mix, &random, most, &total);
    require_refusals(list);
    check_and_free(list);
    if (round == 0) first = total;
    say("round %d: %zu KiB of %zu KiB\n", round, total / 1024, limit / 1024);
    CHECK(total >= limit / 2, "the heap holds less than half of the limit");
    // How much of the heap lies between blocks of up to 2 MiB is chance; what is lost adds up.
    CHECK(total >= first / 10 * 8, "round %d got less than 80 %% of the first round", round);
  }
  say("ok\n");
  return 0;
}
