// Run blocks between threads: see core/run_transfer.h.
#include "core/run_transfer.h"

#include "core/lock.h"

size_t hz_run_transfer_blocks;

static struct stack {
  _Alignas(HZ_CACHE_LINE) struct hz_lock lock;
  struct hz_run *top;
  size_t count;
  size_t least;                 // the lowest count since the last tick
} stacks[HZ_SEGMENT_SLABS + 1]; // by slab count

void hz_run_transfer_start(void) {
  hz_locks_register(HZ_RANK_CLASS, &stacks[0].lock, hz_count_of(stacks), sizeof stacks[0]);
}

// Looked at without the lock, to pass by.
static bool is_empty(const struct stack *stack) {
  return __atomic_load_n(&stack->top, __ATOMIC_RELAXED) == NULL;
}

static void set_top(struct stack *stack, struct hz_run *top, size_t count) {
  __atomic_store_n(&stack->top, top, __ATOMIC_RELAXED);
  stack->count = count;
  stack->least = hz_min(stack->least, count);
}

static struct hz_run *take(struct stack *stack, size_t most) {
  if (is_empty(stack) || most == 0) return NULL;
  hz_lock(&stack->lock);
  struct hz_run *first = stack->top, **end = &stack->top;
  size_t count = 0;
  for (; count < most && *end != NULL; count++) end = &(*end)->next;
  struct hz_run *rest = *end;
  *end = NULL;
  set_top(stack, rest, stack->count - count);
  hz_unlock(&stack->lock);
  return count == 0 ? NULL : first;
}

struct hz_run *hz_run_transfer_take(unsigned slabs, unsigned most) {
  return take(&stacks[slabs], most);
}

// The first run of a list and those behind it that have the same slab count, as long as there is
// room. Returns what comes behind them.
static struct hz_run *give_some(struct hz_run *list, struct hz_run **refused) {
  const unsigned slabs = list->slabs;
  struct stack *stack = &stacks[slabs];
  hz_lock(&stack->lock);
  while (list != NULL && list->slabs == slabs) {
    struct hz_run *run = list;
    list = run->next;
    if (stack->count < hz_run_transfer_blocks) {
      run->next = stack->top;
      set_top(stack, run, stack->count + 1);
    } else {
      run->next = *refused;
      *refused = run;
    }
  }
  hz_unlock(&stack->lock);
  return list;
}

struct hz_run *hz_run_transfer_give(struct hz_run *list) {
  if (hz_run_transfer_blocks == 0) return list;
  struct hz_run *refused = NULL;
  while (list != NULL) list = give_some(list, &refused);
  return refused;
}

void hz_run_transfer_decay(void) {
  for (unsigned slabs = 1; slabs <= HZ_SEGMENT_SLABS; slabs++) {
    struct stack *stack = &stacks[slabs];
    if (is_empty(stack)) continue;
    hz_lock(&stack->lock);
    const size_t unneeded = stack->least;
    stack->least = stack->count - unneeded;
    hz_unlock(&stack->lock);
    hz_arena_give_list(take(stack, unneeded));
  }
}

size_t hz_run_transfer_flush(void) {
  size_t bytes = 0;
  for (unsigned slabs = 1; slabs <= HZ_SEGMENT_SLABS; slabs++) {
    struct hz_run *list = take(&stacks[slabs], SIZE_MAX);
    for (const struct hz_run *run = list; run != NULL; run = run->next)
      bytes += (size_t)slabs << HZ_SLAB_SHIFT;
    hz_arena_give_list(list);
  }
  return bytes;
}
