"""Objects as a Python program makes them: records to JSON and back, dictionaries, lists, text,
instances, sorting, threads. The same work every time; it checks its own result.

    PYTHONHASHSEED=0 /usr/bin/python3 -S bench/real/work.py N        N times about half a second

As it is, Python takes objects up to 512 bytes from arenas of its own, and malloc sees the rest;
with PYTHONMALLOC=malloc in the environment malloc serves all. Exit codes: 1 a wrong result, which
an allocator is to blame for; 2 wrong arguments.
"""

import json
import sys
import threading

RECORDS = 4000
EXPECTED = (-5379, 280984, 4042, 4000, 15961857480)  # of work_once(1)


class Account:
    """One object with a dictionary of its own, as most are."""

    def __init__(self, number, name, tags):
        self.number = number
        self.name = name
        self.tags = tags
        self.history = []

    def book(self, amount):
        self.history.append((amount, f"booking {len(self.history)} of {self.name}"))

    def balance(self):
        return sum(amount for amount, _ in self.history)


class Draws:
    """Numbers that look random and are the same on every machine."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit


def make_records(draws):
    return [
        {
            "id": i,
            "name": f"record {draws.below(10**6):06d}",
            "tags": [f"tag{draws.below(50)}" for _ in range(draws.below(8))],
            "text": "x" * draws.below(400),
            "nested": {"depth": draws.below(5), "values": [draws.below(1000) for _ in range(6)]},
        }
        for i in range(RECORDS)
    ]


def count_words(records):
    counts = {}
    for record in records:
        for word in record["tags"] + record["name"].split():
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def keep_accounts(records, draws):
    accounts = {r["id"]: Account(r["id"], r["name"], set(r["tags"])) for r in records}
    for _ in range(4 * RECORDS):
        accounts[draws.below(RECORDS)].book(draws.below(1000) - 500)
    return sum(account.balance() for account in accounts.values())


def write_text(records):
    lines = []
    for record in records:
        lines.append(f"{record['id']:>8} {record['name'].upper():<20} {','.join(record['tags'])}\n")
    text = "".join(lines)
    for old, new in (("RECORD", "entry"), ("tag", "label"), (",", " + ")):
        text = text.replace(old, new)
    return len(text) + sum(len(line.split()) for line in text.splitlines())


def work_once(seed):
    """Numbers that follow from the seed: the same in every run and thread."""
    draws = Draws(seed)
    records = make_records(draws)
    again = json.loads(json.dumps(records, sort_keys=True))
    if again != records:
        return None
    again.sort(key=lambda record: (record["text"][:20], record["name"], record["id"]))
    words = count_words(again)
    return (
        keep_accounts(records, draws),
        write_text(again),
        len(words),
        words[0][1],
        sum(record["id"] * place for place, record in enumerate(again)),
    )


def work_in_threads(seed, count):
    """The same work in threads at once; they take turns at the interpreter's lock."""
    results = [None] * count

    def work(place):
        results[place] = work_once(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit() or not 1 <= int(sys.argv[1]) <= 10000:
        print(f"work.py: the arguments are {sys.argv[1:]}; expected one, how often to do the work,"
              " 1 to 10000", file=sys.stderr)
        return 2
    for _ in range(int(sys.argv[1])):
        results = [work_once(1)] + work_in_threads(1, 3)
        wrong = [result for result in results if result != EXPECTED]
        if wrong:
            print(f"work.py: a result is {wrong[0]}; expected {EXPECTED}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
