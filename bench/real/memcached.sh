#!/bin/bash
# Measures memcached under an allocator, with memcaslap as its client: three in ten requests store
# a value of 64 to 1000 bytes, the others read one. Memcached keeps its values in slabs of its own
# and calls malloc rarely: expect no difference beyond noise.
#
#   bench/real/memcached.sh [SECONDS]        default 1; the allocator: see common.sh
#
# The number of requests follows from SECONDS alone: it is the same for every allocator. Prints
#   speed=   thousand requests per second
#   peak_kib= rest_kib=    resident memory at most, and 200 ms after all values were dropped
#   faults= user_s= system_s=    of the server, from its start to the end of the load
#   served=  the library that the server's malloc is bound to
set -euo pipefail
source "$(dirname "$0")/common.sh"
take_seconds "$@"
check_preload
need_program memcached memcached
need_program memcaslap libmemcached-tools
need_program setpriv util-linux
open_scratch
export MEMCACHED_PORT_FILENAME=$scratch/port

# True once the server has told which free port it took; sets `port`.
find_port() {
  port=$(awk '/^TCP/ { print $NF; found = 1; exit } END { exit !found }' "$scratch/port")
}

write_load() {
  printf 'key\n16 100 1\nvalue\n64 1000 1\ncmd\n0 0.3\n1 0.7\n' >"$scratch/load"
}

# Prints thousand requests per second. What memcaslap does not find counts as an error: nothing
# expires and nothing is pushed out, so a miss is a value that got lost.
drive() { # REQUESTS
  local output
  output=$(timeout "$limit_s" memcaslap -s "127.0.0.1:$port" -T 1 -c 16 -x "$1" \
    -F "$scratch/load" -v 0.1 2>&1) ||
    fail "memcaslap failed: $output. The server's output: $(output_of_server)"
  awk -v n="$1" '
    /^get_misses:/ { misses = $2 }
    /^verify_(misses|failed):/ { misses += $2 }
    /^Run time:/ { for (i = 1; i < NF; i++) { if ($i == "Ops:") ops = $(i + 1)
                                              if ($i == "TPS:") tps = $(i + 1) } }
    END { if (ops < n || misses > 0 || tps <= 0) exit 1; printf "%.1f", tps / 1000 }' \
    <<<"$output" || fail "memcaslap did not get $1 right answers; it says: ${output//$'\n'/; }"
}

drop_values() {
  local reply
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'flush_all\r\n' >&3
  read -r -t 5 reply <&3 && [[ $reply == OK* ]] || fail "memcached did not drop its values: $reply"
  exec 3>&-
}

requests=$(awk -v s="$seconds" 'BEGIN { printf "%d", s * 80000 }')
limit_s=$(awk -v s="$seconds" 'BEGIN { printf "%d", 30 + s * 20 }')
start_server memcached -u "$(id -un)" -l 127.0.0.1 -p -1 -U 0 -t 2 -m 256
await_server find_port
find_port
prove_served memcached
write_load
speed=$(drive "$requests")
take_usage
drop_values
report "$speed"
