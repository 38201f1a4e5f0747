// The wrapper of dlopen.
//
// RTLD_DEEPBIND makes a library look names up in itself and its own dependencies first, so it finds
// libc's malloc where the rest of the process has ours; a block that crosses over then ends in the
// wrong free. Option dlopen_deepbind = strip (default) takes the flag away and says so once. In
// everything else the call reaches the next dlopen as if the program had made it: the loader reads
// the caller's address to find its RUNPATH and $ORIGIN, so the wrapper leaves by a jump. dlmopen is
// left alone: another namespace has its own libc and does not share blocks.
#ifndef HZ_DISPATCH_DEEPBIND_H
#define HZ_DISPATCH_DEEPBIND_H

// Finds the next dlopen. Called by the start.
void hz_deepbind_start(void);

#endif
