// The lines by name, with their code (lines/catalog.h has what is known without it).
#ifndef HZ_DISPATCH_REGISTRY_H
#define HZ_DISPATCH_REGISTRY_H

#include "lines/line.h"

// The line of this name; every name in the catalogue has one.
const struct hz_line *hz_line_named(const char *name);

#endif
