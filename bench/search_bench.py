#!/usr/bin/env python3
"""Searching, against PostgreSQL on the same items: words by tsvector and GIN, places by PostGIS.

    search_bench.py PATH_IN_THE_FOLDER_OF_THE_SERVER [--items N] [--seconds S] [--connections 1,16]

One query after the other over each connection, with other words each time. One connection tells how long a query takes, and on a busy machine
who gets a processor; many tell what a query costs. Processor times are those of the servers, whoever else uses the machine. Ours is asked over HTTP by search_bench_load, with requests made
and signed before; PostgreSQL by pgbench with prepared statements over a socket of the file system. Without PostGIS places are left out, and a
line says so. Both must have found the same items, or nothing is compared. The ten nearest places are asked for by $near of MongoDB's language,
for SQL has no order by distance (SC2206, as in the service).
"""
import argparse
import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

from servers import Server

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
WORDS, OFTEN_FROM, OFTEN_TO = 20000, 20, 400
POSTGRES = "/usr/lib/postgresql/15/bin"
REQUESTS = 1000  # that are sent in turn
PAGE = 1000  # rows of ours; theirs are limited to as many
QUERY_HEADERS = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-max-item-count": str(PAGE),
                 "x-ms-documentdb-query-enablecrosspartition": "True"}


def items(count):
    """Texts of 20 to 60 words, the nth of which comes as often as 1 / n; places all over a continent."""
    chance = random.Random(7)
    weights = [1 / (n + 1) for n in range(WORDS)]
    for i in range(count):
        words = chance.choices(range(WORDS), weights, k=chance.randint(20, 60))
        yield {"id": str(i), "pk": f"p{i % 100}", "text": " ".join(f"w{word}" for word in words),
               "at": {"type": "Point", "coordinates": [chance.uniform(-10, 30), chance.uniform(35, 60)]}}


class Ours:
    """The server, asked over one connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def request(self, verb, kind, link, headers):
        """The headers of a request, signed."""
        date = email.utils.formatdate(usegmt=True)
        text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe="")
        return {"authorization": token, "x-ms-date": date, "x-ms-version": "2018-12-31", "content-type": "application/json", **headers}

    def signed(self, verb, kind, link, path, body, headers):
        self.connection.request(verb, path, body, self.request(verb, kind, link, headers))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"search_bench: {verb} {path}: {answer.status} {text.decode()[:300]}")
        return json.loads(text) if text else None

    def fill(self, count):
        self.signed("POST", "dbs", "", "/dbs", json.dumps({"id": "b"}), {})
        self.signed("POST", "colls", "dbs/b", "/dbs/b/colls", json.dumps({
            "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
            "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/text/?"}, {"path": "/at/*"}],
                               "fullTextIndexes": [{"path": "/text"}], "spatialIndexes": [{"path": "/at/?", "types": ["Point"]}]}}), {})
        for item in items(count):
            self.signed("POST", "docs", "dbs/b/colls/c", "/dbs/b/colls/c/docs", json.dumps(item),
                        {"x-ms-documentdb-partitionkey": json.dumps([item["pk"]])})

    def query(self, text):
        body = json.dumps({"query": text, "parameters": []})
        return self.signed("POST", "docs", "dbs/b/colls/c", "/dbs/b/colls/c/docs", body, QUERY_HEADERS)["Documents"]

    def whole(self, text):
        """A request as it goes over the connection."""
        body = json.dumps({"query": text, "parameters": []}).encode()
        headers = {"host": "127.0.0.1", **self.request("POST", "docs", "dbs/b/colls/c", QUERY_HEADERS), "content-length": str(len(body))}
        return b"POST /dbs/b/colls/c/docs HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()).encode() + b"\r\n" + body

    def requests(self, make, chance):
        return self.connection.port, [], [self.whole(make(chance)) for _ in range(REQUESTS)]


def rate(program, pid, args, asked):
    """Queries in a second, and microseconds of the server's processors for each."""
    port, kind, requests = asked
    seconds, connections = args
    said = subprocess.run([program, str(port), str(pid), str(seconds), str(connections), *kind],
                          input=b"".join(b"%d\n" % len(request) + request for request in requests), capture_output=True, check=False)
    if said.returncode:
        sys.exit(f"search_bench: {said.stderr.decode()}")
    return tuple(map(float, said.stdout.split()))


def bson(value):
    """A document of texts, whole numbers, doubles, lists and documents."""
    out = b""
    for name, member in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(member, str):
            text = member.encode() + b"\0"
            kind, content = 2, struct.pack("<i", len(text)) + text
        elif isinstance(member, (dict, list)):
            kind, content = 3 if isinstance(member, dict) else 4, bson(member)
        else:
            kind, content = (16, struct.pack("<i", member)) if isinstance(member, int) else (1, struct.pack("<d", member))
        out += bytes([kind]) + str(name).encode() + b"\0" + content
    return struct.pack("<i", len(out) + 5) + out + b"\0"


class OursMongo:
    """The same server by MongoDB's protocol."""

    def __init__(self, port):
        self.port = port

    def command(self, document):
        """The reply, as bytes. On a connection of its own: one that waits while others are filled is closed."""
        body = bson({**document, "$db": "b"})
        reply = b""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(struct.pack("<iiiiIb", len(body) + 21, 1, 0, 2013, 0, 0) + body)
            while len(reply) < 4 or len(reply) < struct.unpack_from("<i", reply)[0]:
                more = connection.recv(65536)
                if not more:
                    sys.exit("search_bench: the server closes its connection")
                reply += more
        if b"\x01ok\0" + struct.pack("<d", 1) not in reply or b"writeErrors" in reply:
            sys.exit(f"search_bench: {document}: {reply!r}"[:500])
        return reply

    def fill(self, count):
        self.command({"createIndexes": "m", "indexes": [{"key": {"at": "2dsphere"}, "name": "at"}]})
        documents = [{"_id": item["id"], "at": {**item["at"], "coordinates": list(item["at"]["coordinates"])}} for item in items(count)]
        for begin in range(0, count, 500):
            self.command({"insert": "m", "documents": documents[begin:begin + 500]})

    def query(self, command):
        """The ids found, in their order."""
        return [text.decode() for text in re.findall(rb"\x02_id\0....(\d+)\0", self.command(command), re.DOTALL)]

    def requests(self, make, chance):
        return self.port, ["mongo"], [bson({**make(chance), "$db": "b"}) for _ in range(REQUESTS)]


class Theirs:
    """A PostgreSQL of our own, in a directory; not as root, which it refuses."""

    def __init__(self, directory):
        self.directory = directory
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.user:
            shutil.chown(directory, "postgres")
        self.run(f"{POSTGRES}/initdb", "-D", f"{directory}/pg", "-A", "trust", "-U", "postgres")
        self.run(f"{POSTGRES}/pg_ctl", "-D", f"{directory}/pg", "-w", "-l", f"{directory}/log", "-o", f"-k {directory} -h ''", "start")

    def run(self, *command, text=None):
        result = subprocess.run([*self.user, *command], input=text, capture_output=True, text=True, check=False, cwd="/")
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr[:500]}")
        return result.stdout

    def sql(self, text):
        return self.run("psql", "-h", self.directory, "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-qAt", text=text)

    def fill(self, count):
        """Is PostGIS there?"""
        rows = "".join("\t".join((item["id"], item["text"], "{} {}".format(*item["at"]["coordinates"]))) + "\n" for item in items(count))
        self.sql("CREATE TABLE t (id text, body text, place text);\n\\copy t FROM STDIN\n" + rows + "\\.\n")
        self.sql("ALTER TABLE t ADD words tsvector; UPDATE t SET words = to_tsvector('english', body);"
                 "CREATE INDEX ON t USING gin (words); VACUUM ANALYZE t;")
        try:
            self.sql("CREATE EXTENSION postgis;")
        except RuntimeError:
            return False
        self.sql("ALTER TABLE t ADD at geography; UPDATE t SET at = ST_GeogFromText('POINT(' || place || ')');"
                 "CREATE INDEX ON t USING gist (at); VACUUM ANALYZE t;")
        return True

    def cpu_s(self):
        """Of the server and its processes, those that have ended among them."""
        with open(os.path.join(self.directory, "pg", "postmaster.pid"), encoding="utf-8") as file:
            server = file.readline().strip()
        ticks = 0
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                    values = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended
            if process == server:
                ticks += sum(map(int, values[11:15]))
            elif values[1] == server:
                ticks += sum(map(int, values[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def rate(self, script, connections, seconds):
        """Queries in a second, and microseconds of the server's processors for each."""
        path = os.path.join(self.directory, "script.sql")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(path, 0o644)
        before = self.cpu_s()
        said = self.run("pgbench", "-h", self.directory, "-U", "postgres", "-n", "-M", "prepared", "-c", str(connections), "-T", str(seconds),
                        "-f", path, "postgres")
        time.sleep(0.5)  # until its processes have ended and are counted
        count = int(re.search(r"actually processed: (\d+)", said)[1])
        return float(re.search(r"tps = ([\d.]+)", said)[1]), (self.cpu_s() - before) / max(count, 1) * 1e6

    def stop(self):
        self.run(f"{POSTGRES}/pg_ctl", "-D", f"{self.directory}/pg", "-m", "immediate", "stop")


def two_words(chance):
    return tuple(chance.randint(OFTEN_FROM, OFTEN_TO) for _ in range(2))


def words_filter(function):
    return lambda chance: 'SELECT c.id FROM c WHERE {}(c.text, "w{}", "w{}")'.format(function, *two_words(chance))


def ranked(chance):
    return 'SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, "w{}", "w{}")'.format(*two_words(chance))


def within(chance):
    x, y = chance.randint(-10, 28), chance.randint(35, 58)
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    return f'SELECT c.id FROM c WHERE ST_WITHIN(c.at, {{"type":"Polygon","coordinates":[{ring}]}})'


def near(chance):
    x, y = chance.randint(-10, 28), chance.randint(35, 58)
    return f'SELECT c.id FROM c WHERE ST_DISTANCE(c.at, {{"type":"Point","coordinates":[{x},{y}]}}) < 50000'


def nearest_to(x, y):
    return {"find": "m", "filter": {"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [x, y]}}}}, "projection": {"_id": 1}, "limit": 10}


def nearest(chance):
    return nearest_to(chance.randint(-10, 28), chance.randint(35, 58))


def words_sql(operator):
    return f"SELECT id FROM t WHERE words @@ to_tsquery('english', 'w' || :a || ' {operator} w' || :b) LIMIT {PAGE};"


SETS = f"\\set a random({OFTEN_FROM}, {OFTEN_TO})\n\\set b random({OFTEN_FROM}, {OFTEN_TO})\n"
PLACES = "\\set x random(-10, 28)\n\\set y random(35, 58)\n"
# What is asked, by us and by them; whether it is about places; a query of which both must have the same items, as ours and as theirs.
LINES = [
    ("words, contains all of two", words_filter("FullTextContainsAll"), False, SETS + words_sql("&")),
    ("words, contains any of two", words_filter("FullTextContainsAny"), False, SETS + words_sql("|")),
    ("words, ranked top 10 of two", ranked, False,
     SETS + "SELECT id FROM t, to_tsquery('english', 'w' || :a || ' | w' || :b) q WHERE words @@ q ORDER BY ts_rank(words, q) DESC LIMIT 10;"),
    ("places, within a square degree", within, True,
     PLACES + "SELECT id FROM t WHERE ST_Covers(ST_MakePolygon(ST_MakeLine(ARRAY[ST_MakePoint(:x, :y), ST_MakePoint(:x + 1, :y),"
     " ST_MakePoint(:x + 1, :y + 1), ST_MakePoint(:x, :y + 1), ST_MakePoint(:x, :y)]))::geography, at);"),
    ("places, within 50 km", near, True,
     PLACES + "SELECT id FROM t WHERE ST_DWithin(at, ST_MakePoint(:x, :y)::geography, 50000);"),
    ("places, the ten nearest by $near", nearest, True, PLACES + "SELECT id FROM t ORDER BY at <-> ST_MakePoint(:x, :y)::geography LIMIT 10;"),
]
SAME = [
    ('SELECT c.id FROM c WHERE FullTextContainsAll(c.text, "w30", "w90")', False, "SELECT id FROM t WHERE words @@ to_tsquery('english', 'w30 & w90')"),
    ('SELECT c.id FROM c WHERE FullTextContainsAny(c.text, "w300", "w90")', False, "SELECT id FROM t WHERE words @@ to_tsquery('english', 'w300 | w90')"),
    ('SELECT c.id FROM c WHERE ST_DISTANCE(c.at, {"type":"Point","coordinates":[9,45]}) < 50000', True,
     "SELECT id FROM t WHERE ST_DWithin(at, ST_MakePoint(9, 45)::geography, 50000)"),
]


def check_order(mongo, theirs):
    """MongoDB's distances are those of a sphere."""
    found = mongo.query(nearest_to(9, 45))
    expected = theirs.sql("SELECT id FROM t ORDER BY ST_Distance(at, ST_MakePoint(9, 45)::geography, false) LIMIT 10;").split()
    if found != expected:
        sys.exit(f"search_bench: $near: {found}, PostgreSQL has {expected}")


def check(ours, theirs, postgis):
    for text, places, sql in SAME:
        if places and not postgis:
            continue
        found, expected = {row["id"] for row in ours.query(text)}, set(theirs.sql(sql + ";").split())
        if not found <= expected or len(found) != min(len(expected), PAGE):
            sys.exit(f"search_bench: {text}: {len(found)} items, PostgreSQL has {len(expected)}")


def compare(name, ours, theirs):
    print(f"{name}, queries per second, vs PostgreSQL: {ours[0]:.0f} / {theirs[0]:.0f} = {ours[0] / theirs[0]:.2f} (goal: 1; "
          f"processor of a query, us: ours {ours[1]:.0f}, PostgreSQL's {theirs[1]:.0f})", flush=True)


def bench(orrery, load, args, directory, log):
    server = Server("orrery", [
        orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "127.0.0.1:0", "--gremlin", "off",
        "--mongo-replica-set", "off", "--node", f"local=rocksdb:{directory}/data", "--set", "throughput.enforce=never",
        "--set", "log.level=warning"], r"REST +https?://\S+:(\d+)/", log)
    theirs = Theirs(tempfile.mkdtemp(prefix="search_bench_pg.", dir=directory))
    try:
        ours = Ours(server.port)
        server.find(r"mongodb://127\.0\.0\.1:(\d+)/")
        mongo = OursMongo(server.port)
        ours.fill(args.items)
        mongo.fill(args.items)
        postgis = theirs.fill(args.items)
        if not postgis:
            print("search_bench: postgresql-15-postgis-3 is not installed: places are left out", flush=True)
        check(ours, theirs, postgis)
        if postgis:
            check_order(mongo, theirs)
        for name, make, places, script in LINES:
            if places and not postgis:
                continue
            asked = (mongo if make is nearest else ours).requests(make, random.Random(11))
            for connections in map(int, args.connections.split(",")):
                compare(f"{name}, {args.items} items, {connections} connection{'s' if connections > 1 else ''}",
                        rate(load, server.process.pid, (args.seconds, connections), asked), theirs.rate(script, connections, args.seconds))
    finally:
        theirs.stop()
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--items", type=int, default=int(os.environ.get("SEARCH_BENCH_ITEMS", "20000")))
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", default="1,16")
    args = parser.parse_args()
    orrery = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(args.program))), "orrery")
    load = os.path.join(os.path.dirname(os.path.abspath(args.program)), "search_bench_load")
    with tempfile.TemporaryDirectory(prefix="search_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        os.chmod(directory, 0o755)
        bench(orrery, load, args, directory, log)


if __name__ == "__main__":
    main()
