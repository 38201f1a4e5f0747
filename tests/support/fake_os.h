// A machine for core/os.h on which calls fail, time stands still and memory ends when a test says
// so.
//
// Every call is forwarded to the real one, counted, and checked against a map of all pages that
// were asked for: a commit outside of a reservation, a claim of what is ours already, a purge of
// what was never committed and the like end the process with a message. Any thread.
#ifndef TESTS_SUPPORT_FAKE_OS_H
#define TESTS_SUPPORT_FAKE_OS_H

#include "core/base.h"

enum fake_call {
  FAKE_RESERVE,
  FAKE_CLAIM,
  FAKE_ABANDON,
  FAKE_RESERVE_TABLE,
  FAKE_COMMIT,
  FAKE_DECOMMIT,
  FAKE_PURGE,
  FAKE_MOVE,
  FAKE_MAP,
  FAKE_CALL_KINDS
};

// Puts itself in the place of hz_os. The clock shows 1000 ms; nothing fails. Before core starts.
void fake_os_install(void);

// The n-th call of a kind from now on fails, once. 0: none does.
void fake_os_fail_nth(enum fake_call call, uint64_t n);
// From the n-th call of a kind from now on, all fail. 0: none does.
void fake_os_fail_from(enum fake_call call, uint64_t n);
// Whether the failure that was asked for by fake_os_fail_nth has happened.
bool fake_os_failed(enum fake_call call);

// Calls of a kind so far, failed ones included.
uint64_t fake_os_calls(enum fake_call call);

void fake_os_clock(uint64_t now_ms);
void fake_os_clock_add(uint64_t ms);

// RLIMIT_AS, in bytes of what is reserved, claimed and mapped through this machine. 0: none.
void fake_os_address_limit(size_t bytes);
// vm.overcommit_memory = 2: bytes that may be committed or mapped at a time. 0: no limit.
void fake_os_commit_limit(size_t bytes);

// Bytes that are committed (mapped records are not counted), and address space in use.
size_t fake_os_committed(void);
size_t fake_os_address_bytes(void);

// Called before each call that is forwarded, without locks of the machine: a test's chance to do
// what another thread could do at this moment. It is not called for the calls that it makes itself.
void fake_os_interrupt(void (*hook)(enum fake_call call, void *at, size_t bytes));

#endif
