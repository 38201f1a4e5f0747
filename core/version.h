// Which hakozuna this is. The report, `hakozuna --version` and the man page say the same.
#ifndef HZ_CORE_VERSION_H
#define HZ_CORE_VERSION_H

#define HZ_VERSION "0.1.0"

// The commit that was built, or "unknown" where the build did not say (core/version.c).
extern const char hz_commit[];

#endif
