# redis-server under redis-benchmark, with BGSAVE during the load, a reload, and a second server
# that must find every key of the dump.
# runs: always
# reports: redis-server redis-benchmark redis-cli
# packages: redis-server redis-tools
source "$(dirname "$0")/support/server.sh"

start_redis() {
  redis-server --port 0 --unixsocket "$PWD/redis.socket" --dir "$PWD" --save '' --appendonly no \
    --enable-debug-command local --daemonize no --logfile redis.log &
  servers+=($!)
  wait_until ready
}
# A server that still loads its dump answers, but not PONG.
ready() { ask ping | grep -q PONG; }
ask() { redis-cli -s redis.socket "$@"; }
saved() { ask info persistence | grep -q 'rdb_bgsave_in_progress:0'; }

start_redis || exit
ask debug populate 50000 key 200
redis-benchmark -s redis.socket -q -c 20 -n 30000 -P 8 -r 5000 -d 300 \
  -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100 >benchmark.log &
load=$!
ask bgsave
wait_until saved
ask info persistence | grep rdb_last_bgsave_status
wait "$load"
echo "redis-benchmark ended with $?, $(grep -o 'requests per second' benchmark.log | wc -l) lines"

before="$(ask dbsize) $(ask debug digest)"
ask debug reload
[[ $before == "$(ask dbsize) $(ask debug digest)" ]] && echo 'the same keys after a reload'
ask save
stop_server
start_redis || exit
[[ $before == "$(ask dbsize) $(ask debug digest)" ]] && echo 'the same keys in a new server'
stop_server
