# What the scripts of this folder share: where the library, the compiled programs and the other
# allocators are. Sourced, never run.
#
# Variables that a caller may set: HAKOZUNA_LIB (the preload library, absolute), HAKOZUNA_BENCH_BIN
# (a folder with the compiled spawn, pair and remote; without it they are compiled into a temporary
# folder), HAKOZUNA_PROFILES (names of profiles to compare, separated by blanks), CC.

bench_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root_folder=$(dirname "$bench_folder")

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Prints the preload library's path: HAKOZUNA_LIB, else what Bazel built. Fails when there is none.
find_library() {
  local lib=${HAKOZUNA_LIB:-$root_folder/bazel-bin/libhakozuna.so}
  [[ $lib == /* ]] || fail "HAKOZUNA_LIB is $lib; expected an absolute path (a relative one is" \
    "silently ignored once a program changes its folder)"
  [[ -r $lib ]] || fail "no library at $lib; build it (./hakozuna build) or set HAKOZUNA_LIB"
  echo "$lib"
}

# Sets `bin` to a folder with the compiled programs of this folder.
use_programs() {
  bin=${HAKOZUNA_BENCH_BIN:-}
  [[ -n $bin ]] && return
  bin=$(mktemp -d "${TMPDIR:-/tmp}/hakozuna-bench.XXXXXX")
  trap 'rm -rf "$bin"' EXIT
  local compile=("${CC:-gcc}" -std=c11 -D_GNU_SOURCE)
  "${compile[@]}" -O1 -static -o "$bin/spawn" "$bench_folder/spawn.c"
  "${compile[@]}" -O1 -fno-builtin -o "$bin/pair" "$bench_folder/pair.c"
  "${compile[@]}" -O2 -pthread -o "$bin/remote" "$bench_folder/remote.c"
}

# Prints "NAME PATH" for each other allocator of Debian's that is installed.
installed_peers() {
  local name path
  while read -r name path; do
    path=$(ls -d /usr/lib/*-linux-gnu*/"$path" 2>/dev/null | head -n 1)
    [[ -n $path ]] && echo "$name $path"
  done <<'PEERS'
jemalloc libjemalloc.so.2
tcmalloc libtcmalloc_minimal.so.4
mimalloc libmimalloc.so.2
PEERS
}

# Prints one variant for bench/spawn per line: glibc, the peers, then our profiles of $1 (a library,
# or empty for none).
all_variants() {
  local name path profile
  echo "glibc"
  while read -r name path; do echo "$name LD_PRELOAD=$path"; done < <(installed_peers)
  [[ -n $1 ]] || return 0
  for profile in ${HAKOZUNA_PROFILES:-hz3}; do
    echo "$profile LD_PRELOAD=$1 HAKOZUNA_PROFILE=$profile"
  done
}
