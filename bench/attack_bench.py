#!/usr/bin/env python3
"""What attacks of one account do to another: p99 of point reads and queries, alone and meanwhile.

    attack_bench.py PATH_IN_THE_FOLDER_OF_THE_BENCH_PROGRAMS [--rounds N] [--seconds S] [--only ATTACK...]

The server is the one built with the programs. An attack is a function of ATTACKS: it is given an
attacker (a read-only key of an account of its own, an empty container, the port) and an event, and
goes on until the event is set. Quiet and loud phases take turns. Each attack has a line for reads
and one for queries, `name: p99 meanwhile / p99 alone = ratio`, and says what the server held at
most, as it counts and as the kernel does.

Clients, attackers and server share the processors of one machine. What the measuring client waits
for one is no latency of the server, so it runs before everything else, in both phases, where the
system lets it (the first line says). `busy` is no attack but the control: processes that spin and
ask the server nothing. Its ratio stands beside those of the attacks.
"""
import argparse
import base64
import hashlib
import hmac
import http.client
import itertools
import json
import multiprocessing
import os
import re
import socket
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
QUERY = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json",
         "x-ms-documentdb-query-enablecrosspartition": "True"}
FORTY = list(range(40))


def signed(key, method, path):
    """The headers that sign a request."""
    segments = path.split("/")
    kind, link = ((segments[-1], "/".join(segments[:-1])) if len(segments) % 2 == 1
                  else (segments[-2], path))
    if segments[0] == "_orrery":
        kind, link = "_orrery", "/".join(segments[1:])
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    token = "type=master&ver=1.0&sig=" + base64.b64encode(digest).decode()
    return {"x-ms-date": date, "x-ms-version": "2020-07-15",
            "authorization": urllib.parse.quote(token, safe="")}


def partition(value):
    return {"x-ms-documentdb-partitionkey": json.dumps([value])}


def question(text, parameters):
    return {"query": text,
            "parameters": [{"name": name, "value": value} for name, value in parameters.items()]}


class Client:
    """One connection of one account."""

    def __init__(self, port, account, key=KEY):
        self.prefix = f"/{account}/" if account else "/"
        self.key = key
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method, path, body=None, headers=None):
        self.connection.request(method, self.prefix + path,
                                None if body is None else json.dumps(body),
                                {**signed(self.key, method, path), **(headers or {})})
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def query(self, text, parameters):
        return self.send("POST", f"{COLLECTION}/docs", question(text, parameters), QUERY)

    def must(self, *arguments, **named):
        status, _, read = self.send(*arguments, **named)
        if status not in (200, 201):
            sys.exit(f"attack_bench: {arguments[:2]} gave {status}: {read[:300]}")
        return read


class Attacker:
    """Who attacks: another account than the one that is measured."""

    def __init__(self, port, key, gremlin_port):
        self.port, self.key, self.gremlin = port, key, gremlin_port
        self.totals = multiprocessing.Queue()
        self.lock = threading.Lock()
        self.answers, self.charge = {}, 0.0

    def client(self):
        return Client(self.port, "attacker", self.key)

    def count(self, status, headers=None):
        with self.lock:
            self.answers[status] = self.answers.get(status, 0) + 1
            if headers is not None:
                self.charge += float(headers.get("x-ms-request-charge", 0))

    def run(self, attack, stop):
        """In a process of its own, so that it does not slow down who measures."""
        self.answers, self.charge = {}, 0.0
        attack(self, stop)
        self.totals.put((self.answers, self.charge))

    def gather(self):
        answers, charge = self.totals.get()
        for status, count in answers.items():
            self.answers[status] = self.answers.get(status, 0) + count
        self.charge += charge

    def raw(self, text, parameters):
        """The bytes of a query, for connections that do not read."""
        body = json.dumps(question(text, parameters))
        path = f"{COLLECTION}/docs"
        head = {**signed(self.key, "POST", path), **QUERY, "host": "localhost",
                "content-length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        return f"POST /attacker/{path} HTTP/1.1\r\n{lines}\r\n{body}".encode()


def many(count, attacker, stop, once):
    """So many threads that do something again and again."""

    def run():
        client = attacker.client()
        while not stop.is_set():
            try:
                once(client)
            except (OSError, http.client.HTTPException):
                client = attacker.client()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Attacks -------------------------------------------------------------------------------------


def joins(attacker, stop):
    """Joins over arrays that come with the query, on an empty container."""
    text = ("SELECT VALUE (SELECT VALUE COUNT(1) FROM a IN @p "
            + " ".join(f"JOIN j{i} IN @p" for i in range(9)) + ")")

    def once(client):
        status, headers, _ = client.query(text, {"@p": FORTY})
        attacker.count(status, headers)

    many(24, attacker, stop, once)


def short_joins(attacker, stop):
    """The same in queries of some milliseconds each."""
    text = "SELECT VALUE (SELECT VALUE COUNT(1) FROM a IN @p JOIN b IN @p JOIN c IN @p)"

    def once(client):
        status, headers, _ = client.query(text, {"@p": FORTY})
        attacker.count(status, headers)

    many(24, attacker, stop, once)


def answers(attacker, stop):
    """Pipelined queries of four megabytes each that nobody reads."""
    request = attacker.raw("SELECT VALUE [" + ",".join(["@p"] * 60) + "]", {"@p": "x" * 62000})
    sockets = []
    for _ in range(16):
        connection = socket.create_connection(("127.0.0.1", attacker.port))
        connection.setblocking(False)
        sockets.append([connection, b""])
    while not stop.wait(0.01):
        for one in sockets:
            one[1] = one[1] or request
            try:
                one[1] = one[1][one[0].send(one[1]):]
            except BlockingIOError:
                pass
            except OSError:
                one[0] = socket.create_connection(("127.0.0.1", attacker.port))
                one[0].setblocking(False)
                one[1] = b""
    for connection, _ in sockets:
        connection.close()


def probes(attacker, stop):
    """A flood of /ready and /metrics."""

    def once(client):
        for path in ("/ready", "/metrics"):
            client.connection.request("GET", path)
            answer = client.connection.getresponse()
            answer.read()
            attacker.count(answer.status)

    many(16, attacker, stop, once)


def texts(attacker, stop):
    """Texts of 200 KB, which have to be read before anything is known of them."""
    text = "SELECT VALUE [" + ",".join(["1+1"] * 49000) + "]"

    def once(client):
        status, headers, _ = client.query(text, {})
        attacker.count(status, headers)

    many(24, attacker, stop, once)


def pipelined(attacker, stop):
    """Short queries, as many as a connection takes, with answers that are read."""
    request = attacker.raw("SELECT VALUE 1", {}) * 50
    sockets = []
    for _ in range(32):
        connection = socket.create_connection(("127.0.0.1", attacker.port))
        connection.setblocking(False)
        sockets.append([connection, b""])
    while not stop.wait(0.001):
        for one in sockets:
            one[1] = one[1] or request
            try:
                one[1] = one[1][one[0].send(one[1]):]
            except BlockingIOError:
                pass
            try:
                one[0].recv(1048576)
            except BlockingIOError:
                pass
    for connection, _ in sockets:
        connection.close()


def gremlin(attacker, stop):
    """Traversals over HTTP that go round for ever, keep giant paths and group them."""
    doubled = "g.inject(1).repeat(union(identity(),identity())).times(20)"
    scripts = ["g.inject(0).repeat(identity()).until(constant(1).is(2))", f"{doubled}.path().fold().count(local)",
               f"{doubled}.group().by(path()).by(fold()).count(local)", f"{doubled}.order().by(path()).count()"]
    login = base64.b64encode(f"/dbs/d/colls/c:{attacker.key}".encode()).decode()
    turn = itertools.cycle(scripts)

    def run():
        while not stop.is_set():
            client = http.client.HTTPConnection("127.0.0.1", attacker.gremlin, timeout=60)
            try:
                body = json.dumps({"gremlin": next(turn), "evaluationTimeout": 2000})
                client.request("POST", "/gremlin", body, {"authorization": f"Basic {login}", "content-type": "application/json",
                                                          "host": f"attacker.localhost:{attacker.gremlin}"})
                answer = client.getresponse()
                answer.read()
                attacker.count(answer.status)
            except (OSError, http.client.HTTPException):
                attacker.count(0)

    threads = [threading.Thread(target=run) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def busy(_, stop):
    """No attack: processors that are busy with something else than the server. What the kernel makes
    others wait then is what no server can better while it uses all processors itself."""
    spinning = [multiprocessing.Process(target=spin, args=(stop,)) for _ in range(os.cpu_count())]
    for process in spinning:
        process.start()
    for process in spinning:
        process.join()


def spin(stop):
    while not stop.is_set():
        for _ in range(10000):
            pass


ATTACKS = {"busy": busy, "joins": joins, "short_joins": short_joins, "answers": answers,
           "texts": texts, "pipelined": pipelined, "probes": probes, "gremlin": gremlin}


# --- Measuring -----------------------------------------------------------------------------------


def p99(rounds):
    """Of the round in the middle: what else the machine did in one of them does not count."""
    return statistics.median(sorted(values)[len(values) * 99 // 100] for values in rounds) * 1000


def spread(rounds):
    """The median of all and the longest, in ms."""
    values = [value for one in rounds for value in one]
    return f"{statistics.median(values) * 1000:.3g} to {max(values) * 1000:.3g}"


def load(client, seconds, times):
    """A client of its own that reads an item and asks for one, in turn: another round of times."""
    reads, queries = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        client.must("GET", f"{COLLECTION}/docs/r", headers=partition("r"))
        middle = time.monotonic()
        client.must("POST", f"{COLLECTION}/docs",
                    question("SELECT * FROM c WHERE c.n = @n", {"@n": 7}), QUERY)
        reads.append(middle - begin)
        queries.append(time.monotonic() - middle)
        time.sleep(0.001)
    times["reads"].append(reads)
    times["queries"].append(queries)


def figure(client, name):
    client.connection.request("GET", "/metrics")
    text = client.connection.getresponse().read().decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


def resident_peak(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1024


def raise_priority():
    """This thread runs before all others, what it starts does not. Says how."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        return "real-time priority"
    except PermissionError:
        return "no priority over the attackers: this user may not give it one"


def measure(name, client, attacker, pid, options, control):
    quiet, loud = ({"reads": [], "queries": []} for _ in range(2))
    for _ in range(options.rounds):
        load(client, options.seconds, quiet)
        stop = multiprocessing.Event()
        attack = multiprocessing.Process(target=attacker.run, args=(ATTACKS[name], stop))
        attack.start()
        os.setpriority(os.PRIO_PROCESS, attack.pid, 0 if name == "busy" else options.nice)
        time.sleep(0.3)
        load(client, options.seconds, loud)
        stop.set()
        attacker.gather()
        attack.join()
    held = figure(client, "orrery_memory_held_bytes_peak") / 1048576
    print(f"  {name}: attackers were answered {attacker.answers} for {attacker.charge:.0f} RU; held at "
          f"most {held:.0f} MB, resident at most {resident_peak(pid):.0f} MB", flush=True)
    for kind, rounds in loud.items():
        ratio = p99(rounds) / p99(quiet[kind])
        if name == "busy":
            control[kind] = ratio
        beside = f", busy: {control[kind]:.2f}" if kind in control and name != "busy" else ""
        print(f"  {kind}, median to longest, ms: {spread(rounds)} during {name}, {spread(quiet[kind])} alone")
        print(f"p99 of {kind} during {name} and alone, ms (less is better): {p99(rounds):.4g} / "
              f"{p99(quiet[kind]):.4g} = {ratio:.2f} (goal: at most 2{beside})", flush=True)


def prepare(port):
    """The measured account with its items, and the attacker with an empty container."""
    admin = Client(port, None)
    made = json.loads(admin.must("POST", "_orrery/accounts", {"id": "attacker"}))
    definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    victim, owner = Client(port, "victim"), Client(port, "attacker", made["keys"]["primary"])
    for client in (victim, owner):
        client.must("POST", "dbs", {"id": "d"})
        client.must("POST", "dbs/d/colls", definition, headers={"x-ms-offer-throughput": "1000000"})
    for i in range(200):
        item = {"id": "r" if i == 0 else f"i{i}", "pk": "r", "n": i, "text": "x" * 1000}
        victim.must("POST", f"{COLLECTION}/docs", item, headers=partition("r"))
    return victim, made["keys"]["primary-readonly"]


def port_of(server, pattern):
    """The next line that says it."""
    for text in server.stdout:
        found = re.search(pattern, text)
        if found:
            return int(found[1])
    sys.exit("attack_bench: orrery did not start")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--nice", type=int, default=0, help="of the attackers")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the server")
    options = parser.parse_args()
    print(f"  the measuring client has {raise_priority()}", flush=True)
    control = {}
    orrery = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(options.program))), "orrery")
    for name in options.only:
        with tempfile.TemporaryDirectory() as directory, \
                open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
            server = subprocess.Popen(
                [orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin",
                 "127.0.0.1:0", "--mongo-replica-set", "off", "--node",
                 f"local=rocksdb:{directory}/node", "--set", "partition.ru_max=1000000", "--set",
                 "account.by_use=true", "--set", "log.level=warning", "--set",
                 "server.memory_bytes_max=256M", "--set", "query.deadline_ms=2s",
                 *(word for one in options.set for word in ("--set", one))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                port = port_of(server, r"REST +https?://\S+:(\d+)/")
                gremlin_port = port_of(server, r"Gremlin +wss?://\S+:(\d+)/")
                client, readonly = prepare(port)
                measure(name, client, Attacker(port, readonly, gremlin_port), server.pid, options, control)
            finally:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
