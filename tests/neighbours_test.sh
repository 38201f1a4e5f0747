#!/bin/bash
# Other allocators in the process: the library replaces those that it is there to replace, lets
# through those that pass calls on, and steps aside, in one line, where two would meet in one free.
. "$(dirname "$0")/support/harness.sh"

allocator=$programs/libneighbour.so

# steps_aside PROFILE WHAT PATTERN [NAME=VALUE]... COMMAND...: one message that matches, and "ok".
steps_aside() {
  local profile=$1 what=$2 pattern=$3
  shift 3
  run "$profile" "$@"
  expect_lines "$profile: $what" 1 "stepping aside in .*$pattern"
  grep -q '^ok$' "$work/out" || fail "$profile: $what: no 'ok' at the end"
}

# The setting that puts a library before ours; run keeps its hands off it for "none".
before_ours() { echo "LD_PRELOAD=$1:$library"; }

check_own_malloc() {
  local profile=$1
  steps_aside "$profile" "a program with its own malloc" \
    'the executable brings its own allocator \(it defines malloc\)' \
    "$programs/neighbour_own_malloc"
  grep -q '^own 3890$' "$work/out" || fail "$profile: the program's own malloc printed otherwise"
}

# How many libraries the last run's report counts as replaced.
replaced() {
  awk '$1 == "replaced_allocators" { print $2 }' "$work/err"
}

check_replaced() {
  local profile=$1
  run "$profile" HAKOZUNA_STATS=text LD_PRELOAD="$allocator" "$programs/neighbour_user" ours
  if [ "$status" -eq 0 ] && [ "$(replaced)" = 1 ] && ! grep -q 'stepping aside' "$work/err"; then
    pass
  else
    fail "$profile: an allocator behind ours is not replaced, expected replaced_allocators 1"
  fi
}

check_order() {
  local profile=$1
  steps_aside none "an allocator before ours" 'libneighbour.so brings its own allocator' \
    HAKOZUNA_PROFILE="$profile" "$(before_ours "$allocator")" "$programs/neighbour_user" theirs
  run none HAKOZUNA_PROFILE="$profile" "$(before_ours "$programs/libforwarding.so")" \
    "$programs/neighbour_user" forwarded
  expect "$profile: a library before ours that passes calls on"
}

check_block_functions() {
  local profile=$1
  steps_aside "$profile" "a library that uses mallocx" \
    "libmallocx_user.so uses another allocator's functions beside malloc \(mallocx\)" \
    LD_PRELOAD="$allocator:$programs/libmallocx_user.so" "$programs/neighbour_user" theirs
  ends_well "$profile" "a library that asks whether there is a mallocx" \
    LD_PRELOAD="$allocator:$programs/libmallocx_asker.so" "$programs/neighbour_user" ours
}

# ---- real neighbours

# The packaged redis-server is linked with jemalloc and asks it for statistics only.
check_redis() {
  local profile=$1 jemalloc
  run "$profile" HAKOZUNA_STATS=text redis-server --version
  if [ "$status" -ne 0 ] || grep -q 'stepping aside' "$work/err" || [ "$(replaced)" != 1 ]; then
    fail "$profile: redis-server is not served, expected replaced_allocators 1"
  else
    pass
  fi
  jemalloc=$(ldd "$(command -v redis-server)" | awk '/libjemalloc/ { print $3 }')
  run none HAKOZUNA_PROFILE="$profile" "$(before_ours "$jemalloc")" redis-server --version
  expect_lines "$profile: redis-server with jemalloc preloaded first" 1 \
    'stepping aside in redis-server: .*libjemalloc.* brings its own allocator'
}

# sanitized_COMPILER_SANITIZER; with an argument the program uses a block after its free.
build_sanitized() {
  local sanitizer
  cat > "$work/sanitized.cc" <<'C'
#include <cstdio>
#include <malloc.h>
#include <string>
#include <thread>
#include <vector>
int main(int argc, char **) {
  std::vector<std::string> words(1000, std::string(100, 'x'));
  std::thread([&] { words.push_back("from a thread"); }).join();
  char *block = new char[10];
  delete[] block;
  if (argc > 1) *const_cast<volatile char *>(block) = 1;
  malloc_trim(0);
  puts(words.size() == 1001 ? "ok" : "wrong");
}
C
  for sanitizer in address thread; do
    g++ -fsanitize=$sanitizer -o "$work/sanitized_gcc_$sanitizer" "$work/sanitized.cc" -pthread
    clang++-14 -fsanitize=$sanitizer -o "$work/sanitized_clang_$sanitizer" "$work/sanitized.cc" \
      -pthread
  done
}

# The address sanitizer insists on being first; it is told that this is intended.
check_sanitizers() {
  local profile=$1 compiler sanitizer
  for compiler in gcc clang; do
    for sanitizer in address thread; do
      steps_aside "$profile" "a program under $compiler's $sanitizer sanitizer" \
        'has a sanitizer \(__[at]san_init\)' \
        ASAN_OPTIONS=verify_asan_link_order=0 "$work/sanitized_${compiler}_$sanitizer"
    done
    run "$profile" ASAN_OPTIONS=verify_asan_link_order=0 "$work/sanitized_${compiler}_address" bug
    if [ "$status" -ne 0 ] && grep -q 'ERROR: AddressSanitizer: heap-use-after-free' "$work/err"
    then
      pass
    else
      fail "$profile: $compiler's address sanitizer does not find a use after free"
    fi
  done
}

build_sanitized
for profile in $(default_profiles); do
  check_own_malloc "$profile"
  check_replaced "$profile"
  check_order "$profile"
  check_block_functions "$profile"
  check_redis "$profile"
  check_sanitizers "$profile"
done
finish
