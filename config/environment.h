// Reads the process environment, whoever holds it. Inner part of config/load.
#ifndef HZ_CONFIG_ENVIRONMENT_H
#define HZ_CONFIG_ENVIRONMENT_H

#include "core/base.h"

// The variables that concern us ("HAKOZUNA_...", "HOME=...", "XDG_CONFIG_HOME=...") as the kernel
// gave them to the process, for a process whose libc has not set `environ` yet. NULL-terminated,
// static storage, empty when /proc is not there. What exceeds 16 KiB or 64 variables is left out.
const char *const *hz_environment_of_process(void);

// The value of a variable, NULL where it is not set or empty.
const char *hz_environment_get(const char *const *environment, const char *name);

#endif
