# Sourced by the runners of the command line tool, after harness.sh: runs it and reads what it says.
#
# Needs python3 for JSON. $root is the checkout, $cli the tool.

root=$(dirname "$(dirname "$(realpath "$0")")")
cli=$(realpath "$command_line")

# returns STATUS ARGUMENT...: runs the tool, and checks its exit code.
returns() {
  local expected=$1
  shift
  run none "$cli" "$@"
  if [ "$status" -eq "$expected" ]; then pass; else fail "exit code $status, expected $expected"; fi
}

# says out|err TEXT: the last run wrote a line with this text.
says() {
  if grep -q -F -e "$2" "$work/$1"; then pass; else fail "std$1 without \"$2\""; fi
}

# quiet out|err: the last run wrote nothing there.
quiet() {
  if [ ! -s "$work/$1" ]; then pass; else fail "std$1 is not empty"; fi
}

# holds FILE EXPRESSION: the file is JSON, and the expression over it, named j, is true. Of results,
# cells are the figures by lane and allocator, and samples(cell) is every number that was measured.
holds() {
  if python3 - "$1" "$2" 2> "$work/why" <<'PYTHON'; then
import json, sys
j = json.load(open(sys.argv[1]))
cells = {(l["name"], c["allocator"]): c for l in j.get("lanes", []) for c in l["results"]}
def samples(cell):
    return [s for f in cell.values() if isinstance(f, dict) for s in f["samples"]]
if not eval("(" + sys.argv[2] + ")"):
    sys.exit(f"{sys.argv[1]}: {json.dumps(j)[:2000]}")
PYTHON
    pass
  else
    cp "$work/why" "$work/err"
    fail "${1##*/} without $2"
  fi
}

# json EXPRESSION: the same over the last run's output.
json() { holds "$work/out" "$1"; }

# needs PROGRAM PACKAGE: fails clearly, once, where a program is missing that a test is about.
needs() {
  ran="command -v $1"
  command -v "$1" > /dev/null && return
  : > "$work/out"
  echo "$1 is missing: apt-get install $2" > "$work/err"
  fail "$1 is not here"
  return 1
}

# within SECONDS COMMAND...: awaits that the command succeeds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}

# all_gone MARK: no process is left that has the variable TEST_MARK with this value.
all_gone() { ! grep -q -s -a -e "TEST_MARK=$1" /proc/[0-9]*/environ; }

# write_terminal: makes terminal.py, which runs a command on a terminal of its own:
#   terminal.py AWAITED COMMAND...
# It types Ctrl-C when the text AWAITED was shown ("": never), prints all that was shown, and ends
# with the command's exit code.
write_terminal() {
  cat > "$work/terminal.py" <<'PYTHON'
import os, pty, select, sys
awaited = sys.argv[1].encode()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
seen = b""
typed = not awaited
while True:
    if not select.select([terminal], [], [], 60)[0]:
        sys.exit(f"nothing for a minute; seen: {seen!r}")
    try:
        more = os.read(terminal, 4096)
    except OSError:  # the other end was closed
        more = b""
    if not more:
        break
    seen += more
    if not typed and awaited in seen:
        os.write(terminal, b"\x03")
        typed = True
os.write(1, seen)
if not typed:
    sys.exit(f"never shown: {awaited!r}")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
}
