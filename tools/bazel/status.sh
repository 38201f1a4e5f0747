#!/bin/sh
# Prints what a build records of its origin: Bazel runs this before each build (.bazelrc).
#
# "-dirty" marks a tree that differs from its commit. Outside of version control: unknown.
commit=$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
echo "STABLE_COMMIT ${commit:-unknown}"
