#!/usr/bin/env python3
"""Scripts through the REST front: against point reads, separate writes, built-in functions, and
what hostile ones do to others.

    script_bench.py PATH_IN_THE_FOLDER_OF_THE_BENCH_PROGRAMS [--rounds N] [--items N] [--only PART...]

Parts: latency, writes, functions, hostile. The server is the one built with the programs. Times are
those the server tells of each request (x-ms-request-duration-ms), from its first byte to the answer,
durable writes included, without the way there and back, unless a line says otherwise. Candidates
take turns.
"""
import argparse
import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from email.utils import formatdate

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
COLLECTION = "dbs/d/colls/c"
WRITES = 100

SCRIPTS = {
    "empty": "function () {}",
    "write": """function (from, count) {
        const c = getContext().getCollection();
        for (let i = 0; i < count; i++)
            if (!c.createDocument(c.getSelfLink(), {id: `i${from + i}`, pk: 'w', n: i, text: 'x'.repeat(200)},
                                  (err) => { if (err) throw err; }))
                throw new Error('not accepted');
    }""",
}

HOSTILE = {
    "loop": "function () { for (;;); }",
    "memory": "function () { const all = []; for (;;) all.push(new Array(100000).fill(1)); }",
    "recursion": "function f() { return f() + 1; }",
    "promises": "function () { const again = () => Promise.resolve().then(again); again(); }",
    "log": "function () { for (;;) console.log('x'.repeat(1000)); }",
    "output": "function () { getContext().getResponse().setBody('x'.repeat(1e9)); }",
}


class Client:
    """One connection that signs what it sends."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def send(self, method, path, body=None, headers=None):
        segments = path.split("/")
        feed = len(segments) % 2 == 1
        kind, link = (segments[-1], "/".join(segments[:-1])) if feed else (segments[-2], path)
        date = formatdate(usegmt=True)
        text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        token = "type=master&ver=1.0&sig=" + base64.b64encode(digest).decode()
        self.connection.request(method, "/" + path, None if body is None else json.dumps(body), {
            "x-ms-date": date, "x-ms-version": "2020-07-15",
            "authorization": urllib.parse.quote(token, safe=""), **(headers or {})})
        answer = self.connection.getresponse()
        read = answer.read()
        return answer.status, answer.headers, read

    def timed(self, method, path, body=None, headers=None, expect=(200, 201)):
        """Milliseconds by the server's own clock."""
        status, head, read = self.send(method, path, body, headers)
        if status not in expect:
            sys.exit(f"script_bench: {method} {path} gave {status}: {read[:300]}")
        return float(head["x-ms-request-duration-ms"])


def key(value):
    return {"x-ms-documentdb-partitionkey": json.dumps([value])}


def line(name, ours, theirs, goal):
    print(f"{name}: {ours:.4g} / {theirs:.4g} = {ours / theirs:.2f} ({goal})", flush=True)


def middle(values):
    return statistics.median(values)


def latency(client, rounds):
    """An empty procedure against a point read, warm."""
    times = {"procedure": [], "read": []}
    for _ in range(200):
        client.timed("POST", f"{COLLECTION}/sprocs/empty", [], key("r"))
    for _ in range(rounds):
        for _ in range(100):
            times["procedure"].append(client.timed("POST", f"{COLLECTION}/sprocs/empty", [], key("r")))
            times["read"].append(client.timed("GET", f"{COLLECTION}/docs/r", None, key("r")))
    for name, values in times.items():
        values.sort()
        print(f"  {name}: median {middle(values):.3f} ms, p99 {values[len(values) * 99 // 100]:.3f} ms")
    line("an empty procedure and a point read, ms (less is better)", middle(times["procedure"]),
         middle(times["read"]), "goal: at most 4")


def writes(client, rounds):
    """A procedure that writes 100 items against 100 requests that write one each."""
    times = {"procedure": [], "separate": []}
    seen = {"procedure": [], "separate": []}
    number = 0
    for _ in range(rounds):
        begin = time.monotonic()
        times["procedure"].append(client.timed("POST", f"{COLLECTION}/sprocs/write",
                                               [number, WRITES], key("w")))
        seen["procedure"].append(time.monotonic() - begin)
        number += WRITES
        total = 0.0
        begin = time.monotonic()
        for i in range(WRITES):
            item = {"id": f"i{number + i}", "pk": "w", "n": i, "text": "x" * 200}
            total += client.timed("POST", f"{COLLECTION}/docs", item, key("w"))
        number += WRITES
        times["separate"].append(total)
        seen["separate"].append(time.monotonic() - begin)
    for name, values in times.items():
        print(f"  {name}: median {middle(values):.2f} ms for {WRITES} durable writes")
    line(f"{WRITES} separate writes and a procedure that writes them, ms in the server",
         middle(times["separate"]), middle(times["procedure"]), "no goal: without the way there")
    line(f"{WRITES} separate writes and a procedure that writes them, ms for the client",
         middle(seen["separate"]) * 1000, middle(seen["procedure"]) * 1000, "goal: at least 10")


def query(client, text):
    """Server time of a whole query over all pages, in ms, and its rows."""
    total, rows, continuation = 0.0, 0, None
    while True:
        headers = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json",
                   "x-ms-documentdb-query-enablecrosspartition": "True",
                   "x-ms-max-item-count": "1000"}
        if continuation:
            headers["x-ms-continuation"] = continuation
        status, head, read = client.send("POST", f"{COLLECTION}/docs", {"query": text}, headers)
        if status != 200:
            sys.exit(f"script_bench: {text} gave {status}: {read[:300]}")
        total += float(head["x-ms-request-duration-ms"])
        rows += len(json.loads(read)["Documents"])
        continuation = head.get("x-ms-continuation")
        if not continuation:
            return total, rows


def cpu_seconds(pid):
    """Of a process and its children that live."""
    total = 0.0
    pids = [str(pid)]
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        pids += file.read().split()
    for one in pids:
        try:
            with open(f"/proc/{one}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(") ", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except FileNotFoundError:
            pass
    return total


def functions(client, pid, rounds, items):
    """A function of the user over all items against the same expression built in."""
    own = "SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'row' AND udf.near(c.n, 500)"
    built_in = "SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'row' AND ABS(c.n - 500) < 10"
    times, cpu = {own: [], built_in: []}, {own: [], built_in: []}
    for _ in range(max(rounds // 3, 3)):
        for text in times:
            before = cpu_seconds(pid)
            times[text].append(query(client, text)[0])
            cpu[text].append(cpu_seconds(pid) - before)
    per_second = items / middle(times[own]) * 1000
    per_core = items / max(middle(cpu[own]), 0.01)
    print(f"  a function over {items} items: {per_second:.0f} items/s, {per_core:.0f} items per "
          f"CPU second of server and worker together")
    line("calls of a function per CPU second and the goal of 100,000", per_core, 100000,
         "goal: at least 1")
    line(f"a function and its built-in equivalent over {items} items, ms (less is better)",
         middle(times[own]), middle(times[built_in]), "no goal; what it costs")


def load(client, seconds):
    """Latencies of point reads and creates."""
    values = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        values.append(client.timed("GET", f"{COLLECTION}/docs/r", None, key("r")))
        if len(values) % 5 == 0:
            values.append(client.timed("POST", f"{COLLECTION}/docs",
                                       {"id": f"l{time.monotonic_ns()}", "pk": "l"}, key("l")))
    return values


def attack(port, name, stop, ended):
    """Calls a hostile procedure again and again."""
    client = Client(port)
    while not stop.is_set():
        status, _, _ = client.send("POST", f"{COLLECTION}/sprocs/{name}", [], key("h"))
        ended.setdefault(name, {}).setdefault(status, 0)
        ended[name][status] += 1


def hostile(client, port, rounds):
    """The p99 of others while hostile scripts run, against the same without them."""
    quiet, loud, ended = [], [], {}
    for _ in range(rounds):
        quiet += load(client, 2)
        stop = threading.Event()
        attackers = [threading.Thread(target=attack, args=(port, name, stop, ended))
                     for name in HOSTILE]
        for attacker in attackers:
            attacker.start()
        loud += load(client, 2)
        stop.set()
        for attacker in attackers:
            attacker.join()

    def p99(values):
        return sorted(values)[len(values) * 99 // 100]

    print(f"  without: median {middle(quiet):.3f} ms, p99 {p99(quiet):.3f} ms of {len(quiet)} requests")
    print(f"  with:    median {middle(loud):.3f} ms, p99 {p99(loud):.3f} ms of {len(loud)} requests; "
          f"hostile scripts ended {ended}")
    line(f"p99 of others while {len(HOSTILE)} hostile scripts run and without, ms (less is better)",
         p99(loud), p99(quiet), "goal: at most 2")


def prepare(client, parts, items):
    client.timed("POST", "dbs", {"id": "d"})
    client.timed("POST", "dbs/d/colls", {
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}},
                 {"x-ms-offer-throughput": "1000000"})
    for name, body in {**SCRIPTS, **HOSTILE}.items():
        client.timed("POST", f"{COLLECTION}/sprocs", {"id": name, "body": body})
    client.timed("POST", f"{COLLECTION}/udfs",
                 {"id": "near", "body": "function (n, to) { return Math.abs(n - to) < 10; }"})
    client.timed("POST", f"{COLLECTION}/docs", {"id": "r", "pk": "r", "text": "x" * 1000}, key("r"))
    if "functions" not in parts:
        return
    for first in range(0, items, 100):
        batch = [{"operationType": "Create", "resourceBody": {
            "id": f"f{i}", "pk": "f", "kind": "row", "n": i % 1000, "text": "x" * 100}}
                 for i in range(first, first + 100)]
        client.timed("POST", f"{COLLECTION}/docs", batch, {
            **key("f"), "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--items", type=int, default=100000)
    parser.add_argument("--only", nargs="*", choices=["latency", "writes", "functions", "hostile"],
                        default=["latency", "writes", "functions", "hostile"])
    options = parser.parse_args()
    orrery = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(options.program))), "orrery")
    with tempfile.TemporaryDirectory() as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin", "off",
             "--mongo-replica-set", "off", "--node",
             f"local=rocksdb:{directory}/node", "--set", "partition.ru_max=1000000", "--set",
             "script.time_ms=1s", "--set", "log.level=warning"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            for text in server.stdout:
                found = re.search(r"REST +https?://\S+:(\d+)/", text)
                if found:
                    break
            else:
                sys.exit("script_bench: orrery did not start")
            client = Client(int(found[1]))
            prepare(client, options.only, options.items)
            if "latency" in options.only:
                latency(client, options.rounds)
            if "writes" in options.only:
                writes(client, options.rounds)
            if "functions" in options.only:
                functions(client, server.pid, options.rounds, options.items)
            if "hostile" in options.only:
                hostile(client, int(found[1]), options.rounds)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
