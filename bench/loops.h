// The three local loops whose cost per malloc and free pair is counted: shared by pair.c (through
// the C library's names) and choose.c (with and without the choice at run time).
//
// The functions of the allocator are parameters and the loops are always inlined, so that every
// call in the compiled loop is a direct one. No state outside the calling thread.
#ifndef HZ_BENCH_LOOPS_H
#define HZ_BENCH_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HZ_LOOP static inline __attribute__((always_inline))

enum { HZ_LOOP_BATCH = 100, HZ_LOOP_SLOTS = 400 };

// Makes the compiler believe that p is used: it may not remove the pair. Costs no instruction.
HZ_LOOP void hz_loop_keep(void *p) {
  __asm__ volatile("" : : "r"(p) : "memory");
}

// Knuth's MMIX generator; the upper bits are the good ones.
HZ_LOOP uint32_t hz_loop_draw(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33);
}

// One live block of 64 bytes. Returns the pairs done.
HZ_LOOP size_t hz_loop_single(size_t pairs, void *(*alloc)(size_t), void (*release)(void *)) {
  for (size_t i = 0; i < pairs; i++) {
    void *p = alloc(64);
    hz_loop_keep(p);
    release(p);
  }
  return pairs;
}

// 100 blocks of 16 to 1024 bytes allocated, then all freed. Returns the pairs done.
HZ_LOOP size_t hz_loop_batch(size_t pairs, void *(*alloc)(size_t), void (*release)(void *)) {
  void *blocks[HZ_LOOP_BATCH];
  uint64_t seed = 1;
  size_t done = 0;
  for (; done < pairs; done += HZ_LOOP_BATCH) {
    for (size_t i = 0; i < HZ_LOOP_BATCH; i++) blocks[i] = alloc(16 + hz_loop_draw(&seed) % 1009);
    hz_loop_keep(blocks);
    for (size_t i = 0; i < HZ_LOOP_BATCH; i++) release(blocks[i]);
  }
  return done;
}

// 400 slots; each step draws one: full, it is freed; empty, it gets 16 to 32768 bytes. Two steps
// are a pair. Returns the pairs done.
HZ_LOOP size_t hz_loop_slots(size_t pairs, void *(*alloc)(size_t), void (*release)(void *)) {
  void *slots[HZ_LOOP_SLOTS];
  uint64_t seed = 1;
  memset(slots, 0, sizeof slots);
  for (size_t step = 0; step < 2 * pairs; step++) {
    void **slot = &slots[hz_loop_draw(&seed) % HZ_LOOP_SLOTS];
    if (*slot != NULL) {
      release(*slot);
      *slot = NULL;
    } else {
      *slot = alloc(16 + hz_loop_draw(&seed) % 32753);
    }
  }
  for (size_t i = 0; i < HZ_LOOP_SLOTS; i++) release(slots[i]);
  return pairs;
}

// Runs the loop called `name`: single, batch or slots. Returns the pairs done, 0 for another name.
HZ_LOOP size_t hz_loop_run(const char *name, size_t pairs, void *(*alloc)(size_t),
                           void (*release)(void *)) {
  if (strcmp(name, "single") == 0) return hz_loop_single(pairs, alloc, release);
  if (strcmp(name, "batch") == 0) return hz_loop_batch(pairs, alloc, release);
  if (strcmp(name, "slots") == 0) return hz_loop_slots(pairs, alloc, release);
  return 0;
}

#endif
