#!/bin/bash
# `hakozuna bench`: which lanes there are, what a run writes, what is told of an allocator that is
# wrong, missing or not there at all, and that a run which is broken off keeps what it has.
#
# Runs are as short as they can be: nothing here is about a figure's size, except of instructions,
# which are counted. Needs python3 for JSON and a terminal, gnuplot for the page, valgrind.
source "$(dirname "$0")/support/env.sh"
bench_programs=$(realpath "$HAKOZUNA_BENCH_BIN")
source "$(dirname "$0")/support/harness.sh"
source "$(dirname "$0")/support/command.sh"
cd "$root" || exit 1
# The tool's own, which finds the programs of the lanes by it; the test is that they do not see it.
export HAKOZUNA_BENCH_BIN=$bench_programs

overlapping=$programs/liboverlapping.so
short=(-n 1 -s 0.02)

# no_run: the last run measured nothing, and so printed no table.
no_run() { quiet out; }

test_list() {
  returns 0 bench --list && quiet err
  local group lane touched='t16|t2|larson|pipeline|churn|random|aligned'
  for group in "16 threads" "2 threads" larson "producer and consumer" \
    "threads that come and go" "one thread" services "real programs" instructions; do
    if grep -q -x -F "$group" "$work/out"; then pass; else fail "no group \"$group\""; fi
  done
  # Every lane of blocks that nobody writes to has a twin that writes to them.
  for lane in $(grep -o -E "^  ($touched)[a-z0-9_]*" "$work/out"); do
    if grep -q -E "^  ${lane%_touch} " "$work/out" && grep -q "^  ${lane%_touch}_touch " "$work/out"
    then pass; else fail "no twin of $lane"; fi
  done
  for lane in grow zeroed plateau redislike redis memcached python python_malloc sqlite gcc \
    pair_64 pair_1024 pair_32768 pair_remote; do
    if grep -q "^  $lane " "$work/out"; then pass; else fail "no lane $lane"; fi
  done
  if [ "$(grep '^  ' "$work/out" | sort | uniq -d | wc -l)" -eq 0 ]; then pass; else
    fail "a lane is listed twice"
  fi
}

# What is wrong with the command line is told before anything runs.
test_usage() {
  returns 2 bench no_such_lane && says err "--list" && no_run
  returns 2 bench churn no_such_lane && says err "no_such_lane" && no_run
  returns 2 bench "" && no_run
  returns 78 bench -p glibc,hz33 churn && says err "the nearest one is hz3" && no_run
  returns 2 bench -p glibc,glibc churn && says err "named twice" && no_run
  local value
  for value in 0 101 -1 2.5 x nan ""; do
    returns 2 bench --rounds="$value" churn && says err "1 to 100" && no_run
  done
  for value in 0 0.001 61 -1 x nan; do
    returns 2 bench --seconds="$value" churn && says err "0.01 to 60" && no_run
  done
}

test_wrong_peers() {
  local one=("${short[@]}" -p glibc) value
  for value in broken "=$overlapping" broken=; do
    returns 2 bench "${one[@]}" --peer "$value" churn && says err "NAME=PATH" && no_run
  done
  returns 66 bench "${one[@]}" --peer none=/no/such.so churn && says err "/no/such.so" && no_run
  returns 69 bench "${one[@]}" --peer sh=/bin/sh churn && says err "cannot be preloaded" && no_run
  returns 69 bench "${one[@]}" --peer list=/etc/passwd churn && no_run
  returns 2 bench "${one[@]}" --peer "a=$overlapping" --peer "a=$overlapping" churn
  says err "a is named twice" && no_run
  returns 2 bench "${one[@]}" --peer "glibc=$overlapping" churn && says err "named twice" && no_run
}

test_wrong_files() {
  local one=("${short[@]}" -p glibc) option
  for option in --json --html --markdown; do
    returns 66 bench "${one[@]}" $option "$work/none/file" churn && says err "$work/none/file"
    no_run
    returns 66 bench "${one[@]}" $option "$work" churn && says err "$work" && no_run
  done
  echo "no JSON" > "$work/garbage"
  echo '{"format": "other"}' > "$work/other"
  for option in "--from" "${one[*]} churn --compare"; do
    # shellcheck disable=SC2086 # words
    {
      returns 66 bench $option "$work/none" && says err "$work/none" && no_run
      returns 66 bench $option "$work" && says err "Is a directory" && no_run
      returns 65 bench $option "$work/garbage" && says err "line 1" && no_run
      returns 65 bench $option "$work/other" && says err "hakozuna-bench" && no_run
      returns 65 bench $option /bin/true && no_run
      returns 65 bench $option /dev/null && no_run
    }
  done
}

test_output() {
  needs gnuplot gnuplot-nox || return
  returns 0 bench -n 2 -s 0.05 -p glibc,hz3 --json "$work/run.json" --html "$work/run.html" \
    --markdown "$work/run.md" t2_main_r50 t2_main_r50_touch
  quiet err
  says out t2_main_r50_touch && says out glibc && says out hz3 && says out "2 rounds"
  holds "$work/run.json" 'j["format"] == "hakozuna-bench" and j["format_version"] == 1'
  holds "$work/run.json" '[l["name"] for l in j["lanes"]] == ["t2_main_r50", "t2_main_r50_touch"]'
  holds "$work/run.json" '[(a["name"], a["ours"]) for a in j["allocators"]] == [
    ("glibc", False), ("hz3", True)]'
  holds "$work/run.json" 'j["rounds"] == 2 and not j["interrupted"] and j["seconds"] > 0'
  holds "$work/run.json" 'len(cells) == 4 and all(c["failure"] is None for c in cells.values())'
  holds "$work/run.json" 'all(len(c[f]["samples"]) == 2 for c in cells.values() for f in
    ("speed", "peak_kib", "rest_kib", "faults", "user_s", "system_s"))'
  holds "$work/run.json" 'all(s > 0 for c in cells.values() for f in
    ("speed", "peak_kib", "rest_kib", "faults") for s in c[f]["samples"])'
  # Two threads of 0.05 s that only the kernel's ticks may round.
  holds "$work/run.json" 'all(u + s > 0 for c in cells.values() for u, s in
    zip(c["user_s"]["samples"], c["system_s"]["samples"]))'
  holds "$work/run.json" 'all(l["command"].startswith("remote ") for l in j["lanes"])'
  ran="the page"
  if head -n 1 "$work/run.html" | grep -q -i '^<!doctype html>' &&
    tail -n 1 "$work/run.html" | grep -q '</html>$'; then pass; else fail "no whole page"; fi
  if [ "$(grep -o '<svg' "$work/run.html" | wc -l)" -eq 4 ]; then pass; else
    fail "not a picture of speed and one of memory for each of two lanes"
  fi
  if grep -q -E 'https?://|src=|@import|url\(' "$work/run.html"; then
    fail "the page needs what is not in it"
  else
    pass
  fi
  ran="the tables as Markdown"
  if grep -q -F '| `t2_main_r50_touch` |' "$work/run.md" && grep -q '^|---|' "$work/run.md"; then
    pass
  else
    fail "no table"
  fi
  if ls "$work"/run.*.new > /dev/null 2>&1; then fail "a file is left beside"; else pass; fi
}

# Uses what test_output has written.
test_from() {
  returns 0 bench --from "$work/run.json" --compare "$work/run.json" && quiet err
  says out t2_main_r50_touch
  # Speed, peak and rest of two allocators in two lanes.
  says out "0 of 12 figures changed beyond noise"
  returns 2 bench --from "$work/run.json" churn && says err "no lanes" && no_run
  returns 66 bench --from "$work/run.json" --html "$work/none/file" && no_run
  returns 0 bench --from "$work/run.json" --json "$work/again.json"
  cmp -s "$work/run.json" "$work/again.json" && pass || fail "what is read is not what was written"
  python3 - "$work/run.json" "$work/slow.json" "$work/steady.json" <<'PYTHON'
import json, sys
j = json.load(open(sys.argv[1]))
def write(path, factor):
    for lane in j["lanes"]:
        for cell in lane["results"]:
            speed = 1000 if cell["allocator"] == "glibc" else factor * 1000
            cell["speed"]["samples"] = [speed, speed * 1.001]
    json.dump(j, open(path, "w"))
write(sys.argv[2], 0.5)
write(sys.argv[3], 1)
PYTHON
  returns 0 bench --from "$work/steady.json" --compare "$work/slow.json"
  says out "2 of 12 figures changed beyond noise"
  [ "$(grep -c -E '^better .* hz3 .* speed .*\+100\.0 %' "$work/out")" -eq 2 ] && pass ||
    fail "twice as fast is not told as better"
  returns 0 bench --from "$work/slow.json" --compare "$work/steady.json"
  [ "$(grep -c -E '^worse .* hz3 .* speed .*-50\.0 %' "$work/out")" -eq 2 ] && pass ||
    fail "half as fast is not told as worse"
}

# Every program once, as short as can be. The real ones come from the packages that ./hakozuna bench
# installs.
test_every_program() {
  returns 0 bench --quick "${short[@]}" -p hz3 --json "$work/all.json" t16_ t2_ larson pipeline churn \
    "one thread" plateau redislike
  quiet err
  holds "$work/all.json" 'len(cells) >= 80 and all(c["failure"] is None for c in cells.values())'
  holds "$work/all.json" 'all(c["speed"]["median"] > 0 for c in cells.values())'
  says out "16 threads: speed in Mops/s" && says out "memory in MiB, peak / at rest"
  # What --quick comes down to when many allocators take part.
  returns 0 bench --quick -n 1 -s 0.05 -p hz3 --json "$work/real.json" "real programs"
  quiet err
  holds "$work/real.json" 'len(cells) == 6 and all(c["failure"] is None for c in cells.values())'
}

# A peer that hands out overlapping blocks is caught wherever blocks are written to, and only there.
test_broken_peer() {
  local written=(t2_guard_r50_touch larson_t2_touch pipeline_t2_touch churn_touch
    random_mixed_touch aligned_touch grow zeroed plateau redislike)
  local alone=(t2_guard_r50 larson_t2 pipeline_t2 churn random_mixed aligned) lane
  returns 1 bench --quick -n 1 -s 0.1 -p glibc --peer "broken=$overlapping" \
    --json "$work/broken.json" "${alone[@]}" "${alone[@]/%/_touch}" grow zeroed plateau redislike
  for lane in "${written[@]}"; do
    if grep -q -E "^  $lane, broken: failed: .* damaged" "$work/out"; then pass; else
      fail "$lane: the table does not say that blocks were damaged"
    fi
    if grep -q -E "^hakozuna: $lane, broken, round 1: .* damaged" "$work/err"; then pass; else
      fail "$lane: damaged blocks are not told at once"
    fi
  done
  holds "$work/broken.json" "all('damaged' in cells[lane, 'broken']['failure'] and
    not samples(cells[lane, 'broken']) for lane in '${written[*]}'.split())"
  holds "$work/broken.json" "all(cells[lane, 'broken']['failure'] is None and
    cells[lane, 'broken']['speed']['median'] > 0 for lane in '${alone[*]}'.split())"
  holds "$work/broken.json" 'all(c["failure"] is None and c["speed"]["median"] > 0
    for (_, name), c in cells.items() if name == "glibc")'
}

# Figures of an allocator that did not serve are another one's: none is shown.
test_peers_that_do_not_serve() {
  local libm
  libm=$(realpath "$(ldconfig -p | awk '/libm.so.6/ { print $NF; exit }')")
  returns 1 bench "${short[@]}" -p glibc --peer "libm=$libm" --json "$work/libm.json" churn sqlite
  says err "churn, libm, round 1: the program was served by" && says err "libc.so.6, not by $libm"
  holds "$work/libm.json" 'all((c["failure"] is None) == (name == "glibc") for (_, name), c in
    cells.items())'
  holds "$work/libm.json" 'all(not samples(c) for (_, name), c in cells.items() if name == "libm")'
  returns 1 bench "${short[@]}" -p glibc --peer "passes_on=$programs/libforwarding.so" \
    --json "$work/forwarding.json" churn t2_main_r0
  says err "but glibc's heap grew"
  holds "$work/forwarding.json" 'all((c["failure"] is None) == (name == "glibc")
    for (_, name), c in cells.items())'
}

# A peer that is not installed is never passed over in silence; it is a failure only if it was asked
# for.
test_missing_peers() {
  mkdir -p "$work/empty"
  run none XDG_CACHE_HOME="$work/empty" "$cli" bench "${short[@]}" -p glibc,mimalloc3,snmalloc \
    --json "$work/missing.json" --markdown "$work/missing.md" churn
  [ "$status" -eq 1 ] && pass || fail "exit code $status, expected 1"
  local name
  for name in mimalloc3 snmalloc; do
    says out "missing: $name is not built" && says out "bench/peers.sh"
    holds "$work/missing.json" "any(a['name'] == '$name' and 'bench/peers.sh' in a['missing']
      for a in j['allocators']) and ('churn', '$name') not in cells"
    grep -q -E "^- $name: \*\*missing\*\*: .*peers.sh" "$work/missing.md" && pass ||
      fail "the Markdown does not say that $name is missing"
  done
  returns 0 bench --from "$work/missing.json" && says out "missing: snmalloc is not built"
  run none XDG_CACHE_HOME="$work/empty" "$cli" bench "${short[@]}" churn
  [ "$status" -eq 0 ] && pass || fail "exit code $status, expected 0"
  says out "missing: snmalloc is not built"
  holds "$work/missing.json" '[l["name"] for l in j["lanes"]] == ["churn"]' # not its twin, too
  run none XDG_CACHE_HOME="$work/empty" "$cli" bench "${short[@]}" -p snmalloc churn
  [ "$status" -eq 69 ] && pass || fail "exit code $status, expected 69"
  says err "there is nobody to measure" && no_run
}

# On a terminal a line tells how far the run is, and the allocators take turns in going first.
test_progress() {
  run none python3 "$work/terminal.py" "" "$cli" bench -n 3 -s 0.02 -p glibc,hz3 churn_touch
  [ "$status" -eq 0 ] && pass || fail "exit code $status, expected 0"
  tr '\r' '\n' < "$work/out" |
    sed -n -E 's/.*\] round ([0-9]) of 3, churn_touch, ([a-z0-9]+).*/\1 \2/p' > "$work/turns"
  if diff - "$work/turns" > "$work/err" <<'TURNS'; then pass; else fail "not in these turns"; fi
1 glibc
1 hz3
2 hz3
2 glibc
3 glibc
3 hz3
TURNS
  returns 0 bench -n 2 -s 0.02 -p glibc,hz3 churn_touch && quiet err
}

# The command ends soon, with the rounds that were done, and leaves no program behind.
test_interrupt() {
  run none TEST_MARK="typed.$$" python3 "$work/terminal.py" "round 2 of" "$cli" bench -n 100 \
    -s 0.3 -p glibc,hz3 --json "$work/typed.json" t2_main_r90 t2_main_r90_touch
  [ "$status" -eq 130 ] && pass || fail "exit code $status, expected 130"
  says out "interrupted after" && says out t2_main_r90_touch
  holds "$work/typed.json" 'j["interrupted"] and j["rounds"] == 100'
  holds "$work/typed.json" 'all(c["failure"] is None and 1 <= len(c["speed"]["samples"]) <= 2
    for c in cells.values())'
  within 10 all_gone "typed.$$" && pass || fail "a program has survived Ctrl-C"
}

# As a supervisor would: SIGTERM to the command alone, in the middle of a program's run.
test_terminate() {
  local mark="told.$$" tool
  ran="kill -TERM hakozuna bench"
  TEST_MARK=$mark "$cli" bench -n 5 -s 60 -p glibc --json "$work/told.json" t2_main_r90 \
    > "$work/out" 2> "$work/err" &
  tool=$!
  within 30 runs_program "$mark" && pass || fail "no program of bench was started"
  kill -TERM $tool
  wait $tool
  status=$?
  [ $status -eq 143 ] && pass || fail "exit code $status, expected 143"
  says out "0 of 5 rounds" && quiet err
  holds "$work/told.json" 'j["interrupted"] and not any(samples(c) for c in cells.values())'
  within 10 all_gone "$mark" && pass || fail "a program has survived its command"
}

# runs_program MARK: a process with the mark runs a program of bench.
runs_program() {
  local process
  for process in $(grep -l -s -a -e "TEST_MARK=$1" /proc/[0-9]*/environ); do
    [ "$(cat "${process%environ}comm" 2> /dev/null)" != remote ] || return 0
  done
  return 1
}

# Settings in the caller's shell are for the caller's programs, not for those that are measured.
test_environment() {
  run none HAKOZUNA_STATS="text:$work/report" HAKOZUNA_PROFILE=hz3-r90 HAKOZUNA_OPTIONS=nonsense \
    LD_PRELOAD="$programs/libneighbour.so" "$cli" bench "${short[@]}" -p glibc,hz3 \
    --json "$work/plain.json" churn sqlite
  [ "$status" -eq 0 ] && quiet err || fail "exit code $status, expected 0"
  holds "$work/plain.json" 'all(c["failure"] is None for c in cells.values())'
  [ ! -e "$work/report" ] && pass || fail "a measured program has written HAKOZUNA_STATS's report"
}

test_instructions() {
  needs valgrind valgrind || return
  returns 0 bench -n 3 -p hz3 --json "$work/count.json" pair_64
  quiet err
  holds "$work/count.json" '44 <= cells["pair_64", "hz3"]["speed"]["median"] <= 46'
  holds "$work/count.json" 'max(samples(cells["pair_64", "hz3"])) -
    min(samples(cells["pair_64", "hz3"])) <= 0.5'
  mkdir -p "$work/nothing"
  run none PATH="$work/nothing" "$cli" bench -p hz3 pair_64
  [ "$status" -eq 1 ] && pass || fail "exit code $status, expected 1"
  says err "apt-get install valgrind"
}

test_other_folders() {
  local away
  away=$(mktemp -d /tmp/hakozuna-away.XXXXXX)
  cp "$cli" "$library" "$away"
  cd "$away" || exit 1
  run none "$away/hakozuna" bench churn
  [ "$status" -eq 66 ] && pass || fail "exit code $status, expected 66"
  says err "there is no checkout here" && no_run
  run none "$away/hakozuna" bench --list
  expect "the list needs no checkout"
  rm -rf "$away"
  # Names on the command line are of the caller's folder, not of the checkout's top.
  cd "$root/docs" || exit 1
  returns 0 bench "${short[@]}" -p glibc --json "$(realpath -m --relative-to=. "$work/near.json")" \
    churn_touch
  holds "$work/near.json" 'len(cells) == 1'
  cd "$root" || exit 1
}

write_terminal
test_list
test_usage
test_wrong_peers
test_wrong_files
test_output
test_from
test_every_program
test_broken_peer
test_peers_that_do_not_serve
test_missing_peers
test_progress
test_interrupt
test_terminate
test_environment
test_instructions
test_other_folders
finish
