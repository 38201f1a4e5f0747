// fork() in a process whose other threads may hold any lock.
#ifndef HZ_DISPATCH_FORK_H
#define HZ_DISPATCH_FORK_H

// Registers the handlers, once, at the first malloc, or in our constructor, which the linker's
// -z initfirst puts before all others: handlers registered first run last before a fork, when no
// other library's handler waits any more for a thread that allocates. A child counts and reports as
// itself.
void hz_fork_start(void);

#endif
