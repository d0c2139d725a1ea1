#!/usr/bin/env python3
"""Several servers on one PostgreSQL: what it costs to pass a request on, and how long writes wait when the owner goes.

    servers_bench.py PATH_IN_THE_FOLDER_OF_servers_bench_load [--rounds N] [--seconds S] [--goings N] [--only cost|goings]

Three servers of `scripts/cluster`. Cost: the same creates and reads by the owner and by a server that passes them on, in
turns; the processor time is that of all servers, without PostgreSQL's. Goings: one client writes one item after the other
through a server that does not own while the owner is killed (kill -9) or stopped (SIGTERM, a handover), again and again; the
wait is the longest write around it.
"""
import argparse
import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def cpu_s(process):
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Fleet:
    """scripts/cluster, and who of it owns."""

    def __init__(self, directory, orrery, count=3):
        self.directory, self.orrery = directory, orrery
        self.names = [f"s{n + 1}" for n in range(count)]
        self.call("start", str(count))

    def call(self, verb, *words):
        result = subprocess.run([os.path.join(ROOT, "scripts", "cluster"), verb, self.directory, *words],
                                env={**os.environ, "ORRERY": self.orrery}, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            sys.exit(f"servers_bench: cluster {verb} failed")
        return result.stdout.strip()

    def port(self, name):
        return int(urllib.parse.urlparse(self.call("endpoint", name)).port)

    def process(self, name):
        with open(os.path.join(self.directory, f"{name}.pid"), encoding="utf-8") as file:
            return int(file.read())

    def owner(self):
        """Whoever says it leads."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for name in self.names:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port(name), timeout=2)
                    connection.request("GET", "/metrics")
                    text = connection.getresponse().read().decode()
                    connection.close()
                except OSError:
                    continue
                if "\norrery_server_leader 1" in text:
                    return name
            time.sleep(0.1)
        sys.exit("servers_bench: no server owns")

    def cpu_s(self):
        return sum(cpu_s(self.process(name)) for name in self.names)


def load(program, port, *words):
    result = subprocess.run([program, str(port), KEY, *map(str, words)], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        sys.exit(result.returncode)
    return [float(word) for word in result.stdout.split()]


def cost(fleet, program, args):
    owner = fleet.owner()
    other = next(name for name in fleet.names if name != owner)
    load(program, fleet.port(owner), "prepare")
    first = 1_000_000
    for verb in ("create", "read"):
        for connections in (1, 16):
            rates = {owner: [], other: []}
            each = {owner: [], other: []}
            median_ms = {owner: [], other: []}
            for number in range(args.rounds):
                for name in (owner, other) if number % 2 else (other, owner):
                    before = fleet.cpu_s()
                    count, p50, *_ = load(program, fleet.port(name), verb, args.seconds, connections, first)
                    first += 1_000_000
                    rates[name].append(count / args.seconds)
                    each[name].append((fleet.cpu_s() - before) / count * 1e6)
                    median_ms[name].append(p50)
            middle = {key: {name: statistics.median(values) for name, values in by.items()}
                      for key, by in (("rate", rates), ("us", each), ("ms", median_ms))}
            for name, who in ((owner, "owner"), (other, "passed on")):
                print(f"  {verb}s of 1 KB, {connections} at once, {who}: {middle['rate'][name]:.0f}/s, p50 "
                      f"{middle['ms'][name]:.2f} ms, processors of all servers {middle['us'][name]:.0f} us each")
            print(f"{verb}s of 1 KB, {connections} at once, processor time passed on, us, less is better, vs at the owner: "
                  f"{middle['us'][other]:.1f} / {middle['us'][owner]:.1f} = {middle['us'][other] / middle['us'][owner]:.2f}"
                  + (" (goal: at most 1.4)" if verb == "create" else ""))
            print(f"{verb}s of 1 KB, {connections} at once, p50 passed on, ms, less is better, vs at the owner: "
                  f"{middle['ms'][other]:.2f} / {middle['ms'][owner]:.2f} = {middle['ms'][other] / middle['ms'][owner]:.2f}"
                  + (" (goal: at most 0.3 ms more)" if connections == 1 and verb == "create" else ""))


class Writer(threading.Thread):
    """Writes one item after the other through one server, and notes when each began and ended, and how."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.stopping = False
        self.calls = []

    def ask(self, verb, kind, link, path, body, headers=None):
        date = email.utils.formatdate(usegmt=True)
        text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        self.connection.request(verb, path, json.dumps(body), {
            "x-ms-date": date, "x-ms-version": "2018-12-31", "content-type": "application/json",
            "authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe=""), **(headers or {})})
        answer = self.connection.getresponse()
        answer.read()
        return answer.status

    def prepare(self):
        self.ask("POST", "dbs", "", "/dbs", {"id": "goings"})
        self.ask("POST", "colls", "dbs/goings", "/dbs/goings/colls",
                 {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}})

    def run(self):
        number = 0
        while not self.stopping:
            begun = time.monotonic()
            item = {"id": f"{begun}-{number}", "pk": str(number % 20), "text": "x" * 200}
            status = self.ask("POST", "docs", "dbs/goings/colls/c", "/dbs/goings/colls/c/docs", item,
                              {"x-ms-documentdb-partitionkey": json.dumps([item["pk"]])})
            self.calls.append((begun, time.monotonic(), status))
            number += 1
            time.sleep(0.002)


def going(fleet, verb):
    """How long the longest write took while the owner went, in seconds, and the answers that were not 201 and 429."""
    owner = fleet.owner()
    other = next(name for name in fleet.names if name != owner)
    writer = Writer(fleet.port(other))
    writer.prepare()
    writer.start()
    time.sleep(1)
    begun = time.monotonic()
    fleet.call(verb, owner)
    time.sleep(3)
    while not any(start > begun and status == 201 for start, _, status in writer.calls):
        time.sleep(0.1)
    writer.stopping = True
    writer.join()
    fleet.call("run", owner)
    return (max(end - start for start, end, _ in writer.calls if end > begun),
            [status for _, _, status in writer.calls if status not in (201, 429)])


def goings(fleet, args):
    for verb, what, goal_s in (("stop", "a handover (SIGTERM)", 0.05), ("kill", "a takeover (kill -9)", 1.5)):
        waits, refused = [], []
        for _ in range(args.goings):
            wait, statuses = going(fleet, verb)
            waits.append(wait)
            refused += statuses
        print(f"  longest writes around {what}, ms: {' '.join(f'{wait * 1000:.0f}' for wait in sorted(waits))}; other answers: "
              f"{refused or 'none'}")
        print(f"longest write around {what} through another server, the worst of {args.goings}, ms, less is better, vs the "
              f"goal: {max(waits) * 1000:.0f} / {goal_s * 1000:.0f} = {max(waits) / goal_s:.2f} (goal: at most 1)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--goings", type=int, default=10)
    parser.add_argument("--only", choices=("cost", "goings"))
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    with tempfile.TemporaryDirectory(prefix="servers_bench.") as directory:
        os.chmod(directory, 0o755)  # PostgreSQL runs as somebody else where we are root
        fleet = Fleet(os.path.join(directory, "fleet"), os.path.join(os.path.dirname(programs), "orrery"))
        try:
            if args.only != "goings":
                cost(fleet, os.path.join(programs, "servers_bench_load"), args)
            if args.only != "cost":
                goings(fleet, args)
        finally:
            fleet.call("end")


main()
