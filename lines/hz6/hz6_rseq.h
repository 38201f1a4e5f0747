// Restartable sequences: a few instructions on a processor's own data that the kernel begins anew if
// the thread is interrupted in the middle, so that they need no lock and no atomic operation.
//
// The registration is the C library's own (glibc 2.35, __rseq_offset); we never make one. The data
// are tops of magazines (hz6_magazine.h), one array per processor: with the top as its whole state,
// a magazine is popped, pushed and exchanged by one store each, the last of its sequence. What a
// sequence of another thread on the same processor has stored is seen whole or not at all.
//
// x86-64. Elsewhere, and under the thread sanitizer, which cannot see that a sequence orders
// anything, HZ6_RSEQ is 0 and hz6_rseq_start() says no.
#ifndef HZ_LINES_HZ6_RSEQ_H
#define HZ_LINES_HZ6_RSEQ_H

#include "core/base.h"
#include "lines/hz6/hz6_magazine.h"

#if defined(__SANITIZE_THREAD__)
#define HZ6_RSEQ 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HZ6_RSEQ 0
#endif
#endif
#if !defined(HZ6_RSEQ) && defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/rseq.h>)
#define HZ6_RSEQ 1
#endif
#endif
#ifndef HZ6_RSEQ
#define HZ6_RSEQ 0
#endif

// Processors that may have data of their own; those beyond, and threads that the C library could not
// register, use the last row, which stays empty. The most that Linux supports on x86-64.
enum { HZ6_CPUS = 8192 };

// By processor: its tops, by mark. Rows are pointers so that those of processors that never call us
// cost nothing. Row HZ6_CPUS: see above.
extern HZ_HIDDEN struct hz6_item **_Atomic *hz6_cpu_tops;
// Of the thread's struct rseq, from its thread pointer.
extern HZ_HIDDEN ptrdiff_t hz6_rseq_offset;

#if HZ6_RSEQ

// Begins a sequence: its description, where the kernel finds it, and the tops of this processor.
// Operands: %[area], %[tops], %[cpus], %[t] and %[row], the last two for writing.
#define HZ6_RSEQ_BEGIN                                                                             \
  ".pushsection __rseq_cs, \"aw\"\n\t"                                                             \
  ".balign 32\n\t"                                                                                 \
  "3: .long 0, 0\n\t"                                                                              \
  ".quad 1f, 2f - 1f, 4f\n\t"                                                                      \
  ".popsection\n\t"                                                                                \
  "0: leaq 3b(%%rip), %[t]\n\t"                                                                    \
  "movq %[t], %%fs:8(%[area])\n"                                                                   \
  "1: movl %%fs:4(%[area]), %k[t]\n\t"                                                             \
  "cmpl %[cpus], %k[t]\n\t"                                                                        \
  "cmovael %[cpus], %k[t]\n\t"                                                                     \
  "movq (%[tops],%q[t],8), %[row]\n\t"
// Ends it. Interrupted: the kernel jumps to 4, behind the signature that it asks for.
#define HZ6_RSEQ_END                                                                               \
  "2:\n\t"                                                                                         \
  ".pushsection __rseq_failure, \"ax\"\n\t"                                                        \
  ".byte 0x0f, 0xb9, 0x3d\n\t"                                                                     \
  ".long 0x53053053\n"                                                                             \
  "4: jmp 0b\n\t"                                                                                  \
  ".popsection\n\t"

#define HZ6_RSEQ_INPUTS [area] "r"(hz6_rseq_offset), [tops] "r"(hz6_cpu_tops), [cpus] "r"(HZ6_CPUS)

static_assert(sizeof(struct hz6_item) == 16 && offsetof(struct hz6_item, mark) == 8,
              "what the sequences below step by and look at");

// The newest block of this processor's magazine; block NULL: none.
HZ_FAST struct hz6_item hz6_rseq_pop(unsigned mark) {
  struct hz6_item item;
  uintptr_t t, row;
  __asm__ volatile(
      HZ6_RSEQ_BEGIN "movq (%[row],%[mark],8), %[t]\n\t"
                     "movq (%[t]), %[block]\n\t"
                     "movq 8(%[t]), %[at]\n\t"
                     "testq %[block], %[block]\n\t"
                     "jz 2f\n\t"
                     "subq $16, %[t]\n\t"
                     "movq %[t], (%[row],%[mark],8)\n" HZ6_RSEQ_END
      : [block] "=&r"(item.block), [at] "=&r"(item.mark), [t] "=&r"(t), [row] "=&r"(row)
      : HZ6_RSEQ_INPUTS, [mark] "r"((uintptr_t)mark)
      : "memory", "cc");
  return item;
}

// False: this processor's magazine is full, or it has none.
HZ_FAST bool hz6_rseq_push(unsigned mark, struct hz6_item item) {
  bool full;
  uintptr_t t, row;
  __asm__ volatile(
      HZ6_RSEQ_BEGIN "movq (%[row],%[mark],8), %[t]\n\t"
                     "cmpq $1, 16(%[t])\n\t"
                     "je 2f\n\t"
                     "movq %[block], 16(%[t])\n\t" // above the top: nobody's until the last store
                     "movq %[at], 24(%[t])\n\t"
                     "leaq 16(%[t]), %[t]\n\t"
                     "movq %[t], (%[row],%[mark],8)\n" HZ6_RSEQ_END
      : "=@cce"(full), [t] "=&r"(t), [row] "=&r"(row)
      : HZ6_RSEQ_INPUTS, [mark] "r"((uintptr_t)mark), [block] "r"(item.block), [at] "r"(item.mark)
      : "memory");
  return !full;
}

// Puts another top in the place of this one, if this processor has this one.
HZ_FAST bool hz6_rseq_exchange(unsigned mark, const struct hz6_item *from,
                               const struct hz6_item *to) {
  bool same;
  uintptr_t t, row;
  __asm__ volatile(HZ6_RSEQ_BEGIN "cmpq %[from], (%[row],%[mark],8)\n\t"
                                  "jne 2f\n\t"
                                  "movq %[to], (%[row],%[mark],8)\n" HZ6_RSEQ_END
                   : "=@cce"(same), [t] "=&r"(t), [row] "=&r"(row)
                   : HZ6_RSEQ_INPUTS, [mark] "r"((uintptr_t)mark), [from] "r"(from), [to] "r"(to)
                   : "memory");
  return same;
}

// The tops of the processor that the thread was on a moment ago, and its number.
HZ_FAST struct hz6_item **hz6_rseq_row(uint32_t *cpu) {
  uint32_t now;
  __asm__ volatile("movl %%fs:4(%1), %0" : "=r"(now) : "r"(hz6_rseq_offset));
  *cpu = now < HZ6_CPUS ? now : HZ6_CPUS;
  return atomic_load_explicit(&hz6_cpu_tops[*cpu], memory_order_acquire);
}

#else

HZ_FAST struct hz6_item hz6_rseq_pop(unsigned mark) {
  (void)mark;
  return (struct hz6_item){NULL, NULL};
}
HZ_FAST bool hz6_rseq_push(unsigned mark, struct hz6_item item) {
  (void)mark, (void)item;
  return false;
}
HZ_FAST bool hz6_rseq_exchange(unsigned mark, const struct hz6_item *from,
                               const struct hz6_item *to) {
  (void)mark, (void)from, (void)to;
  return false;
}
HZ_FAST struct hz6_item **hz6_rseq_row(uint32_t *cpu) {
  *cpu = HZ6_CPUS;
  return atomic_load_explicit(&hz6_cpu_tops[HZ6_CPUS], memory_order_acquire);
}

#endif

// Whether the C library has registered this process; finds hz6_rseq_offset.
bool hz6_rseq_start(void);

#endif
