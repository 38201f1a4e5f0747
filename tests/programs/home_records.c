// What the allocator's own records take: 1 GiB of live blocks that nobody touches. What becomes
// resident meanwhile is records, and must be less than 2 % of what was asked for. Argument: mixed
// (16 bytes to 64 KiB, each doubling as often) or small (16 bytes to 1 KiB).
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/memory.h"
#include "tests/support/random.h"

enum { LIVE = 1 << 30, LEAST_LOG2 = 4 };

// 2^LEAST_LOG2 to 2^most_log2.
static size_t draw(struct random_state *random, unsigned most_log2) {
  const size_t low = (size_t)1 << random_between(random, LEAST_LOG2, most_log2 - 1);
  return random_between(random, low, 2 * low);
}

int main(int argc, char **argv) {
  CHECK(argc == 2, "usage: home_records mixed|small");
  const unsigned most_log2 = strcmp(argv[1], "mixed") == 0 ? 16 : 10;
  struct random_state random = random_start(random_seed(NULL));
  free(opaque(malloc(100)));
  const size_t before = memory_resident();
  size_t live = 0, blocks = 0;
  for (; live < LIVE; blocks++) {
    const size_t bytes = draw(&random, most_log2);
    CHECK(opaque(malloc(bytes)) != NULL, "no memory after %zu blocks", blocks);
    live += bytes;
  }
  const size_t records = memory_resident() - before;
  say("%zu blocks, %zu KiB: %zu KiB resident, %.2f %%\n", blocks, live / 1024, records / 1024,
      100.0 * (double)records / (double)live);
  CHECK(records < live / 50, "records take more than 2 %% of live blocks");
  say("ok\n");
  return 0;
}
