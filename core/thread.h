// The threads that have a heap: a slot number each, an exit callback, and what is left of threads
// that a fork did not copy.
#ifndef HZ_CORE_THREAD_H
#define HZ_CORE_THREAD_H

#include "core/base.h"

enum { HZ_THREAD_SLOTS = 65536 };

// Embedded in a line's heap.
struct hz_thread {
  uint32_t slot; // lowest free number at the time: dense, reused
};

// Creates the key whose destructor tells us of thread exits. exit_callback comes later, by
// hz_threads_on_exit. False: no key.
bool hz_thread_start(void);

// The line's exit callback: called once in the ending thread, among the destructors of
// thread-specific data. Other destructors may still allocate and free afterwards.
void hz_threads_on_exit(void (*callback)(struct hz_thread *thread));

// For a line that has something to put right in a forked child before any thread of it goes on:
// called there while the forking thread is alone. Must be short: most children call exec.
void hz_threads_after_fork(void (*callback)(void));

// Gives the calling thread a slot and arms the exit callback. The line's thread-local pointer must
// be set already: arming may allocate. False: no slot or no memory.
bool hz_thread_attach(struct hz_thread *thread);

// Frees the slot. The record may be reused afterwards.
void hz_thread_detach(struct hz_thread *thread);

// Threads with a slot now.
uint32_t hz_thread_count(void);

// One thread of the parent that does not exist in this (forked) process, its slot still taken;
// NULL: none left. The line empties its heap and detaches it. The check for "none" is one load.
struct hz_thread *hz_thread_take_orphan(void);

// For pthread_atfork: every lock of core and line, in lock order.
void hz_fork_prepare(void);
void hz_fork_parent(void);
void hz_fork_child(void);

#endif
