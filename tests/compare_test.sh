#!/bin/bash
# `hakozuna compare`: what it says of a command that was run under several allocators, and of one
# that cannot be run or compared.
#
# Nothing here is about how long anything takes: where a verdict must be sure, the commands differ
# in memory, by construction. Needs python3, for JSON, a terminal and as a program that allocates.
source "$(dirname "$0")/support/harness.sh"
source "$(dirname "$0")/support/command.sh"
cd "$work" || exit 1

neighbour=$programs/libneighbour.so # never uses a block twice
once=(-n 1 --warmup 0 -p glibc,hz3)
twice=(-n 2 --warmup 0 -p glibc,hz3)

# no_run: the last run measured nothing, and so printed no table.
no_run() { quiet out; }

# A verdict on each of the four figures for each allocator but the first, in a table with all.
test_verdicts() {
  local name what
  seq 20000 | tac > numbers
  returns 0 compare -n 3 -p glibc,hz3 --peer "other=$neighbour" --input numbers \
    --json sort.json -- sort -n
  quiet err
  for name in glibc hz3 other; do
    if grep -q -E "^  $name +\*?[0-9]" out; then pass; else fail "no row of $name"; fi
  done
  for name in hz3 other; do
    for what in time CPU "peak RSS" faults; do
      if grep -q -E "^$what: $name (and glibc: no difference beyond noise|takes .* than glibc)" out
      then pass; else fail "no verdict on $what of $name"; fi
    done
  done
  holds sort.json 'j["format"] == "hakozuna-bench" and len(cells) == 3 and not j["interrupted"]'
  holds sort.json 'j["lanes"][0]["name"] == "sort" and j["lanes"][0]["command"] == "sort -n"'
  holds sort.json 'all(c["failure"] is None and len(c[f]["samples"]) == 3 for c in cells.values()
    for f in ("speed", "peak_kib", "faults", "user_s", "system_s"))'
  holds sort.json 'all(s > 0 for c in cells.values() for f in ("speed", "peak_kib", "faults")
    for s in c[f]["samples"])'
  returns 0 bench --from sort.json && says out "sort -n"
}

# An allocator that uses no block twice takes more memory, each time anew.
test_a_difference() {
  local loop='for i in range(20000): bytearray(1000 + i % 1000)'
  returns 0 compare -n 3 --warmup 0 -p glibc --peer "other=$neighbour" -- python3 -S -c "$loop"
  local what
  for what in "peak RSS" faults; do
    if grep -q -E "^$what: other takes [0-9.]+ % \(\+-[0-9.]+\) more than glibc\.$" out; then
      pass
    else
      fail "$what of an allocator that uses no block twice is not more"
    fi
  done
  returns 0 compare -n 3 --warmup 0 -p hz3,glibc --peer "other=$neighbour" -- python3 -S -c "$loop"
  if grep -q -E "^faults: other takes .* more than hz3\.$" out; then pass; else
    fail "the first one is not what the others are compared with"
  fi
}

# Every second run takes ten times the memory. As the allocators take turns in going first, this
# meets each of them equally often: it is noise, and no difference.
test_no_difference() {
  local libc
  libc=$(realpath "$(ldconfig -p | awk '/libc.so.6/ { print $NF; exit }')")
  cat > alternating.py <<'PYTHON'
import sys
with open(sys.argv[1], "a+") as runs:
    runs.seek(0)
    before = len(runs.read())
    runs.write("x")
data = b"x" * (4_000_000 if before % 2 == 0 else 40_000_000)
PYTHON
  returns 0 compare -n 4 --warmup 0 -p glibc --peer "same=$libc" -- python3 -S alternating.py runs
  says out "peak RSS: same and glibc: no difference beyond noise"
  says out "faults: same and glibc: no difference beyond noise"
  [ "$(wc -c < runs)" -eq 8 ] && pass || fail "not 4 runs under each of 2 allocators"
}

# Each round runs the command once under each allocator, and each goes first in its turn.
test_order() {
  returns 0 compare -n 2 --warmup 1 -p glibc,hz3 -- sh -c 'echo "${HAKOZUNA_PROFILE-none}" >> order'
  [ "$(tr '\n' ' ' < order)" = "none hz3 hz3 none none hz3 " ] && pass ||
    fail "the order is $(tr '\n' ' ' < order)"
  rm order
  returns 0 compare "${once[@]}" -- sh -c 'echo run >> order'
  [ "$(wc -l < order)" -eq 2 ] && pass || fail "--warmup 0 runs more than what is counted"
  says out "hz3 against glibc: one round is too few to tell."
}

test_commands_that_fail() {
  returns 1 compare "${twice[@]}" -- sh -c 'echo first >&2; echo no such luck >&2; exit 7'
  says out "sh ended with exit code 7: no such luck"
  [ "$(grep -c 'failed: sh ended' out)" -eq 2 ] && pass || fail "not told of both"
  returns 1 compare "${twice[@]}" -- sh -c 'kill -SEGV $$' && says out "ended by signal 11"
  # Only one of the two fails: the other's figures stand.
  returns 1 compare "${twice[@]}" --json half.json -- sh -c 'test -z "$LD_PRELOAD"'
  holds half.json '[cells["sh", a]["failure"] is None for a in ("glibc", "hz3")] == [True, False]'
  holds half.json 'len(cells["sh", "glibc"]["speed"]["samples"]) == 2'
  if grep -q ': hz3 ' out; then fail "a verdict on what has failed"; else pass; fi
  returns 1 compare "${twice[@]}" --limit 1 -- sleep 1000
  says out "sleep was killed after 1 s."
}

test_commands_that_cannot_run() {
  returns 127 compare "${once[@]}" -- no-such-program && says err "no-such-program" && no_run
  returns 127 compare "${once[@]}" -- ./no-such-program && no_run
  touch plain-file
  returns 126 compare "${once[@]}" -- ./plain-file && says err "Permission denied" && no_run
  returns 126 compare "${once[@]}" -- /tmp && no_run
}

# Where nothing preloaded would serve, all allocators would be one and the same.
test_commands_that_none_would_serve() {
  returns 1 compare "${once[@]}" -- "$programs/static_hello"
  says err "statically linked" && says err "nothing to compare" && no_run
  returns 1 compare "${once[@]}" -- "$programs/neighbour_own_malloc"
  says err "defines malloc itself" && says err "nothing to compare" && no_run
  local libm
  libm=$(realpath "$(ldconfig -p | awk '/libm.so.6/ { print $NF; exit }')")
  returns 69 compare "${once[@]}" --peer "libm=$libm" -- true
  says err "$libm" && says err "malloc" && no_run
}

test_usage() {
  returns 2 compare && says err "no command" && no_run
  returns 2 compare -p hz3 -- true && says err "at least two allocators" && no_run
  returns 78 compare -p glibc,hz33 -- true && says err "the nearest one is hz3" && no_run
  returns 2 compare -p glibc,glibc -- true && says err "named twice" && no_run
  returns 2 compare "${once[@]}" --peer broken -- true && says err "NAME=PATH" && no_run
  returns 66 compare "${once[@]}" --peer none=/no/such.so -- true && no_run
  local value
  for value in 0 101 -1 2.5 x ""; do
    returns 2 compare --rounds="$value" -- true && says err "1 to 100" && no_run
  done
  returns 2 compare --warmup=-1 -- true && says err "0 to 100" && no_run
  returns 2 compare --limit=0 -- true && says err "--limit" && no_run
  returns 66 compare "${once[@]}" --input none -- cat && says err "none" && no_run
  returns 66 compare "${once[@]}" --input . -- cat && says err "directory" && no_run
  returns 66 compare "${once[@]}" --json none/file -- true && says err "none/file" && no_run
  returns 66 compare "${once[@]}" --json . -- true && no_run
  # What follows the command is its own.
  returns 0 compare "${once[@]}" sh -c 'test "$1" = --limit' sh --limit
}

test_missing_peers() {
  mkdir -p empty
  run none XDG_CACHE_HOME="$work/empty" "$cli" compare -n 1 --warmup 0 -p glibc,mimalloc3,hz3 \
    --json missing.json -- true
  [ "$status" -eq 0 ] && pass || fail "exit code $status, expected 0"
  says err "mimalloc3 is not built" && says err "bench/peers.sh"
  holds missing.json '[a["name"] for a in j["allocators"]] == ["glibc", "hz3"]'
  run none XDG_CACHE_HOME="$work/empty" "$cli" compare -p glibc,snmalloc -- true
  [ "$status" -eq 2 ] && pass || fail "exit code $status, expected 2"
  says err "snmalloc is not built" && says err "at least two allocators" && no_run
}

# Without --input there is nothing to read, whatever the terminal or pipe in front of it holds.
test_stdin() {
  ran="yes | hakozuna compare -- cat"
  yes | timeout 60 "$cli" compare "${once[@]}" -- sh -c 'test -z "$(cat)"' > out 2> err
  [ "${PIPESTATUS[1]}" -eq 0 ] && pass || fail "the command reads what is not meant for it"
  echo word > word
  returns 0 compare "${twice[@]}" --input word -- sh -c 'test "$(cat)" = word'
}

test_environment() {
  run none HAKOZUNA_STATS="text:$work/report" HAKOZUNA_PROFILE=hz3-r90 HAKOZUNA_OPTIONS=nonsense \
    LD_PRELOAD="$neighbour" A_SETTING=kept "$cli" compare "${once[@]}" -- sh -c \
    'test "$A_SETTING" = kept && echo "$LD_PRELOAD $HAKOZUNA_PROFILE $HAKOZUNA_OPTIONS" >> settings'
  [ "$status" -eq 0 ] && quiet err || fail "exit code $status, expected 0"
  printf '  \n%s hz3 \n' "$(realpath "$library")" > expected
  if diff expected settings > err; then pass; else fail "the commands saw other settings"; fi
  [ ! -e report ] && pass || fail "a measured program has written HAKOZUNA_STATS's report"
}

# Ctrl-C ends the command that is running, and what was done before is shown.
test_interrupt() {
  run none TEST_MARK="typed.$$" python3 terminal.py "round 3 of" "$cli" compare -n 100 --warmup 1 \
    -p glibc,hz3 --json typed.json -- sh -c 'sleep 0.3; true'
  [ "$status" -eq 130 ] && pass || fail "exit code $status, expected 130"
  says out "interrupted after" && says out "time: hz3 "
  holds typed.json 'j["interrupted"] and j["rounds"] == 100'
  holds typed.json 'all(c["failure"] is None and 1 <= len(c["speed"]["samples"]) < 100
    for c in cells.values())'
  within 10 all_gone "typed.$$" && pass || fail "a program has survived Ctrl-C"
}

write_terminal
test_verdicts
test_a_difference
test_no_difference
test_order
test_commands_that_fail
test_commands_that_cannot_run
test_commands_that_none_would_serve
test_usage
test_missing_peers
test_stdin
test_environment
test_interrupt
finish
