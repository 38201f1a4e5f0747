#!/bin/bash
# Measures redis-server under an allocator: strings, lists, sets, hashes and sorted sets, with
# 100,000 random keys and values of 100 bytes, then values of 500 bytes in their place.
#
#   bench/real/redis.sh [SECONDS]        default 1; the allocator: see common.sh
#
# The number of requests follows from SECONDS alone: it is the same for every allocator. Prints
#   speed=   thousand requests per second (one of LRANGE returns a hundred values)
#   peak_kib= rest_kib=    resident memory at most, and 200 ms after all keys were deleted
#   faults= user_s= system_s=    of the server, from its start to the end of the load
#   served=  the library that the server's malloc is bound to
set -euo pipefail
source "$(dirname "$0")/common.sh"
take_seconds "$@"
check_preload
need_program redis-server redis-server
need_program redis-benchmark redis-tools
need_program setpriv util-linux
open_scratch
socket=$scratch/socket

# Adds to the file `times` a line per test: requests, and the seconds that they took.
drive() { # REQUESTS BYTES TESTS
  local output
  output=$(timeout "$limit_s" redis-benchmark -s "$socket" -P 16 -c 16 -q --csv -r 100000 \
    -n "$1" -d "$2" -t "$3" 2>&1) ||
    fail "redis-benchmark failed: $output. The server's output: $(output_of_server)"
  awk -F'","' -v n="$1" '$2 + 0 > 0 { print n, n / $2 }' <<<"$output" >>"$scratch/times"
}

requests=$(awk -v s="$seconds" 'BEGIN { printf "%d", s * 90000 }')
limit_s=$(awk -v s="$seconds" 'BEGIN { printf "%d", 30 + s * 20 }')
start_server redis-server --port 0 --unixsocket "$socket" --dir "$scratch" --save '' \
  --appendonly no --loglevel warning
await_server redis-cli -s "$socket" ping
prove_served redis-server
drive "$requests" 100 set,get,lpush,lpop,sadd,hset,zadd
drive "$requests" 500 set
drive $((requests / 10)) 100 lrange_100
take_usage
tests=$(wc -l <"$scratch/times")
((tests == 10)) || fail "redis-benchmark told the figures of $tests tests; expected 10"
reply=$(redis-cli -s "$socket" flushall sync 2>&1) && [[ $reply == OK ]] ||
  fail "redis did not delete its keys: $reply"
report "$(awk '{ n += $1; s += $2 } END { printf "%.1f", n / s / 1000 }' "$scratch/times")"
