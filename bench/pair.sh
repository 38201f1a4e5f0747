#!/bin/bash
# Instructions per pair of malloc and free, counted exactly by callgrind, for the local loops of
# pair.c under every allocator.
#
#   bench/pair.sh [-o] [LOOP...]
#
# -o: our profiles alone. LOOP: single, batch, slots (loops.h); default: all three. A row per
# allocator: name, a figure per loop. Variables: common.sh.
set -euo pipefail
source "$(dirname "$0")/common.sh"

require_valgrind
variants=$(our_variants all)
if [[ ${1-} == -o ]]; then
  shift
else
  variants=$(echo glibc && peer_variants && echo "$variants")
fi
loops=("$@")
(($# > 0)) || loops=(single batch slots)
use_programs
printf '%-20s' '# instructions'
printf ' %8s' "${loops[@]}"
echo
while read -r name settings; do
  [[ -n $name ]] || continue
  printf '%-20s' "$name"
  for loop in "${loops[@]}"; do
    # shellcheck disable=SC2086 # settings are words of the form VARIABLE=VALUE
    figure=$(instructions_per_pair $settings "$bin/pair" "$loop")
    printf ' %8s' "$figure"
  done
  echo
done <<<"$variants"
