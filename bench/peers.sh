#!/bin/bash
# Builds the allocators that we compare with and that Debian does not package in a current version.
# Their sources are packed in crates, which cargo fetches; only a C and a C++ compiler touch them.
#
#   bench/peers.sh [--folder FOLDER]
#
# FOLDER (default: hakozuna/peers in $XDG_CACHE_HOME or ~/.cache) gets one folder per peer:
#   mimalloc3/libmimalloc.so   snmalloc/libsnmalloc.so   tcmalloc-google/libtcmalloc-google.so
#   NAME/about   one line that tells version, crate and compiler
#   NAME/recipe  what it was built from and how; a peer whose recipe is unchanged is left alone
# Each appears there whole or not at all.
#
# Debian's packages: cargo (or a cargo from elsewhere), gcc, g++. About a minute on two cores.
# Exit codes: 1 a peer could not be built, 2 wrong arguments, 69 a tool or the network is missing.
# One peer that fails does not stop the others.
set -uo pipefail
unset LD_PRELOAD CARGO_TARGET_DIR "${!HAKOZUNA_@}"
export LC_ALL=C
cc=${CC:-gcc}
cxx=${CXX:-g++}
newest_cargo_without_sparse=67 # 1.67: the index is a git repository of many hundred megabytes

# name, its own version, crate, the crate's version, the crate's SHA-256
peers=(
  "mimalloc3 3.3.2 libmimalloc-sys 0.1.49 \
6a45a52f43e1c16f667ccfe4dd8c85b7f7c204fd5e3bf46c5b0db9a5c3c0b8e9"
  "snmalloc 0.7.6 snmalloc-sys 0.7.6 \
f09c93c55f9a2b8dab75738a83c771231c5f408af65b8657433fe5bc93cc76cb"
  "tcmalloc-google 0.1.14 libtcmalloc-sys 0.1.14 \
33e204268a3b09862788a2894346c768b95b2cb29cba42c5e2bb9ea7f48fa317"
)

# The flags are those of each project's own release build of its preload library.
mimalloc3_flags=(-std=gnu11 -O3 -DNDEBUG -fPIC -fvisibility=hidden -ftls-model=initial-exec
  -fno-builtin-malloc -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -DMI_MALLOC_OVERRIDE
  -DMI_BUILD_RELEASE -DMI_CMAKE_BUILD_TYPE=release)
snmalloc_flags=(-std=gnu++20 -O3 -DNDEBUG -fPIC -fvisibility=hidden -ftls-model=initial-exec
  -fno-rtti -fomit-frame-pointer -ffunction-sections
  '-DSNMALLOC_EXPORT=__attribute__((visibility("default")))' -DMALLOC_USABLE_SIZE_QUALIFIER=const
  -DSNMALLOC_CHECK_LOADS=false -DSNMALLOC_PAGEID=false -DSNMALLOC_HAS_LINUX_FUTEX_H
  -DSNMALLOC_HAS_LINUX_RANDOM_H -DSNMALLOC_PLATFORM_HAS_GETENTROPY
  -DSNMALLOC_NO_REALLOCARR -DSNMALLOC_NO_REALLOCARRAY -DSNMALLOC_PTHREAD_ATFORK_WORKS
  -DSNMALLOC_USE_CXX11_THREAD_ATEXIT_DIRECT -DSNMALLOC_USE_WAIT_ON_ADDRESS=1)
# The crate's own, but for warnings and for what keeps malloc and free out of the library.
tcmalloc_google_flags=(-std=gnu++17 -O2 -DNDEBUG -DNOMINMAX -DTCMALLOC_INTERNAL_8K_PAGES -fPIC
  -fno-omit-frame-pointer -ftls-model=initial-exec)
[[ $(uname -m) == x86_64 ]] && snmalloc_flags+=(-mcx16)
[[ $(uname -m) == aarch64 ]] && mimalloc3_flags+=(-march=armv8.1-a)

say() { printf 'peers: %s\n' "$*" >&2; }

die() { # EXIT_CODE WORDS...
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# ---- fetching

need_tool() { # TOOL PACKAGE
  [[ -n $(command -v "$1") ]] && return
  say "$1 is missing; install it: apt-get install $2"
  return 69
}

# Prints the settings that an older cargo needs to ask for one crate without the whole index.
sparse_settings() {
  local minor
  minor=$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
  [[ -n $minor ]] && ((minor <= newest_cargo_without_sparse)) || return 0
  echo RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true
}

# Unpacks a crate into FOLDER/crates/CRATE. Mirrors and proxies of the user's cargo are respected.
fetch_crate() { # FOLDER CRATE VERSION SHA256
  local folder=$1 crate=$2 version=$3 sha256=$4 settings
  read -ra settings <<<"$(sparse_settings)"
  mkdir -p "$folder/src" && : >"$folder/src/lib.rs" &&
    cat >"$folder/Cargo.toml" <<MANIFEST || return 1
[package]
name = "peers"
version = "0.0.0"
edition = "2018"
[dependencies]
$crate = { version = "=$version", default-features = false }
MANIFEST
  if ! (cd "$folder" && env "${settings[@]}" timeout 300 \
    cargo vendor --quiet --respect-source-config crates) >"$folder/log" 2>&1 </dev/null; then
    cat "$folder/log" >&2
    say "cargo could not fetch the crate $crate $version: its message is above; its registry must" \
      "be reachable, perhaps through a mirror in ~/.cargo/config.toml"
    return 69
  fi
  grep -qF "\"package\":\"$sha256\"" "$folder/crates/$crate/.cargo-checksum.json" && return
  say "the crate $crate $version that cargo fetched has another checksum than $sha256, which" \
    "bench/peers.sh expects; nothing was built from it"
  return 1
}

# ---- building: each takes the crate's folder and the library to make

# No src/static.c: separate files, as in the project's own shared library.
build_mimalloc3() {
  local sources=$1/c_src/mimalloc/v3 name files=()
  for name in alloc alloc-aligned alloc-posix arena arena-meta bitmap heap init libc options os \
    page page-map random stats theap threadlocal prim/prim; do
    files+=("$sources/src/$name.c")
  done
  "$cc" "${mimalloc3_flags[@]}" -I "$sources/include" -shared -o "$2" "${files[@]}" -pthread -lrt
}

build_snmalloc() {
  local sources=$1/upstream/src
  "$cxx" "${snmalloc_flags[@]}" -I "$sources" -shared -static-libstdc++ -Wl,--no-undefined \
    -o "$2" "$sources"/snmalloc/override/{malloc,new}.cc -latomic
}

# The files that the crate's build.rs names; tcmalloc.cc in the place of the crate's bridges to Rust.
build_tcmalloc-google() {
  local objects=$1/objects
  # shellcheck disable=SC2016 # the inner shell expands it
  mkdir -p "$objects" && {
    sed -n 's/.*"\(c_src\/.*\.\(cc\|S\)\)".*/\1/p' "$1/build.rs" | grep -v bridge
    echo c_src/tcmalloc/tcmalloc/tcmalloc.cc
  } | (cd "$1" && xargs -P "$(nproc)" -I {} sh -c 'file=$1 && shift && exec "$@" -c "$file" \
    -o "objects/$(echo "$file" | tr / -).o"' sh {} "$cxx" "${tcmalloc_google_flags[@]}" -w \
    -I c_src/abseil-cpp -I c_src/tcmalloc) &&
    "$cxx" -shared -static-libstdc++ -static-libgcc -Wl,--no-undefined -o "$2" "$objects"/*.o -pthread
}

# True if a program that preloads the library runs, and its malloc is the library's.
check_library() { # LIBRARY FOLDER
  # shellcheck disable=SC2016 # the inner shell expands it
  env LD_PRELOAD="$1" LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$2/bindings" \
    bash -c 'for ((i = 0; i < 2000; i++)); do list[i]=$i$i; done; [[ ${list[1999]} == 19991999 ]]' \
    >"$2/log" 2>&1 </dev/null || return
  cat "$2"/bindings.* | grep -q "binding file bash \[0\] to $1 \[0\]: normal symbol .malloc'"
}

# ---- one peer

# Prints what a peer is built from and how.
recipe() { # NAME VERSION CRATE CRATE_VERSION SHA256
  local -n flags=${1//-/_}_flags
  echo "$*" "${flags[@]}"
}

is_current() { # NAME VERSION CRATE CRATE_VERSION SHA256
  [[ -r $folder/$1/recipe && -r $folder/$1/$(library_of "$1") &&
    $(<"$folder/$1/recipe") == "$(recipe "$@")" ]]
}

library_of() { echo "lib${1%3}.so"; } # NAME

# Prints the compiler's name and version, and how much it optimises.
compiler_of() { # NAME
  local -n flags=${1//-/_}_flags
  local compiler=$cxx
  [[ $1 == mimalloc3 ]] && compiler=$cc
  echo "${compiler##*/} $("$compiler" -dumpfullversion 2>/dev/null || "$compiler" -dumpversion)" \
    "$(printf '%s\n' "${flags[@]}" | grep -e '^-O')"
}

# Makes the folder of a peer as it shall be installed: $work/NAME.
make_peer() { # NAME VERSION CRATE CRATE_VERSION SHA256
  local ready=$work/$1 library
  library=$ready/$(library_of "$1")
  mkdir -p "$ready" "$work/$1.build" && fetch_crate "$work/$1.build" "$3" "$4" "$5" || return
  if ! "build_$1" "$work/$1.build/crates/$3" "$library" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    say "$1 $2 does not compile: the compiler's message is above"
    return 1
  fi
  if ! check_library "$library" "$work/$1.build"; then
    say "$1 $2 was built, but a program that preloads it does not run, or does not call its" \
      "malloc: $(<"$work/$1.build/log")"
    return 1
  fi
  strip --strip-debug "$library" 2>/dev/null
  echo "${1%3} $2, crate $3 $4, $(compiler_of "$1")" >"$ready/about" &&
    recipe "$@" >"$ready/recipe"
}

install_peer() { # NAME
  if [[ -e $folder/$1 ]]; then mv -T "$folder/$1" "$work/$1.old" || return; fi
  mv -T "$work/$1" "$folder/$1"
}

provide_peer() { # NAME VERSION CRATE CRATE_VERSION SHA256
  is_current "$@" && return
  need_tool cargo cargo || return
  if [[ $1 == mimalloc3 ]]; then need_tool "$cc" gcc; else need_tool "$cxx" g++; fi || return
  say "building $1 $2 (some seconds; tcmalloc-google about a minute)"
  make_peer "$@" && install_peer "$1"
}

# ---- the whole

take_arguments() {
  folder=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hakozuna/peers
  if (($# == 2)) && [[ $1 == --folder && -n $2 ]]; then folder=$2 && shift 2; fi
  (($# == 0)) || die 2 "the arguments are \"$*\"; expected: peers.sh [--folder FOLDER]"
  [[ $folder == /* ]] || folder=$PWD/$folder
  [[ $folder != *[[:space:]:]* ]] ||
    die 2 "the folder \"$folder\" has a blank or a colon in its name; LD_PRELOAD cannot hold that"
}

all_current() {
  local peer fields
  for peer in "${peers[@]}"; do
    read -ra fields <<<"$peer"
    is_current "${fields[@]}" || return
  done
}

# Sets `work`, a folder beside the results, so that moving them there is one step. Who comes second
# waits and finds everything done; what a killed run left is removed.
open_work() {
  mkdir -p "$folder" && exec {lock}>"$folder/.lock" ||
    die 73 "cannot write in $folder; name another one: peers.sh --folder FOLDER"
  flock "$lock"
  rm -rf "$folder"/.building.*
  work=$(mktemp -d "$folder/.building.XXXXXX") || die 73 "cannot write in $folder"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

take_arguments "$@"
all_current && exit 0
open_work
failed=()
verdict=0
for peer in "${peers[@]}"; do
  read -ra fields <<<"$peer"
  provide_peer "${fields[@]}"
  code=$?
  ((code == 0)) && continue
  failed+=("${fields[0]}")
  # 69 only if nothing else went wrong: then installing something is all that is to be done.
  ((code == 69 && (verdict == 0 || verdict == 69))) && verdict=69 || verdict=1
done
((verdict == 0)) || die "$verdict" "not there: ${failed[*]}; the reason is above"
