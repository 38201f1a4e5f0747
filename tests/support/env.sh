# Where a runner finds what it tests, unless its caller has said so:
#
# HAKOZUNA_LIB       the preload library
# HAKOZUNA_CLI       the command
# HAKOZUNA_PROGRAMS  the folder of the programs built from tests/programs
# HAKOZUNA_BENCH_BIN the folder of the programs built from bench
#
# Under Bazel these lie in the test's runfiles; started by hand, in the last build's bazel-bin.
# Sourced by bash.

if [[ -n ${TEST_SRCDIR:-} ]]; then
  built=$TEST_SRCDIR/$TEST_WORKSPACE
else
  built=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/bazel-bin
fi

export HAKOZUNA_LIB=${HAKOZUNA_LIB:-$built/libhakozuna.so}
export HAKOZUNA_CLI=${HAKOZUNA_CLI:-$built/hakozuna}
export HAKOZUNA_PROGRAMS=${HAKOZUNA_PROGRAMS:-$built/tests}
export HAKOZUNA_BENCH_BIN=${HAKOZUNA_BENCH_BIN:-$built/bench}
# Servers live in sbin, which a plain user's PATH leaves out.
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
unset built
