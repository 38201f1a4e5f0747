#!/bin/bash
# Real programs behave under the library exactly as without it: the same stdout, the same exit code,
# nothing said on stderr, and the library really served them.
#
#   tests/preload_test.sh [CASE...]
#
# Each file of tests/preload is a case: a bash script whose head says
#   runs: always | default        under every profile, or under the default profile of each line
#   reports: PROGRAM... | none    programs that must have left a report at exit (shell patterns)
#   packages: PACKAGE...          Debian packages that hold its programs
# A case runs in an empty folder, once without the library and once per profile.
# HAKOZUNA_TEST_PROFILES="hz3 hz3-r90" restricts the profiles; further variables: support/env.sh.
set -uo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
profiles_wanted=${HAKOZUNA_TEST_PROFILES:-}
source "$(dirname "${BASH_SOURCE[0]}")/support/env.sh"
library=$HAKOZUNA_LIB
cli=$HAKOZUNA_CLI
# Not in TEST_TMPDIR: a socket below it would have a longer name than the kernel takes (108 bytes).
work=$(mktemp -d /tmp/preload.XXXXXX)
trap 'rm -rf "$work"' EXIT
# The distribution's own programs, not what a developer's PATH puts before them.
path=/usr/bin:/bin:/usr/sbin:/sbin
case_limit_s=90
passed=0 failed=0

pass() { passed=$((passed + 1)); }

fault() { # name, what is wrong, file with details
  failed=$((failed + 1))
  echo "FAILED $1: $2"
  [[ -s ${3:-} ]] && sed 's/^/    /' "$3" | head -n 20
}

# The words after "# KEY:" in the head of a case.
head_of() { sed -n "s/^# $2: *//p" "$here/preload/$1.sh"; }

# Runs a case with the given variables. Leaves $work/NAME.out, .err, and .code.
run_case() { # case, name for the results, [VARIABLE=VALUE]...
  local case_name=$1 result=$work/$2
  shift 2
  rm -rf "$work/run"
  mkdir "$work/run"
  (
    cd "$work/run" &&
      timeout -k 5 "$case_limit_s" env -i PATH="$path" HOME="$work/run" TMPDIR="$work/run" \
        LC_ALL=C TZ=UTC "$@" bash "$here/preload/$case_name.sh"
  ) >"$result.out" 2>"$result.err" </dev/null
  echo "$?" >"$result.code"
}

# Every program named in the case's head left a report that names the profile.
check_reports() { # case, profile, folder
  local pattern patterns reports
  read -ra patterns <<<"$(head_of "$1" reports)"
  for pattern in "${patterns[@]}"; do
    mapfile -t reports < <(compgen -G "$3/$pattern.*")
    if [[ $pattern == none ]]; then
      compgen -G "$3/untouched.*" >/dev/null && echo "a report of a program that has no loader"
    elif ((${#reports[@]} == 0)); then
      echo "no report of $pattern: the library did not serve it, or it did not end normally"
    elif ! grep -qE "\"profile\": ?\"$2\"" "${reports[@]}"; then
      echo "the report of $pattern does not name the profile $2: $(head -c 300 "${reports[0]}")"
    fi
  done
}

check_case() { # case, profile: compares with the run without the library
  local name="$1 under $2" plain=$work/plain.$1 ours=$work/ours reports=$work/reports
  rm -rf "$reports"
  mkdir "$reports"
  run_case "$1" ours LD_PRELOAD="$library" HAKOZUNA_PROFILE="$2" \
    HAKOZUNA_STATS="json:$reports/%e.%p" HAKOZUNA_STRICT=1
  if ! diff "$plain.out" "$ours.out" >"$work/difference"; then
    fault "$name" "stdout differs (< without, > with the library)" "$work/difference"
  elif ! diff "$plain.code" "$ours.code" >"$work/difference"; then
    fault "$name" "exit code $(<"$plain.code") without, $(<"$ours.code") with; stderr:" "$ours.err"
  elif grep -aE 'hakozuna:|LD_PRELOAD' "$ours.err" >"$work/said"; then
    fault "$name" "the library or the loader had something to say" "$work/said"
  else
    check_reports "$1" "$2" "$reports" >"$work/missing"
    if [[ -s $work/missing ]]; then
      fault "$name" "not proved that the library served it" "$work/missing"
    else
      pass
    fi
  fi
}

# The run without the library; fails when the case itself does not work on this machine.
prepare_case() {
  run_case "$1" "plain.$1"
  if grep -ah 'command not found' "$work/plain.$1.out" "$work/plain.$1.err" >"$work/said"; then
    fault "$1" "a program is missing: apt-get install $(head_of "$1" packages)" "$work/said"
    return 1
  fi
  if [[ ! -s $work/plain.$1.out || $(<"$work/plain.$1.code") == 124 ]]; then
    fault "$1" "does not work without the library (exit code $(<"$work/plain.$1.code"))" \
      "$work/plain.$1.err"
    return 1
  fi
}

# "PROFILE default" for the first profile of each line, "PROFILE other" for the rest.
list_profiles() {
  if [[ -n $profiles_wanted ]]; then
    printf '%s default\n' $profiles_wanted
  else
    "$cli" profiles --plain | awk -F'\t' '{ print $1, seen[$2]++ ? "other" : "default" }'
  fi
}

cases=("$@")
if ((${#cases[@]} == 0)); then
  for file in "$here"/preload/*.sh; do cases+=("$(basename "$file" .sh)"); done
fi
mapfile -t profiles < <(list_profiles)
((${#profiles[@]} > 0)) || fault profiles "\`$cli profiles --plain\` names none"
for name in "${cases[@]}"; do
  prepare_case "$name" || continue
  for row in "${profiles[@]}"; do
    read -r profile kind <<<"$row"
    [[ $kind == default || $(head_of "$name" runs) == always ]] && check_case "$name" "$profile"
  done
done
echo "$passed passed, $failed failed"
((failed == 0))
