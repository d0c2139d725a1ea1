#!/usr/bin/env python3
"""Three nodes, one killed: what those who use the others notice.

    nodes_bench.py PATH_IN_THE_FOLDER_BELOW_THAT_OF_orrery [--seconds S] [--clients N]

Starts a server on two rocksdb: nodes and a PostgreSQL server of its own, with a partition on each, and
keeps reading and replacing items from several threads: half of them on keys of the node that will
fail, half on the others. Then PostgreSQL is killed, restarted, stopped (it hangs) and let go on.
Printed are the p50 and p99 of the others before, during and after; how long those waited who were refused by
the node that is down, who met it first and all later ones (503; a write of unknown outcome is answered
408); and the time from the return of PostgreSQL to the first answer. Each against its goal.
"""
import argparse
import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse

# Of the emulator: no secret.
KEY = base64.b64decode("C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")
ITEMS = 60


def headers(method, kind, link, more):
    date = email.utils.formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    sig = base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()
    return {"x-ms-date": date, "x-ms-version": "2020-07-15", "Content-Type": "application/json",
            "authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={sig}", safe=""), **more}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method, path, kind, link, body=None, **more):
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                headers(method, kind, link, more))
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def item(self, method, i, body=None):
        link = f"dbs/d/colls/c/docs/{i}"
        return self.send(method, "/" + link, "docs", link, body,
                         **{"x-ms-documentdb-partitionkey": json.dumps([f"p{i}"])})


class Postgres:
    def __init__(self, directory):
        self.directory = directory
        self.programs = subprocess.check_output(["pg_config", "--bindir"], text=True).strip()
        self.prefix = []
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(directory, "nobody")
            self.prefix = ["setpriv", "--reuid=nobody", "--clear-groups"]
        subprocess.run([*self.prefix, f"{self.programs}/initdb", "-D", f"{directory}/data", "-U", "orrery", "-A",
                        "trust", "--locale=C", "-E", "UTF8"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
        self.start()
        self.url = f"postgresql://orrery@/postgres?host={urllib.parse.quote(directory, safe='')}"

    def start(self):
        self.process = subprocess.Popen([*self.prefix, f"{self.programs}/postgres", "-D", f"{self.directory}/data",
                                         "-k", self.directory, "-c", "listen_addresses="], cwd=self.directory,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "ready to accept connections" in line:
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def signal_all(self, number):
        """The server and all its sessions: as if the machine had stopped."""
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True,
                                  check=False).stdout.split()
        for pid in [self.process.pid, *map(int, children)]:
            os.kill(pid, number)


class Load:
    """Threads that read and replace in turn, and note when each answer came and how long it took."""

    def __init__(self, port, keys, clients):
        self.notes = []
        self.stopping = False
        self.threads = [threading.Thread(target=self.run, args=(port, keys[n::clients] or keys)) for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, port, keys):
        client, n = Client(port), 0
        while not self.stopping:
            i = keys[n % len(keys)]
            begin = time.monotonic()
            if n % 2:
                status, _ = client.item("PUT", i, {"id": str(i), "pk": f"p{i}", "n": n})
            else:
                status, _ = client.item("GET", i)
            end = time.monotonic()
            self.notes.append((end, (end - begin) * 1000, status))
            n += 1
            time.sleep(0.002)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()

    def between(self, begin, end, *statuses):
        return sorted(ms for at, ms, got in list(self.notes) if begin <= at < end and (not statuses or got in statuses))

    def first(self, begin, end, *statuses):
        """Of the first such answer of each client: how long it took."""
        return [ms for at, ms, got in sorted(self.notes) if begin <= at < end and got in statuses][:len(self.threads)]


def at(values, part):
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="or orrery itself")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--clients", type=int, default=4)
    given = parser.parse_args()
    given.server = given.program
    if os.path.basename(given.program) != "orrery":
        given.server = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(given.program))), "orrery")
    with tempfile.TemporaryDirectory(prefix="orrery-nodes-") as directory:
        os.chmod(directory, 0o755)
        place = os.path.join(directory, "pg")
        os.mkdir(place)
        measure(given, directory, Postgres(place))


def spread(port):
    client = Client(port)
    assert client.send("POST", "/dbs", "dbs", "", {"id": "d"})[0] == 201
    status, _ = client.send("POST", "/dbs/d/colls", "colls", "dbs/d", {"id": "c", "partitionKey": {
        "paths": ["/pk"], "kind": "Hash", "version": 2}}, **{"x-ms-offer-throughput": "30000"})
    assert status == 201
    for i in range(ITEMS):
        status, body = client.send("POST", "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c",
                                   {"id": str(i), "pk": f"p{i}"},
                                   **{"x-ms-documentdb-partitionkey": json.dumps([f"p{i}"])})
        assert status == 201, body
    return client


def measure(given, directory, postgres):
    process = subprocess.Popen([given.server, "serve", "--dev", "--rest", "127.0.0.1:0", "--gremlin", "off", "--node",
                                f"a=rocksdb:{directory}/a", "--node", f"far={postgres.url}", "--node",
                                f"c=rocksdb:{directory}/c"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for line in process.stdout:
            found = re.search(r"REST +http://\S+:(\d+)/", line)
            if found:
                port = int(found[1])
                break
        client = spread(port)
        # Which keys are the failing node's is found out by pausing it.
        for verb, wanted in (("pause", 503), ("resume", 200)):
            assert client.send("POST", f"/_orrery/nodes/far/{verb}", "_orrery", f"nodes/far/{verb}", {})[0] == 200
            if verb == "pause":
                far = [i for i in range(ITEMS) if client.item("GET", i)[0] == wanted]
        near = [i for i in range(ITEMS) if i not in far]
        run(given, port, postgres, near, far)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        postgres.signal_all(signal.SIGCONT)
        postgres.kill()


def run(given, port, postgres, near, far):
    others, own = Load(port, near, given.clients), Load(port, far, given.clients)
    marks = {}

    def phase(name, act):
        begin = time.monotonic()
        act()
        back = time.monotonic()
        time.sleep(given.seconds)
        marks[name] = (begin, back, time.monotonic())

    phase("before", lambda: None)
    phase("killed", postgres.kill)
    phase("restarted", postgres.start)
    phase("hanging", lambda: postgres.signal_all(signal.SIGSTOP))
    phase("going on", lambda: postgres.signal_all(signal.SIGCONT))
    others.stop()
    own.stop()
    for name, (begin, _, end) in marks.items():
        mine = others.between(begin, end)
        bad = len(mine) - len(others.between(begin, end, 200))
        print(f"  {name:9}  others: p50 {at(mine, .5):6.1f} ms  p99 {at(mine, .99):6.1f} ms  max {mine[-1]:7.1f} ms"
              f"  {len(mine)} answers, {bad} not 200")
    alarms = own.between(*marks["before"][::2], 503, 408)
    print(f"  before     refused by the node: {len(alarms)} (goal 0)")
    for name in ("killed", "hanging"):
        begin, _, end = marks[name]
        refused, first = own.between(begin, end, 503, 408), own.first(begin, end, 503, 408)
        unknown = len(own.between(begin, end, 408))
        print(f"  {name:9}  refused by the node: {len(refused)}, of them {unknown} writes of unknown outcome (408)")
        print(f"nodes: answers of a node {name}, ms: first {max(first, default=float('nan')):.1f}, longest {refused[-1]:.1f}, "
              f"p99 {at(refused, .99):.1f}, p50 {at(refused, .5):.1f} (goal 100)")
    for name in ("restarted", "going on"):
        _, back, end = marks[name]
        first = min((when for when, _, got in own.notes if back <= when < end and got == 200), default=float("nan"))
        print(f"nodes: first answer of the node {name}, ms after it is there again = {1000 * (first - back):.0f}")
    before, during = others.between(*marks["before"][::2]), others.between(*marks["killed"][::2])
    print(f"nodes: p99 of the others with a node killed / before, ms = {at(during, .99):.2f} / {at(before, .99):.2f} = "
          f"{at(during, .99) / at(before, .99):.2f} (goal 2)")
    hanging = others.between(*marks["hanging"][::2])
    print(f"nodes: p99 of the others with a node hanging / before, ms = {at(hanging, .99):.2f} / {at(before, .99):.2f} = "
          f"{at(hanging, .99) / at(before, .99):.2f} (goal 2)")


if __name__ == "__main__":
    main()
