// fork() in a process whose other threads may hold any lock.
#ifndef HZ_DISPATCH_FORK_H
#define HZ_DISPATCH_FORK_H

// Registers the handlers, once, from the constructor: early ones run late before a fork, so that
// those of other libraries may still allocate before ours. A child counts and reports as itself.
void hz_fork_start(void);

#endif
