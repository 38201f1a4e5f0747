#!/bin/bash
# At home in every process: libraries that come late, small stacks, thread exits, filters of system
# calls, static programs, memory that has to go back, last words.
. "$(dirname "$0")/support/harness.sh"

check_loading() {
  local profile=$1
  ends_well "$profile" "a library with its own thread-local data" \
    "$programs/home_dlopen" tls "$programs/libown_tls.so"
  ends_well "$profile" "dlopen of the library itself" "$programs/home_dlopen" itself "$library"
  run "$profile" "$programs/home_dlopen" deepbind "$programs/libexchange.so"
  expect_lines "$profile: blocks change sides with an RTLD_DEEPBIND library" 1 RTLD_DEEPBIND
  check_runpath "$profile"
}

# The program's RUNPATH, not the library's, is searched for what the program loads by name.
build_runpath() {
  mkdir -p "$work/runpath/hidden"
  cp "$programs/libexchange.so" "$work/runpath/hidden/libhidden.so"
  cat > "$work/runpath/main.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void *library = dlopen("libhidden.so", RTLD_NOW);
  puts(library ? "ok" : dlerror());
  return library == NULL;
}
C
  gcc -o "$work/runpath/main" "$work/runpath/main.c" -ldl \
    -Wl,--enable-new-dtags,-rpath,'$ORIGIN/hidden'
}

check_runpath() {
  ends_well "$1" "dlopen by name through the program's RUNPATH" "$work/runpath/main"
}

check_threads() {
  local profile=$1
  ends_well "$profile" "1,000 threads with 64 KiB stacks" "$programs/home_threads" small_stacks
  ends_well "$profile" "1,000 threads with the least stacks" "$programs/home_threads" least_stacks
  ends_well "$profile" "10,000 short threads in turn" "$programs/home_threads" in_turn
  ends_well "$profile" "10,000 short threads, eight at a time" "$programs/home_threads" in_crews
  ends_well "$profile" "destructors that allocate in all rounds" \
    "$programs/home_threads" destructors
  ends_well "$profile" "thread_local destructors of C++" "$programs/home_thread_local"
  ends_well "$profile" "a thread that only frees" "$programs/home_consumer" "$(idle_share "$profile")"
}

# Per cent that resident memory may be over what is live.
idle_share() {
  case $1 in
    hz6-speed) echo 50 ;; # twice the magazines
    *) echo 30 ;;
  esac
}

check_records() {
  ends_well "$1" "records of 1 GiB of blocks of all sizes" "$programs/home_records" mixed
  ends_well "$1" "records of 1 GiB of small blocks" "$programs/home_records" small
}

check_filter() {
  ends_well "$1" "a filter that allows memory calls alone" "$programs/home_seccomp"
}

check_giving_back() {
  local profile=$1 mix
  for mix in small mixed large every_second; do
    ends_well "$profile" "malloc_trim gives $mix blocks back" "$programs/home_shrink" trim $mix
  done
  ends_well "$profile" "malloc_trim gives blocks of ended threads back" \
    "$programs/home_shrink" trim small 4
}

# These wait for as long as the library keeps what is idle.
check_idle() {
  local profile=$1
  ends_well "$profile" "idle small blocks go back" "$programs/home_shrink" idle small
  ends_well "$profile" "idle mixed blocks of ended threads go back" \
    "$programs/home_shrink" idle mixed 4
  ends_well "$profile" "idle large blocks go back" "$programs/home_shrink" idle large
  ends_well "$profile" "idle large blocks go back by calls for larger ones alone" \
    "$programs/home_shrink" idle_large huge
}

check_static() {
  run "$1" HAKOZUNA_STATS=text "$programs/static_hello"
  expect "$1: a static program is untouched"
  grep -q '^static$' "$work/out" || fail "$1: the static program printed otherwise"
}

# ---- last words

check_closed_stderr() {
  local profile=$1
  run "$profile" HAKOZUNA_STATS=text "$programs/home_report" closed
  if [ "$status" -eq 0 ] && grep -q refills "$work/err" && grep -q "$profile" "$work/err"; then
    pass
  else
    fail "$profile: no report after descriptor 2 was closed"
  fi
}

check_report_files() {
  local profile=$1 folder=$work/reports
  rm -rf "$folder"
  mkdir "$folder"
  run "$profile" HAKOZUNA_STATS="json:$folder/%p.json" "$programs/home_report" fork
  expect "$profile: reports of four processes into files"
  run none python3 -c '
import json, os, sys
folder = sys.argv[1]
names = sorted(os.listdir(folder))
assert len(names) == 4, "files are %s, expected 4" % names
for name in names:
    lines = open(os.path.join(folder, name)).read().splitlines()
    assert len(lines) == 1, "%s has %d lines, expected 1" % (name, len(lines))
    report = json.loads(lines[0])
    assert report["schema"] == 1, "schema is %s" % report["schema"]
    assert str(report["pid"]) + ".json" == name, "%s is of process %s" % (name, report["pid"])
    assert report["profile"] == sys.argv[2], "profile is %s" % report["profile"]
' "$folder" "$profile"
  expect "$profile: each report is one line of JSON about its own process"
}

# Without restartable sequences the profile that lives on them is another one, and says so once.
check_without_sequences() {
  run hz6-percpu GLIBC_TUNABLES=glibc.pthread.rseq=0 "$programs/home_threads" in_crews
  expect_lines "hz6-percpu without restartable sequences" 1 "restartable sequences"
}

build_runpath
# What a profile's parameters may change, then what is the same for all profiles of a line.
for profile in $(profiles); do
  check_threads "$profile"
  check_giving_back "$profile"
done
for profile in $(extreme_profiles); do check_idle "$profile"; done
if profiles | grep -qx hz6-percpu; then check_without_sequences; fi
for profile in $(default_profiles); do
  check_loading "$profile"
  check_records "$profile"
  check_filter "$profile"
  check_static "$profile"
  check_closed_stderr "$profile"
  check_report_files "$profile"
done
finish
