# python3 with every allocation through malloc: json, threads, processes by fork, large buffers.
# runs: always
# reports: python3*
# packages: python3
export PYTHONMALLOC=malloc PYTHONHASHSEED=1
python3 - <<'PROGRAM'
import hashlib, json, multiprocessing, re, threading, zlib

def rows(seed, count):
    for i in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        yield {"id": i, "name": "n%d" % seed, "tags": [seed % 7, seed % 11], "half": seed / 2}

def digest(seed):
    text = json.dumps(list(rows(seed, 8000)))
    back = json.loads(text)
    names = re.findall(r'"name": "(n\d+)"', text)
    assert names == [row["name"] for row in back]
    return hashlib.md5(zlib.compress(text.encode())).hexdigest()

results = {}
threads = [threading.Thread(target=lambda s=s: results.update({s: digest(s)})) for s in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(results.items()))

with multiprocessing.get_context("fork").Pool(3) as pool:
    assert pool.map(digest, range(6)) == [results[s] for s in range(6)]
print("processes agree")

grown = bytearray()
for i in range(2000):
    grown += bytes([i % 256]) * (i * 7)
print(len(grown), hashlib.md5(grown).hexdigest())
raise SystemExit(5)
PROGRAM
