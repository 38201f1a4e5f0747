#!/bin/bash
# The command line tool: what it prints, what it returns, what the programs that it runs see.
#
# Needs python3 for JSON and for a terminal (job control). The rest is the command itself, programs
# of every Debian system, and files made here.
source "$(dirname "$0")/support/harness.sh"
source "$(dirname "$0")/support/command.sh"
cd "$work" || exit 1

test_help() {
  local command
  returns 0 --version && says out "hakozuna "
  returns 0 --help && says out "doctor" && says out "127"
  returns 0 help && says out "profiles"
  returns 2 && says err "Commands:"
  local commands=(run profiles config "config show" "config check" "config reference" doctor compare
    bench)
  for command in "${commands[@]}"; do
    returns 0 $command --help
    says out "Usage: hakozuna $command"
    quiet err
  done
  returns 2 profils && says err "the nearest one is \`hakozuna profiles\`"
  returns 2 config chekc && says err "\`hakozuna config check\`"
  returns 2 run --nonsense true
  returns 2 run
  (cd "$root" && "$cli" bench budgets --help) > out
  ran="bench budgets --help"
  says out "bench/budgets.sh"
  returns 2 profiles hz3 hz3-fast
}

test_profiles() {
  returns 0 profiles && quiet err
  cp out plain
  returns 0 profiles --plain
  if cmp -s out plain; then pass; else fail "--plain differs from what a pipe gets"; fi
  [ "$(awk -F'\t' 'NF != 3' plain | wc -l)" -eq 0 ] && pass || fail "a line without three fields"
  returns 0 profiles --json
  json 'len(j["profiles"]) == sum(1 for _ in open("plain")) and j["profiles"][0]["trades"]'
  local name
  for name in $(cut -f1 plain); do
    returns 0 profiles "$name" && says out "trades"
    returns 0 run --profile "$name" -- true && quiet err
  done
  returns 78 profiles hz3-fsat && says err "hz3-fast"
}

test_config() {
  returns 0 config show && says out "(default)" && says out "file: none"
  returns 0 config show --json && json 'j["problems"] == 0 and len(j["settings"]) > 10'
  printf '[hakozuna]\nprofile = hz3-r90\n[program:bee]\nprofile = hz3-lowmem\n' > good.ini
  returns 0 config show --config good.ini && says out "hz3-r90" && says out "good.ini:2"
  returns 0 config show --config good.ini --program bee && says out "good.ini:4"
  returns 0 config show --profile hz3-fast --config good.ini && says out "(HAKOZUNA_PROFILE)"
  returns 0 config check good.ini && says out "no problems"
  printf '[hakozuna]\nprofil = hz3\n[program:bee]\nprofile = hz33\n[purge]\nidle_ms = x\n' > bad.ini
  returns 78 config check bad.ini
  says out "bad.ini:2" && says out "bad.ini:4" && says out "bad.ini:6" && says out "3 problems"
  returns 66 config check missing.ini
  returns 66 config show --config .
  returns 0 config reference && says out '| `purge.idle_ms` |'
}

# What README.md says of the options is what the tool prints.
test_documents() {
  returns 0 config reference
  cp out reference
  ran="the table of options in README.md"
  sed -n '/^| Option | Default | Values | Meaning |$/,/^[^|]*$/p' "$root/README.md" 2> err |
    grep '^|' > out
  if diff reference out > err 2>&1; then pass; else fail "not what \`config reference\` prints"; fi
  local option command
  for command in run profiles "config show" "config check" doctor compare bench; do
    "$cli" $command --help | grep -o -- '--[a-z]*' | sort -u |
      grep -v -x -e --help -e --usage -e --version > options
    while read -r option; do
      ran="grep $option hakozuna.1"
      if grep -q -e "Fl .*-${option#--}" "$root/tools/hakozuna.1"; then pass; else
        fail "the man page lacks $option of $command"
      fi
    done < options
  done
}

test_exit_codes() {
  returns 0 run true && quiet out && quiet err
  returns 7 run -- sh -c 'exit 7'
  returns 139 run -- sh -c 'kill -SEGV $$'
  returns 143 run -- sh -c 'kill -TERM $$'
  returns 127 run no-such-program && says err "no such program"
  returns 127 run ./no-such-program
  touch plain-file && returns 126 run ./plain-file && says err "Permission denied"
  returns 126 run /tmp
  printf 'exit 9\n' > bare && chmod +x bare && returns 9 run ./bare
  printf '#!/no/such/interpreter\n' > orphan && chmod +x orphan && returns 127 run ./orphan
  returns 0 run --stats -- true && says err hz3
  returns 78 run --profile hz3-fsat true && says err hz3-fast
  returns 78 run --option purge.idle=5 true && says err idle_ms
  returns 78 run --stats=jsn true && says err json
  returns 78 run --config bad.ini true && says err "bad.ini:2"
  returns 66 run --config missing.ini true
}

# A mistake in a file that nobody named on the command line must not keep a program from starting.
test_problems_elsewhere() {
  mkdir -p "$XDG_CONFIG_HOME"
  cp bad.ini "$XDG_CONFIG_HOME/hakozuna.ini"
  returns 0 run -- true && says err "hakozuna.ini:2"
  rm "$XDG_CONFIG_HOME/hakozuna.ini"
}

test_environment() {
  returns 0 run -- sh -c 'cat /proc/self/maps' && says out libhakozuna.so
  returns 0 run -p hz3-r90 -o purge.idle_ms=1s -c good.ini --stats=json:report.%p env
  says out "HAKOZUNA_PROFILE=hz3-r90" && says out "HAKOZUNA_CONFIG=$work/good.ini"
  says out "HAKOZUNA_STATS=json:$work/report.%p" && says out "HAKOZUNA_OPTIONS=purge.idle_ms=1s"
  ran="the report of env"
  cat report.* > out 2> err
  json 'j["profile"] == "hz3-r90"'
  run none HAKOZUNA_OPTIONS=stats.exact=on "$cli" run -o purge.idle_ms=1s env
  says out "HAKOZUNA_OPTIONS=stats.exact=on,purge.idle_ms=1s"
}

# preload VALUE EXPECTED: how a value of LD_PRELOAD looks to a program; LIB stands for ours.
preload() {
  run none LD_PRELOAD="$1" "$cli" run --config /dev/null -- printenv LD_PRELOAD
  local found expected=${2//LIB/$used_library}
  found=$(cat "$work/out")
  [ "$found" = "$expected" ] && pass || fail "LD_PRELOAD is $found, expected $expected"
}

test_preload_order() {
  returns 0 run printenv LD_PRELOAD
  used_library=$(cat out)
  case $used_library in /*/libhakozuna.so) pass ;; *) fail "no absolute path to the library" ;; esac
  local folder
  folder=$(dirname "$(ldconfig -p 2> /dev/null | awk '/libc.so.6/ { print $NF; exit }')")
  preload "$folder/libm.so.6" "$folder/libm.so.6:LIB"
  preload "$folder/libm.so.6 $folder/libdl.so.2" "$folder/libm.so.6:$folder/libdl.so.2:LIB"
  preload "$used_library" LIB
  cp "$folder/libm.so.6" libjemalloc.so.2 # its name makes the order
  preload "$folder/libm.so.6:$work/libjemalloc.so.2" \
    "$folder/libm.so.6:LIB:$work/libjemalloc.so.2"
}

test_other_allocators() {
  local folder
  folder=$(dirname "$(ldconfig -p 2> /dev/null | awk '/libc.so.6/ { print $NF; exit }')")
  returns 1 run --allocator system printenv LD_PRELOAD && quiet out
  returns 0 run --allocator "$folder/libm.so.6" printenv LD_PRELOAD && says out libm
  returns 66 run --allocator /no/such/library.so true
  returns 69 run --allocator /bin/ls true && says err "cannot be preloaded"
  returns 2 run --allocator nonsense true && says err mimalloc
  returns 2 run --allocator system --stats true && says err "Leave one side out"
  run none LD_PRELOAD="$work/libjemalloc.so.2" "$cli" run --allocator system true
  says err "serves the program instead"
  local name
  for name in jemalloc tcmalloc mimalloc; do
    run none "$cli" run --allocator $name cat /proc/self/maps
    case $status in
      0) says out "lib$name" ;;
      69) says err "apt-get install lib$name" ;;
      *) fail "exit code $status, expected 0 or 69" ;;
    esac
  done
}

test_programs_that_load_nothing() {
  if [ "$(id -u)" -eq 0 ]; then
    cp /bin/true raised && chown nobody raised && chmod u+s raised
  else
    cp /bin/true raised && chmod u+s raised # our own identity: nothing is raised
    ln -s /usr/bin/passwd raised-elsewhere
  fi
  returns 0 run -- /sbin/ldconfig --version && says err "statically linked" && says out ldconfig
  [ "$(wc -l < err)" -eq 1 ] && pass || fail "more than one line of warning"
  returns 1 doctor /sbin/ldconfig && says out "statically linked"
  if [ -e raised-elsewhere ]; then
    returns 0 doctor ./raised && returns 1 doctor ./raised-elsewhere && says out setuid
  else
    returns 0 run ./raised && says err setuid
    returns 1 doctor ./raised && says out setuid
  fi
}

test_doctor() {
  returns 0 doctor && says out "takes over" && says out "0 wrong"
  returns 0 doctor sh && says out "linkage"
  returns 0 doctor --json sh && json 'j["wrong"] == 0 and len(j["rows"]) > 10'
  returns 127 doctor no-such-program
  printf '#!/usr/bin/env -S A=b bash\n' > script && chmod +x script
  returns 0 doctor ./script && says out "/bash"
  run none MALLOC_ARENA_MAX=2 LD_PRELOAD="$used_library" "$cli" doctor
  says out "MALLOC_ARENA_MAX=2" && says out "names an allocator already"
  run none HAKOZUNA_PROFILE=hz33 "$cli" doctor
  [ "$status" -eq 1 ] && says out "hz33" || fail "a wrong profile goes unnoticed"
}

# Any file may be asked about: cut at every header, or with each byte of the headers changed.
test_doctor_reads_damaged_files() {
  local length byte
  printf '\x7fELF' > magic && chmod +x magic && returns 1 doctor ./magic && says out damaged
  for length in 16 51 63 64 100 1000 5000 20000; do
    head -c $length /bin/true > cut && chmod +x cut
    returns 1 doctor ./cut && says out damaged
  done
  cp /bin/true changed
  for byte in 4 5 18 32 40 44 54 56 58 60 62; do
    cp /bin/true changed
    printf '\xee' | dd of=changed bs=1 seek=$byte conv=notrunc status=none
    run none "$cli" doctor ./changed
    [ "$status" -le 1 ] && says out "changed" || fail "exit code $status with byte $byte changed"
  done
}

test_missing_library() {
  mkdir -p alone "with space" opt/bin opt/lib/hakozuna
  cp "$cli" alone/ && cp "$cli" "$library" "with space/"
  cp "$cli" opt/bin/ && cp "$library" opt/lib/hakozuna/libhakozuna.so
  local tool=$cli
  cli=$work/alone/hakozuna
  returns 69 run true && says err "$work/alone/../lib"
  returns 1 doctor && says out "missing"
  cli="$work/with space/hakozuna"
  returns 69 run true && says err "a space or a colon"
  cli=$work/opt/bin/hakozuna
  returns 0 run printenv LD_PRELOAD && says out "$work/opt/lib/hakozuna/libhakozuna.so"
  cli=$tool
}

# What is sent to the tool arrives once in the program, whose answer is the tool's exit code.
test_signals() {
  local signal count
  cat > listener <<'LISTENER'
#!/bin/bash
trap 'echo TERM; exit 5' TERM
trap 'echo HUP' HUP
trap 'echo USR1' USR1
echo ready
while :; do read -r -t 60 _ <> "$1"; done
LISTENER
  chmod +x listener
  mkfifo said never
  "$cli" run -- ./listener never > said &
  local tool=$! line
  exec 7< said
  read -r line <&7
  for signal in HUP USR1 TERM; do
    kill -$signal $tool
    read -r line <&7
    ran="kill -$signal"
    [ "$line" = $signal ] && pass || fail "the program heard \"$line\", expected $signal"
  done
  wait $tool
  status=$?
  count=$(cat <&7 | wc -l)
  exec 7<&-
  [ $status -eq 5 ] && [ "$count" -eq 0 ] && pass ||
    fail "exit code $status and $count more signals, expected 5 and 0"
}

# Ctrl-Z stops the tool with the program, fg continues both, Ctrl-C arrives once.
test_job_control() {
  cat > counter.py <<'COUNTER'
import os, signal, sys
heard = []
def say(text):  # print would refuse to be interrupted by itself
    os.write(1, text.encode() + b"\n")
def hear(number, _):
    heard.append(number)
    say(f"heard {len(heard)}")
signal.signal(signal.SIGINT, hear)
signal.signal(signal.SIGCONT, lambda *_: say("continued"))
signal.signal(signal.SIGQUIT, lambda *_: sys.exit(40 + len(heard)))
say("ready")
while True:
    signal.pause()
COUNTER
  cat > terminal.py <<'TERMINAL'
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = b""
def wait_for(text):
    global seen
    while text not in seen:
        if not select.select([fd], [], [], 30)[0]:
            sys.exit(f"waiting for {text!r}, seen {seen!r}")
        seen += os.read(fd, 4096)
    seen = seen[seen.index(text) + len(text):]
def type_in(text):
    os.write(fd, text.encode())
type_in("PS1='at''-prompt '\n")
wait_for(b"at-prompt ")
type_in(f"{sys.argv[1]} run -- python3 counter.py\n")
wait_for(b"ready")
type_in("\x03")
wait_for(b"heard 1")
type_in("\x1a")
wait_for(b"Stopped")
wait_for(b"at-prompt ")
type_in("fg\n")
wait_for(b"continued")
type_in("\x03")
wait_for(b"heard 2")
type_in("\x1c")
wait_for(b"at-prompt ")
type_in("echo code=$?\n")
wait_for(b"code=42")
TERMINAL
  run none python3 terminal.py "$cli"
  expect "job control on a terminal"
}

test_help
test_profiles
test_config
test_documents
test_exit_codes
test_problems_elsewhere
test_environment
test_preload_order
test_other_allocators
test_programs_that_load_nothing
test_doctor
test_doctor_reads_damaged_files
test_missing_library
test_signals
test_job_control
finish
