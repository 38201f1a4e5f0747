// Bitmaps of runs: see core/class_run.h.
#include "core/class_run.h"

#include <string.h>

#include "core/idle_blocks.h"
#include "core/meta.h"

static uint32_t words_of(const struct hz_run *run) {
  return (run->blocks + 63) / 64;
}

// ---- Blocks -------------------------------------------------------------------------------------

bool hz_class_run_open(struct hz_run *run, unsigned class_id) {
  const struct hz_size_class *sc = &hz_size_classes[class_id];
  const uint32_t words = (sc->blocks + 63u) / 64;
  run->free_bits = words == 1 ? &run->one_word : hz_meta_take(words * sizeof(uint64_t));
  if (run->free_bits == NULL) return false;
  memset(run->free_bits, 0xff, words * sizeof(uint64_t));
  if (sc->blocks % 64 != 0) run->free_bits[words - 1] = (UINT64_C(1) << sc->blocks % 64) - 1;
  run->blocks = run->free = sc->blocks;
  run->class_id = (uint8_t)class_id;
  run->first_word = 0;
  run->idle_ticks = 0;
  atomic_store_explicit(&run->state, HZ_RUN_CLASS, memory_order_relaxed);
  return true;
}

void hz_class_run_close(struct hz_run *run) {
  if (run->free_bits != &run->one_word)
    hz_meta_give(run->free_bits, words_of(run) * sizeof(uint64_t));
}

uint32_t hz_class_run_take(struct hz_run *run, void **out, uint32_t want) {
  const size_t bytes = hz_class_bytes(run->class_id);
  const uint32_t words = words_of(run);
  uint32_t got = 0, w = run->first_word;
  for (; w < words && got < want; w++) {
    uint64_t bits = run->free_bits[w];
    while (bits != 0 && got < want) {
      const unsigned bit = (unsigned)__builtin_ctzll(bits);
      bits &= bits - 1;
      out[want - ++got] = (char *)hz_run_base(run) + (w * 64 + bit) * bytes;
    }
    run->free_bits[w] = bits;
  }
  run->first_word = (uint8_t)(got < want ? words : w - 1);
  run->free -= got;
  run->idle_ticks = 0;
  return got;
}

bool hz_class_run_give(struct hz_run *run, unsigned class_id, const void *block,
                       enum hz_misuse_kind *reason) {
  *reason = HZ_MISUSE_FOREIGN;
  if (run == NULL || run->state != HZ_RUN_CLASS || run->class_id != class_id) return false;
  const size_t offset = (size_t)((const char *)block - (const char *)hz_run_base(run));
  const uint32_t index = hz_class_index(class_id, offset);
  *reason = HZ_MISUSE_INTERIOR;
  if (index >= run->blocks || index * hz_class_bytes(class_id) != offset) return false;
  const uint64_t bit = UINT64_C(1) << (index & 63);
  *reason = HZ_MISUSE_DOUBLE;
  if ((run->free_bits[index / 64] & bit) != 0) return false;
  run->free_bits[index / 64] |= bit;
  if (index / 64 < run->first_word) run->first_word = (uint8_t)(index / 64);
  run->free++;
  run->idle_ticks = 0;
  return true;
}

static bool is_free(const struct hz_run *run, uint32_t index) {
  return (run->free_bits[index / 64] >> (index & 63) & 1) != 0;
}

bool hz_class_run_has(const struct hz_run *run, const void *block) {
  const size_t offset = (size_t)((const char *)block - (const char *)hz_run_base(run));
  return is_free(run, hz_class_index(run->class_id, offset));
}

// ---- Pages inside of runs -----------------------------------------------------------------------

static bool is_free_in(const void *run, uint32_t index) {
  return is_free(run, index);
}

size_t hz_class_run_decay(struct hz_run *run, bool all, bool tick, unsigned *calls) {
  const struct hz_idle_blocks blocks = {hz_run_base(run), hz_class_bytes(run->class_id),
                                        run->blocks, is_free_in, run};
  return hz_idle_blocks_decay(&blocks, &run->idle_ticks, all, tick, calls);
}

// ---- Check --------------------------------------------------------------------------------------

const char *hz_class_run_check(const struct hz_run *run) {
  if (run->state != HZ_RUN_CLASS) return "class run: its state is another";
  uint32_t set = 0;
  for (uint32_t w = 0; w < words_of(run); w++) {
    set += (uint32_t)__builtin_popcountll(run->free_bits[w]);
    if (w < run->first_word && run->free_bits[w] != 0) return "class run: first_word is too high";
  }
  if (run->blocks % 64 != 0 && run->free_bits[run->blocks / 64] >> run->blocks % 64 != 0)
    return "class run: a bit beyond the last block is set";
  return set == run->free ? NULL : "class run: its free count disagrees with its bitmap";
}
