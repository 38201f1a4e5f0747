#!/bin/bash
# Instructions per pair of malloc and free, counted exactly by callgrind, for the three local loops
# of pair.c under every allocator.
#
#   bench/pair.sh [-o]
#
# A figure is the difference of two runs divided by the difference of their pairs: what start-up,
# symbol lookup and first refills cost cancels out; the loop itself is included. -o: our profiles
# alone. HAKOZUNA_PROFILES and HAKOZUNA_LIB as in common.sh. Prints a row per allocator:
# name, single, batch, slots. Under valgrind address space is scarce: the arena reserves less there.
set -euo pipefail
source "$(dirname "$0")/common.sh"

instructions() { # LOOP PAIRS [VARIABLE=VALUE]...: prints how many instructions the whole run took
  local loop=$1 pairs=$2 output
  shift 2
  output=$(env "$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$bin/pair" "$loop" "$pairs" 2>&1) || fail "pair $loop $pairs failed under callgrind: $output"
  awk '/Collected/ { print $NF; found = 1 } END { exit !found }' <<<"$output"
}

per_pair() { # LOOP [VARIABLE=VALUE]...
  local loop=$1 few=100000 many=300000 low high
  shift
  low=$(instructions "$loop" "$few" "$@")
  high=$(instructions "$loop" "$many" "$@")
  awk -v a="$low" -v b="$high" -v n=$((many - few)) 'BEGIN { printf "%.1f\n", (b - a) / n }'
}

command -v valgrind >/dev/null || fail "valgrind is missing: apt-get install valgrind"
keep=. library=
[[ ${1-} == -o ]] && keep=HAKOZUNA_PROFILE
[[ -n ${HAKOZUNA_LIB-unset} ]] && library=$(find_library)
use_programs
printf '%-16s %8s %8s %8s\n' '# instructions' single batch slots
while read -r name settings; do
  # shellcheck disable=SC2086 # settings are words of the form VARIABLE=VALUE
  printf '%-16s %8s %8s %8s\n' "$name" "$(per_pair single $settings)" \
    "$(per_pair batch $settings)" "$(per_pair slots $settings)"
done < <(all_variants "$library" | grep "$keep")
