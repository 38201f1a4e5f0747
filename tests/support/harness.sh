# Sourced by the test scripts: finds the library, the command and the programs, runs programs under
# a profile, and counts checks.
#
# HAKOZUNA_LIB, HAKOZUNA_CLI and HAKOZUNA_PROGRAMS may be set by hand; otherwise env.sh derives
# them. HAKOZUNA_TEST_PROFILES narrows the profiles. $work is a folder that disappears at the end.

set -u -o pipefail
support=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${HAKOZUNA_LIB:-}" ] || [ -z "${HAKOZUNA_PROGRAMS:-}" ]; then
  . "$support/env.sh"
fi
for variable in HAKOZUNA_LIB HAKOZUNA_PROGRAMS; do
  if [ ! -e "${!variable:-}" ]; then
    echo "$variable names '${!variable:-}', which does not exist: build first, or set it" >&2
    exit 66
  fi
done
# The programs under test must not see our variables: the library reports unknown HAKOZUNA_ names.
library=$(realpath "$HAKOZUNA_LIB")
programs=$(realpath "$HAKOZUNA_PROGRAMS")
command_line=${HAKOZUNA_CLI:-}
chosen_profiles=${HAKOZUNA_TEST_PROFILES:-}
for variable in $(compgen -e HAKOZUNA_); do unset "$variable"; done
unset LD_PRELOAD
export LC_ALL=C
ulimit -c 0

work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/hakozuna-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/no-config
passed=0
failed=0

# The names of all profiles, or those of HAKOZUNA_TEST_PROFILES, one a line.
profiles() {
  if [ -n "$chosen_profiles" ]; then
    tr -s ' ' '\n' <<< "$chosen_profiles"
  elif [ -x "$command_line" ] && "$command_line" profiles > "$work/profiles" 2> /dev/null; then
    awk '$1 ~ /^hz[0-9]/ { print $1 }' "$work/profiles"
  else
    printf '%s\n' hz3 hz3-fast hz3-r50 hz3-r90 hz3-lowmem hz4 hz4-rss hz5
  fi
}

# The first profile of every line, and those that keep least memory: what costs seconds per profile
# runs where the parameters differ most.
extreme_profiles() {
  {
    default_profiles
    profiles | grep -E -e '-(lowmem|rss)$'
  } | awk '!seen[$0]++'
}

# The first profile of every line.
default_profiles() {
  local profile seen=" "
  for profile in $(profiles); do
    case $seen in *" ${profile%%-*} "*) continue ;; esac
    seen="$seen${profile%%-*} "
    echo "$profile"
  done
}

# run PROFILE [NAME=VALUE]... COMMAND...: runs it under the library (PROFILE "none": without),
# leaving its exit code in $status and its output in $work/out and $work/err.
run() {
  local profile=$1
  shift
  local settings=()
  while [[ $1 == *=* ]]; do
    settings+=("$1")
    shift
  done
  if [ "$profile" != none ]; then
    # A setting of LD_PRELOAD goes behind the library instead of replacing it.
    local index preload=$library
    for index in "${!settings[@]}"; do
      case ${settings[index]} in LD_PRELOAD=*) preload=$library:${settings[index]#*=} ;; esac
    done
    settings+=("HAKOZUNA_PROFILE=$profile" "LD_PRELOAD=$preload")
  fi
  ran="$profile: $*"
  # The braces swallow the shell's own word on a program that dies of a signal.
  {
    timeout -k 5 "${seconds:-120}" env "${settings[@]}" "$@" \
      < /dev/null > "$work/out" 2> "$work/err"
  } 2> /dev/null
  status=$?
  [ $status -ne 124 ] || echo "timed out after ${seconds:-120} s" >> "$work/err"
}

pass() { passed=$((passed + 1)); }

# fail WHAT: counts and shows a failure of the last run.
fail() {
  failed=$((failed + 1))
  echo "FAILED: $1"
  echo "  ran: $ran"
  sed -n 's/^/  out: /p' "$work/out" | tail -n 12
  sed -n 's/^/  err: /p' "$work/err" | tail -n 12
}

# expect WHAT [STATUS]: the last run ended with STATUS (0) and the library had nothing to say.
expect() {
  if [ "$status" -ne "${2:-0}" ]; then
    fail "$1: exit code $status, expected ${2:-0}"
  elif grep -q '^hakozuna: ' "$work/err"; then
    fail "$1: a message of the library, expected none"
  else
    pass
  fi
}

# expect_lines WHAT COUNT PATTERN: exit code 0 and exactly COUNT messages of the library, each of
# them matching the extended regular expression.
expect_lines() {
  local all matching
  all=$(grep -c '^hakozuna: ' "$work/err")
  matching=$(grep -c -E "^hakozuna: .*($3)" "$work/err")
  if [ "$status" -ne 0 ]; then
    fail "$1: exit code $status, expected 0"
  elif [ "$all" -ne "$2" ] || [ "$matching" -ne "$2" ]; then
    fail "$1: $all messages of the library, $matching with '$3', expected $2"
  else
    pass
  fi
}

# ends_well PROFILE WHAT [NAME=VALUE]... COMMAND...: runs it; it ends well, its output has a line
# "ok", and the library is silent.
ends_well() {
  local profile=$1 what=$2
  shift 2
  run "$profile" "$@"
  if [ "$status" -eq 0 ] && ! grep -q '^ok$' "$work/out"; then
    fail "$profile: $what: no 'ok' at the end"
  else
    expect "$profile: $what"
  fi
}

# Prints the sum and ends the script: the last call of every script.
finish() {
  echo "$(basename "$0"): $passed passed, $failed failed"
  [ $failed -eq 0 ] && [ $passed -gt 0 ]
  exit
}
