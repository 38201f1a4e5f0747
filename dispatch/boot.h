// The first call of a process: it starts the library, once, and is then repeated on what the start
// has published.
#ifndef HZ_DISPATCH_BOOT_H
#define HZ_DISPATCH_BOOT_H

#include "core/base.h"

// Starts the library if nobody has; a second thread waits until the first is done. True: started.
// False: the caller is inside the start itself, and its blocks come from the boot buffer.
bool hz_boot(void);

#endif
