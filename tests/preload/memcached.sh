# memcached with four threads under eight clients that set, read back, append and delete.
# runs: default
# reports: memcached
# packages: memcached python3
source "$(dirname "$0")/support/server.sh"
as_user=()
[[ $(id -u) == 0 ]] && as_user=(-u root)
memcached "${as_user[@]}" -s "$PWD/cache.socket" -t 4 -m 64 &
servers+=($!)
wait_until test -S cache.socket || exit
python3 - <<'PROGRAM'
import socket, threading

def client(number, results):
    s = socket.socket(socket.AF_UNIX)
    s.connect("cache.socket")
    f = s.makefile("rwb")
    def ask(command, lines=1):
        f.write(command)
        f.flush()
        return [f.readline().strip() for _ in range(lines)]
    wrong = 0
    for i in range(1500):
        value = bytes([65 + i % 26]) * (1 + (i * 37 + number) % 4000)
        key = b"k%d_%d" % (number, i % 300)
        wrong += ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)) != [b"STORED"]
        wrong += ask(b"append %s 0 0 3\r\nend\r\n" % key) != [b"STORED"]
        wrong += ask(b"get %s\r\n" % key, 3)[1] != value + b"end"
        if i % 5 == 0:
            wrong += ask(b"delete %s\r\n" % key) != [b"DELETED"]
    results[number] = wrong

results = {}
threads = [threading.Thread(target=client, args=(n, results)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(results.items()))
PROGRAM
stop_server
