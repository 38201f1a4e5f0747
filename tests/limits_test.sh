#!/bin/bash
# Under limits of the address space programs run, or get NULL with ENOMEM: nothing crashes, no block
# is lost, and memory that was freed can be had again.
. "$(dirname "$0")/support/harness.sh"

# run_limited MIB PROFILE COMMAND...: as run; the limit holds for the command alone.
run_limited() {
  local mib=$1 profile=$2
  shift 2
  run "$profile" /bin/bash -c 'ulimit -v "$1" && shift && exec "$@"' limited $((mib * 1024)) "$@"
}

check_fill() {
  local mib=$1 profile=$2 mix=$3
  run_limited "$mib" "$profile" "$programs/limits_fill" "$mix"
  expect "$profile: $mix blocks until $mib MiB are full"
}

# A real program prints the same as without the library, where it runs at all without it.
check_program() {
  local mib=$1 profile=$2
  shift 2
  run_limited "$mib" none "$@"
  if [ "$status" -ne 0 ]; then return; fi
  cp "$work/out" "$work/out.expected"
  run_limited "$mib" "$profile" "$@"
  if [ "$status" -eq 0 ] && ! cmp -s "$work/out" "$work/out.expected"; then
    fail "$profile: $1 in $mib MiB prints something else than without the library"
  else
    expect "$profile: $1 in $mib MiB"
  fi
}

check_programs() {
  check_program "$1" "$2" bash -c 'for i in {1..2000}; do words+=" $i"; done; echo "${#words}"'
  check_program "$1" "$2" python3 -c 'print(sum(len(str(i)) for i in list(range(100000))))'
  check_program "$1" "$2" perl -e '$h{$_} = "x" x $_ for 1..2000; print scalar(keys %h), "\n"'
  check_program "$1" "$2" sort --buffer-size=8M --parallel=2 /etc/services
}

check_threads_and_cxx() {
  run_limited "$1" "$2" "$programs/limits_threads"
  expect "$2: threads until $1 MiB are full"
  run_limited "$1" "$2" "$programs/limits_new"
  expect "$2: C++ containers until $1 MiB are full"
}

# The limit comes when the heap has its address space already.
check_late_limit() {
  local mib=$1 profile=$2 mix
  for mix in tiny medium large; do
    run "$profile" "$programs/limits_fill" $mix "$mib"
    expect "$profile: $mix blocks under a later limit of $mib MiB"
  done
}

# check_limit MIB PROFILE MIX...
check_limit() {
  local mib=$1 profile=$2 mix
  shift 2
  for mix in "$@"; do check_fill "$mib" "$profile" $mix; done
  check_threads_and_cxx "$mib" "$profile"
  check_programs "$mib" "$profile"
}

check_limit 64 none tiny small medium runs large all
for profile in $(profiles); do check_limit 64 "$profile" tiny small medium runs large all; done
for profile in $(default_profiles); do
  check_limit 128 "$profile" small runs
  check_limit 512 "$profile" medium large
  check_late_limit 256 "$profile"
done
finish
