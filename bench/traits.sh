#!/bin/bash
# What each profile gives, as counts of the library's own report: a row that changes nothing
# measurable is one too many.
#
#   bench/traits.sh
#
# Prints a line per profile: name, what was counted, its figure, the figure of the profile that it is
# compared with, the factor that must be reached at least, ok or over. Exit 1: a trait does not show.
# Counts, not times: a noisy machine changes them little; memory has a wide margin.
set -euo pipefail
source "$(dirname "$0")/common.sh"
use_programs

# count PROFILE EXPRESSION [PROGRAM] ARGUMENT...: the mean of an expression over the report and what
# the program prints (peak_kib: the peak of resident memory), of runs of PROGRAM (remote) with three
# seeds: how often a magazine runs empty is chance, and differs by a third from one seed to the next.
count() {
  local seed
  for seed in 1 2 3; do count_once "$@" seed=$seed; done |
    awk '{ sum += $1 } END { printf "%d", sum / NR }'
}

# The same for one run, without the rest at its end.
count_once() {
  local profile=$1 expression=$2 program=remote report printed
  shift 2
  if [[ $1 != *=* ]]; then
    program=$1
    shift
  fi
  report=$(mktemp)
  printed=$(env HAKOZUNA_PROFILE="$profile" HAKOZUNA_STATS="json:$report" LD_PRELOAD="$library" \
    "$bin/$program" "$@" rest_ms=0)
  python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
names = {k: v["value"] for kind in ("counters", "gauges") for k, v in report[kind].items()}
for pair in sys.argv[3].split():
    key, _, value = pair.partition("=")
    try: names[key] = float(value)
    except ValueError: pass
print(eval(sys.argv[2], {}, names))' "$report" "$expression" "$printed"
  rm -f "$report"
}

verdict=0
# trait PROFILE OTHER TEXT EXPRESSION FACTOR ARGUMENT...: the figure of the profile OTHER is FACTOR
# times as large, or more.
trait() {
  local profile=$1 other=$2 text=$3 expression=$4 factor=$5 ours base word=ok
  shift 5
  ours=$(count "$profile" "$expression" "$@")
  base=$(count "$other" "$expression" "$@")
  awk -v a="$ours" -v b="$base" -v f="$factor" 'BEGIN { exit !(b >= a * f) }' || word=over verdict=1
  printf '%-24s %-38s %9d  %s %9d  at least %s times less  %s\n' \
    "$profile" "$text" "$ours" "$other" "$base" "$factor" "$word"
}

trait hz3-fast hz3 'slow paths, local work' 'refills + overflows' 2 threads=1 steps=8000000 ws=4000 min=16 max=4096 remote=0 ring=4096
trait hz3-r50 hz3 'packets, half of the frees remote' 'remote_batches' 1.5 threads=4 steps=500000 ws=400 min=16 max=1024 remote=50 ring=4096
trait hz3-r90 hz3 'packets, most frees remote' 'remote_batches' 2.5 threads=4 steps=500000 ws=400 min=16 max=1024 remote=90 ring=4096
trait hz3-lowmem hz3 'KiB resident, 16 threads' 'peak_kib' 1.5 threads=16 steps=1000000 ws=400 min=16 max=2048 remote=90 ring=65536
trait hz4 hz3 'packets, most frees remote' 'remote_batches' 5 threads=4 steps=500000 ws=400 min=16 max=1024 remote=90 ring=4096
trait hz4-rss hz4 'KiB resident, 16 threads, touched' 'peak_kib' 1.4 threads=16 steps=200000 ws=100 min=16 max=2048 remote=90 ring=64 touch=2048
trait hz5 hz3 'KiB resident, 16 threads, untouched' 'peak_kib' 1.2 threads=16 steps=400000 ws=400 min=16 max=32768 remote=50 ring=4096
trait hz5-pagerun64-cross128 hz5 'run blocks from the arena, to 128 KiB' 'run_blocks' 4 threads=16 steps=100000 ws=400 min=16 max=131072 remote=90 ring=4096
trait hz5-large128-rss hz5 'KiB resident, to 1 MiB, touched' 'peak_kib' 2 threads=16 steps=300 ws=2 min=65537 max=1048576 remote=0 ring=64 touch=1048576
trait hz5-large128-source16 hz5 'run blocks from the arena, to 128 KiB' 'run_blocks' 4 threads=16 steps=100000 ws=400 min=65537 max=131072 remote=90 ring=4096
trait hz5-large128-transfer128 hz5-large128-source16 'run blocks from the arena, to 128 KiB' 'run_blocks' 1.5 threads=16 steps=100000 ws=400 min=65537 max=131072 remote=90 ring=4096
trait hz5-local2p hz5 'slow paths, 64 KiB blocks, local' 'refills + run_blocks' 10 threads=2 steps=200000 ws=400 min=65536 max=65536 remote=0 ring=64
trait hz6 hz3 'KiB resident, 16 threads, touched' 'peak_kib' 1.1 threads=16 steps=400000 ws=400 min=16 max=32768 remote=50 ring=65536 touch=64
trait hz6-speed hz6 'slow paths, local work' 'refills + overflows' 2 threads=1 steps=8000000 ws=4000 min=16 max=4096 remote=0 ring=4096
trait hz6-remote hz6 'run blocks from the arena, to 128 KiB' 'run_blocks' 2 threads=16 steps=100000 ws=400 min=16 max=131072 remote=90 ring=4096
trait hz6-percpu hz6-remote 'KiB resident, 200 threads, touched' 'peak_kib' 1.5 threads=200 steps=20000 ws=20 min=16 max=2048 remote=90 ring=64 touch=2048
trait hz6-rss hz6 'KiB resident, 16 threads, touched' 'peak_kib' 1.4 threads=16 steps=200000 ws=100 min=16 max=2048 remote=90 ring=64 touch=2048
trait hz6 hz6-strict 'blocks given back to owners, in 1,000' '1 + remote_frees / 1000' 50 threads=4 steps=200000 ws=400 min=16 max=1024 remote=90 ring=4096
trait hz6-realloc-boundary hz6 'MiB copied by realloc' 'copied_mib' 2 grow steps=300000
exit $verdict
