// The commit that was built, in a translation unit of its own: a new commit recompiles this alone.
//
// A stamped build generates core/commit.h with one line, `#define HZ_COMMIT "..."`; a build outside
// of version control has no such file and says "unknown".
#include "core/version.h"

#if __has_include("core/commit.h")
#include "core/commit.h"
#else
#define HZ_COMMIT "unknown"
#endif

const char hz_commit[] = HZ_COMMIT;
