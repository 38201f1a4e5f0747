#!/bin/bash
# The `remote` lanes under every allocator, interleaved: medians of million operations per second
# and of peak RSS, with least and greatest.
#
#   bench/lanes.sh [-n ROUNDS] [-x FACTOR] [-g] [-o] [LANE...]
#
# -n: rounds (default 5). -x: multiplies the steps of each lane (default 1). -g: glibc's allocator
# too, which needs ten times the time and 5 GiB in some lanes. -o: ours alone, without the peers.
# LANE: names of the table below, or a part of them ("t2_"); default: all of them. Of ours the
# default profile of each line runs, or HZ_BENCH_PROFILES="hz3 hz3-r90"; further variables: common.sh.
set -euo pipefail
source "$(dirname "$0")/common.sh"

# lane           threads steps   ws  min   max    remote ring  touch
lanes_table() {
  cat <<'TABLE'
T16_guard_r0     16      6000000 400 16    2048   0      65536 0
T16_guard_r90    16      3000000 400 16    2048   90     65536 0
T16_main_r0      16      6000000 400 16    32768  0      65536 0
T16_main_r50     16      1500000 400 16    32768  50     65536 0
T16_main_r90     16      1200000 400 16    32768  90     65536 0
T16_cross128_r90 16      600000  400 16    131072 90     65536 0
T16_touch_r50    16      1000000 400 16    32768  50     1024  256
t2_main_r0       2       40000000 400 16   32768  0      4096  0
t2_main_r90      2       12000000 400 16   32768  90     4096  0
t2_guard_r90     2       25000000 400 16   2048   90     4096  0
t2_cross128_r90  2       6000000 400 16    131072 90     4096  0
t2_touch_r50     2       8000000 400 16    32768  50     4096  256
t2_touch64_r50   2       8000000 400 16    32768  50     4096  64
TABLE
}

rounds=5 factor=1 others=peer_variants
while getopts 'n:x:go' option; do
  case $option in
    n) rounds=$OPTARG ;;
    x) factor=$OPTARG ;;
    g) others='echo glibc && peer_variants' ;;
    o) others=: ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))

list=$(eval "$others" && our_variants defaults)
mapfile -t variants < <(grep . <<<"$list")
((${#variants[@]} > 0)) || fail "nothing to compare: no peer is installed and no library is given"
use_programs

wanted() { # lane, patterns...
  local lane=$1 pattern
  shift
  (($# == 0)) && return
  for pattern; do [[ $lane == *"$pattern"* ]] && return; done
  return 1
}

# After a table: each of our profiles' share of the best other allocator of the same run.
print_ratios() {
  awk '$1 == "glibc" || $1 ~ /^(jemalloc|tcmalloc|mimalloc)$/ {
         if ($2 + 0 > best) { best = $2; name = $1 }
         next
       }
       $1 != "#" && $2 != "failed" { ours[++n] = $1; mops[n] = $2 }
       END { for (i = 1; best && i <= n; i++) printf "%s: %.2f of %s\n", ours[i], mops[i] / best, name }'
}

failed=0
while read -r lane threads steps rest; do
  wanted "$lane" "$@" || continue
  steps=$(awk -v a="$steps" -v b="$factor" 'BEGIN { printf "%d", a * b }')
  read -ra rest_words <<<"$rest"
  echo "== $lane: remote $threads $steps ${rest_words[*]}, $rounds rounds"
  table=$("$bin/spawn" -k mops -k heap_kib -k remote -t 60 "$rounds" "${variants[@]}" -- \
    "$bin/remote" "$threads" "$steps" "${rest_words[@]}") || failed=1
  echo "$table"
  print_ratios <<<"$table"
done < <(lanes_table)
exit "$failed"
