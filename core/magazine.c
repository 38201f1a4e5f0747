// See core/magazine.h.
#include "core/magazine.h"

void *const hz_no_slots[2] = {NULL, HZ_MAGAZINE_FULL};
