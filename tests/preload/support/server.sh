# For cases with a server: wait until it answers, end it, never leave it behind. Sourced.
#
# A case starts its server in the background, appends the process id to `servers`, and calls
# stop_server when it is done; whatever way the case ends, the trap ends what still runs.
servers=()
trap 'for server in "${servers[@]}"; do kill -KILL "$server" 2>/dev/null; done' EXIT

# Tries a command every 50 ms, at most 10 s.
wait_until() {
  local i
  for i in {1..200}; do
    "$@" >/dev/null 2>&1 && return
    sleep 0.05
  done
  echo "did not come true within 10 s: $*"
  return 1
}

# Sends SIGTERM to the server started last, waits for it and prints its exit code.
stop_server() {
  local server=${servers[-1]}
  kill -TERM "$server"
  wait "$server"
  echo "the server ended with $?"
  unset 'servers[-1]'
}

# A TCP port of the loopback interface that was free a moment ago.
free_port() {
  env -u LD_PRELOAD python3 -c '
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])'
}
