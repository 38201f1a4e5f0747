# What the scripts of this folder share: where the library, the command and the compiled programs
# are, and how instructions are counted. Sourced, never run.
#
# Variables that a caller may set:
#   HAKOZUNA_LIB        the preload library, absolute; default: what Bazel built
#   HAKOZUNA_CLI        the command; default: what Bazel built
#   HZ_BENCH_PROFILES   names of profiles, separated by blanks, in place of all
#   HAKOZUNA_BENCH_BIN  a folder with the compiled pair and remote; default: they are compiled
#   HAKOZUNA_CHOOSE     the compiled choose/choose.c; default: what Bazel built
#   CC                  the compiler, default gcc
# They are taken over here and removed, so that no measured program sees them.

shopt -s inherit_errexit
bench_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root_folder=$(dirname "$bench_folder")
library=${HAKOZUNA_LIB-$root_folder/bazel-bin/libhakozuna.so}
command_line=${HAKOZUNA_CLI:-$root_folder/bazel-bin/hakozuna}
profiles_wanted=${HZ_BENCH_PROFILES:-}
bin=${HAKOZUNA_BENCH_BIN:-}
choose=${HAKOZUNA_CHOOSE:-$root_folder/bazel-bin/bench/choose/choose}
unset LD_PRELOAD "${!HAKOZUNA_@}"

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

require_library() {
  [[ $library == /* ]] || fail "HAKOZUNA_LIB is \"$library\"; expected an absolute path (the loader" \
    "silently ignores a relative one once a program changes its folder)"
  [[ -r $library ]] || fail "no library at $library; build it (./hakozuna build) or set HAKOZUNA_LIB"
}

require_valgrind() {
  command -v valgrind >/dev/null || fail "valgrind is missing: apt-get install valgrind"
}

# Sets `bin` to a folder with the compiled programs of this folder.
use_programs() {
  [[ -n $bin ]] && return
  bin=$(mktemp -d "${TMPDIR:-/tmp}/hakozuna-bench.XXXXXX")
  trap 'rm -rf "$bin"' EXIT
  local compile=("${CC:-gcc}" -std=c11 -D_GNU_SOURCE)
  "${compile[@]}" -O1 -fno-builtin -pthread -o "$bin/pair" "$bench_folder/pair.c"
  "${compile[@]}" -O2 -fno-builtin -pthread -o "$bin/remote" "$bench_folder/remote.c"
}

# Prints names of profiles: those that the caller wants, else every one.
our_profiles() {
  if [[ -n $profiles_wanted ]]; then
    tr -s ' ' '\n' <<<"$profiles_wanted"
  elif [[ -x $command_line ]]; then
    "$command_line" profiles --plain | cut -f 1
  else
    fail "no command at $command_line to ask for the profiles; build it (./hakozuna build) or set" \
      "HZ_BENCH_PROFILES"
  fi
}

# Instructions that a pair of malloc and free takes in a loop of a program: the difference of two
# runs under callgrind over the difference of their pairs, so that start-up, symbol lookup and first
# refills cancel out. The loop's own are included.
#   instructions_per_pair [VARIABLE=VALUE]... PROGRAM ARGUMENT...     (pairs=N is appended)
instructions_per_pair() {
  local few=100000 many=500000 low high
  low=$(instructions_of "$@" "pairs=$few")
  high=$(instructions_of "$@" "pairs=$many")
  awk -v a="$low" -v b="$high" -v n=$((many - few)) 'BEGIN { printf "%.1f\n", (b - a) / n }'
}

# Instructions of a whole run. Valgrind offers little address space: the arena reserves less there.
instructions_of() { # [VARIABLE=VALUE]... PROGRAM ARGUMENT...
  local settings=() output
  while [[ $1 == *=* ]]; do settings+=("$1") && shift; done
  output=$(env "${settings[@]}" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$@" 2>&1) || fail "$* failed under callgrind: $output"
  awk '/Collected/ { print $NF; found = 1 } END { exit !found }' <<<"$output"
}
