#!/bin/bash
# Every budget of the library with what was measured: a line each, and exit code 1 if one is over.
#
#   bench/budgets.sh [NAME...]     names: pairs start choice text; default: all
#
# pairs: instructions of malloc(64) and free, counted by callgrind. start: what `true` costs more
# under the library, in time and peak RSS. choice: what the jump through the table costs over direct
# calls of the same line. text: the library's size. Variables: common.sh.
set -euo pipefail
source "$(dirname "$0")/common.sh"

start_rounds=100 over=0

# Prints a line; figure must not be greater than budget ("none": nothing is asked of it).
verdict() { # name, figure, budget, unit
  local word=ok
  [[ $2 =~ ^-?[0-9.]+$ ]] || fail "$1: \"$2\" is not a figure; what was measured is above"
  [[ $3 == none ]] && word=-
  awk -v f="$2" -v b="$3" 'BEGIN { exit b != "none" && f > b }' || word=over
  printf '%-34s %9s  budget %7s %-12s %s\n' "$1" "$2" "$3" "$4" "$word"
  [[ $word != over ]] || over=1
}

# Instructions per pair that a line may need; the other allocators' figures are `hakozuna bench
# instructions`.
pair_budget() { # profile
  case $1 in
    hz3*) echo 45 ;;
    hz6-strict) echo 210 ;;
    hz4* | hz6*) echo 55 ;;
    hz5*) echo 70 ;;
    *) echo 100 ;;
  esac
}

check_pairs() {
  local profiles profile figure
  require_valgrind
  profiles=$(our_profiles)
  for profile in $profiles; do
    figure=$(instructions_per_pair "LD_PRELOAD=$library" "HAKOZUNA_PROFILE=$profile" \
      "$bin/pair" loop=single)
    # The loop takes a whole number; the fraction is slow work that fell into the longer run.
    figure=$(printf '%.0f' "$figure")
    verdict "pair of malloc(64), $profile" "$figure" "$(pair_budget "$profile")" instructions
  done
}

# The median of a figure of an allocator in a file of `hakozuna compare --json`.
median_of() { # file, allocator, figure
  python3 - "$@" <<'PYTHON'
import json, sys
path, allocator, figure = sys.argv[1:]
results = json.load(open(path))["lanes"][0]["results"]
print(next(r[figure]["median"] for r in results if r["allocator"] == allocator))
PYTHON
}

per_cent_over() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f\n", 100 * (a - b) / b }'; }

# The library by its path, without a profile's name: as a service has it that was told nothing.
check_start() {
  local figures
  figures=$(mktemp)
  "$command_line" compare -n "$start_rounds" -p glibc --peer "ours=$library" --json "$figures" \
    -- true >/dev/null
  verdict "start of true, over glibc" "$(over_glibc "$figures" speed 1e6)" 200 microseconds
  verdict "peak RSS of true, over glibc" "$(over_glibc "$figures" peak_kib 1)" 400 KiB
  rm -f "$figures"
}

over_glibc() { # file, figure, factor
  local ours glibc
  ours=$(median_of "$1" ours "$2")
  glibc=$(median_of "$1" glibc "$2")
  awk -v a="$ours" -v b="$glibc" -v f="$3" 'BEGIN { printf "%.0f\n", f * (a - b) }'
}

# The budget is for loops that hold blocks. The loop of malloc(64) and free alone, where two jumps
# meet nothing that could hide them, is printed as the worst case.
check_choice() {
  local loop limit direct through
  require_valgrind
  [[ -x $choose ]] || fail "no program at $choose; build it (bazel build //bench/choose) or set" \
    "HAKOZUNA_CHOOSE"
  for loop in single batch slots; do
    limit=5
    [[ $loop == single ]] && limit=none
    direct=$(instructions_per_pair "$choose" direct "$loop")
    through=$(instructions_per_pair "$choose" table "$loop")
    verdict "choice at run time, $loop" "$(per_cent_over "$through" "$direct")" "$limit" '% instr.'
    through=$("$choose" compare "$loop" pairs=200000)
    verdict "choice at run time, $loop" "${through##*percent=}" "$limit" '% time'
  done
}

check_text() {
  verdict "text of the library" "$(size "$library" | awk 'NR == 2 { printf "%.0f", $1 / 1024 }')" \
    256 KiB
}

require_library
use_programs
(($# > 0)) || set -- pairs start choice text
for name; do
  declare -F "check_$name" >/dev/null || fail "no budget is called $name; expected: pairs start" \
    "choice text"
  "check_$name"
done
exit "$over"
