// What in this system or in this environment changes how the library works, or keeps it from
// working.
#ifndef HZ_TOOLS_SYSTEM_H
#define HZ_TOOLS_SYSTEM_H

#include "tools/findings.h"

// Appends one row for each thing looked at. Reads /proc and /sys; what cannot be read there (a
// container may hide it) gets no row.
void hz_system_check(struct hz_findings *findings);

#endif
