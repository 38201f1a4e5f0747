# What the scripts of this folder that measure a server share: starting it under an allocator, the
# proof that this allocator served it, and what the kernel counted for it. Sourced, never run.
#
# The server runs on this machine's loopback or a socket file only, and for about as long as asked.
#
# Variables that a caller may set:
#   HZ_BENCH_PRELOAD   the allocator's library, absolute; empty: the C library's own
#   HZ_BENCH_PROFILE   the server's HAKOZUNA_PROFILE; empty: none
# They are taken over here: what creates the load runs without them.
#
# Exit codes: 1 the measurement failed, 2 wrong arguments, 69 a program is missing. Each comes with
# one sentence on stderr.

shopt -s inherit_errexit
export LC_ALL=C
preload=${HZ_BENCH_PRELOAD:-}
profile=${HZ_BENCH_PROFILE:-}
config=${HAKOZUNA_CONFIG:-}
unset LD_PRELOAD "${!HAKOZUNA_@}" "${!HZ_BENCH_@}"
scratch=
server=

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

need_program() { # PROGRAM PACKAGE
  [[ -n $(command -v "$1") ]] && return
  say "$1 is missing; install it: apt-get install $2"
  exit 69
}

# Sets `seconds` from the arguments of the script.
take_seconds() {
  seconds=${1:-1}
  (($# <= 1)) && [[ $seconds =~ ^[0-9]+(\.[0-9]+)?$ ]] &&
    awk -v s="$seconds" 'BEGIN { exit !(s >= 0.1 && s <= 3600) }' && return
  say "the arguments are \"$*\"; expected: ${0##*/} [SECONDS], a number from 0.1 to 3600"
  exit 2
}

# The loader splits LD_PRELOAD at blanks and colons, and ignores in silence what it cannot find.
check_preload() {
  [[ -z $preload ]] && return
  [[ $preload == /* && -r $preload && $preload != *[[:space:]:]* ]] && return
  say "HZ_BENCH_PRELOAD is \"$preload\"; expected the absolute path of a readable library," \
    "without blanks and colons"
  exit 2
}

# Sets `scratch` to a folder that disappears with this process, as the server does.
open_scratch() {
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/hakozuna-bench.XXXXXX") ||
    fail "no temporary folder in ${TMPDIR:-/tmp}; set TMPDIR to a folder that you can write"
  trap 'stop_server; rm -rf "$scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# Returns when the server has given its memory back: the next run shall not share the machine.
stop_server() {
  [[ -n $server ]] || return 0
  kill -KILL "$server" 2>/dev/null || true
  local i
  for ((i = 0; i < 200; i++)); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.005
  done
  server=
}

# Starts PROGRAM under the allocator and sets `server` to its process. Even if this process is
# killed, the server ends. The C library is preloaded too when it is what we measure: Debian links
# redis-server with jemalloc, which would serve otherwise. All symbols are bound at the start, so
# that the loader's log names the library behind each.
start_server() { # PROGRAM ARGUMENT...
  local settings=(LD_PRELOAD="${preload:-libc.so.6}" LD_BIND_NOW=1 LD_DEBUG=bindings
    LD_DEBUG_OUTPUT="$scratch/bindings")
  # /dev/null, where the machine has a configuration file: nobody would see it in the figures.
  [[ -z $config ]] || settings+=(HAKOZUNA_CONFIG="$config")
  [[ -z $profile ]] || settings+=(HAKOZUNA_PROFILE="$profile")
  setpriv --pdeathsig KILL env "${settings[@]}" "$@" >"$scratch/output" 2>&1 </dev/null &
  server=$!
  disown "$server" # how it ends is told by our own sentences, not by the shell's
}

# Waits until a command succeeds that asks the server for a sign of life.
await_server() { # COMMAND...
  local i how='gave no sign of life for 5 seconds'
  for ((i = 0; i < 500; i++)); do
    kill -0 "$server" 2>/dev/null || { how='ended at once' && break; }
    "$@" >/dev/null 2>&1 && return
    sleep 0.01
  done
  fail "the server, started under ${preload:-the C library}, $how. Its output:" \
    "$(output_of_server)"
}

output_of_server() { tail -n 5 "$scratch/output" | tr '\n' ' '; }

# Sets `served` to the library that the server's calls are bound to, all of them, and fails if that
# is not the one asked for. What is mapped proves nothing, nor does what the server says of itself.
prove_served() { # PROGRAM
  local name='(malloc|free|calloc|realloc|malloc_usable_size|posix_memalign|aligned_alloc)' found
  found=$(sed -nE "s#^.*binding file (.*/)?$1 \[0\] to (.*) \[0\]: normal symbol .$name'.*#\2#p" \
    "$scratch/bindings.$server" | sort -u)
  [[ -n $found && $found != *$'\n'* ]] ||
    fail "the loader's log says that malloc and its kin in $1 come from [${found//$'\n'/, }];" \
      "expected one library, ${preload:-the C library}. The server's output: $(output_of_server)"
  served=$(realpath "$found")
  if [[ -n $preload ]]; then
    [[ $served == "$(realpath "$preload")" ]]
  else
    [[ ${served##*/} == libc.so.6 || ${served##*/} == libc-*.so ]]
  fi || fail "$1 is served by $served; expected ${preload:-the C library}"
  grep -qF " $served" "/proc/$server/maps" ||
    fail "$served does not appear in /proc/$server/maps, though $1 is bound to it"
}

status_kib() { # VmHWM | VmRSS
  awk -v field="$1:" '$1 == field { print $2; found = 1 } END { exit !found }' \
    "/proc/$server/status" ||
    fail "the server ended before it was measured. Its output: $(output_of_server)"
}

# Sets `usage` to the words of the report that tell what the server's work cost so far.
take_usage() {
  local stat fields
  stat=$(<"/proc/$server/stat") ||
    fail "the server ended under the load. Its output: $(output_of_server)"
  read -ra fields <<<"${stat##*) }" # from the third on: the name before may hold blanks
  usage=$(awk -v faults="${fields[7]}" -v user="${fields[11]}" -v sys="${fields[12]}" \
    -v ticks="$(getconf CLK_TCK)" \
    'BEGIN { printf "faults=%d user_s=%.2f system_s=%.2f", faults, user / ticks, sys / ticks }')
}

# Prints the one line that the script is for, 200 ms after the server was told to drop its data.
# `usage` and `served` are set.
report() { # THOUSAND_REQUESTS_PER_SECOND
  local peak_kib rest_kib
  sleep 0.2
  peak_kib=$(status_kib VmHWM)
  rest_kib=$(status_kib VmRSS)
  echo "speed=$1 peak_kib=$peak_kib rest_kib=$rest_kib $usage served=$served"
}
