#!/usr/bin/env python3
"""The ten most alike of many vectors through HTTP: by an index, against comparing all items, and
against hnswlib called bare.

    vector_bench.py PATH_IN_THE_FOLDER_OF_vector_bench_theirs [--vectors N] [--dimensions N]
                    [--searches N] [--kind KIND...] [--server PROGRAM]

Vectors are seeded and lie around some places, as embeddings do. Recall is how many of the ten that
brute force finds an index finds too. hnswlib is given the same vectors in memory and one thread,
with as large a list as it takes to find as many; where its package is not installed it is left out,
and a line says so. Of diskANN the graph is waited for, which is built behind the first search while
others are answered. VECTOR_BENCH_VECTORS=100000 is the size of the goals; it takes some minutes.
"""
import argparse
import array
import base64
import hashlib
import hmac
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from email.utils import formatdate

from servers import Server

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
QUERY = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json",
         "x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-max-item-count": "-1"}
KEYS = 16   # logical partitions
BATCH = 50  # items of one request
BEST = 10


def signed(method, path):
    segments = path.split("/")
    kind, link = ((segments[-1], "/".join(segments[:-1])) if len(segments) % 2 == 1
                  else (segments[-2], path))
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    token = "type=master&ver=1.0&sig=" + base64.b64encode(digest).decode()
    return {"x-ms-date": date, "x-ms-version": "2020-07-15",
            "authorization": urllib.parse.quote(token, safe="")}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def must(self, method, path, body, headers=()):
        self.connection.request(method, "/" + path, body,
                                {"content-type": "application/json", **signed(method, path), **dict(headers)})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            sys.exit(f"vector_bench: {method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)


class Vectors:
    """Around places of a cube, each number as single precision has it."""

    def __init__(self, dimensions, seed=1):
        self.random = random.Random(seed)
        self.dimensions = dimensions
        self.places = [[self.random.gauss(0, 1) for _ in range(dimensions)] for _ in range(200)]

    def next(self):
        place = self.random.choice(self.places)
        gauss = self.random.gauss
        return array.array("f", [x + gauss(0, 1) for x in place])


def fill(client, name, kind, vectors):
    client.must("POST", "dbs/d/colls", json.dumps({
        "id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [{
            "path": "/v", "dataType": "float32", "dimensions": len(vectors[0]), "distanceFunction": "cosine"}]},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
                           "vectorIndexes": [{"path": "/v", "type": kind}]}}))
    for begin in range(0, len(vectors), BATCH):
        key = str(begin // BATCH % KEYS)
        operations = [{"operationType": "Create",
                       "resourceBody": {"id": str(i), "pk": key, "v": [round(x, 6) for x in vectors[i]]}}
                      for i in range(begin, min(begin + BATCH, len(vectors)))]
        client.must("POST", f"dbs/d/colls/{name}/docs", json.dumps(operations),
                    {"x-ms-documentdb-partitionkey": json.dumps([key]), "x-ms-cosmos-is-batch-request": "True",
                     "x-ms-cosmos-batch-atomic": "True"})


def search(client, name, asked, brute):
    query = f"SELECT TOP {BEST} VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, {'true' if brute else 'false'})"
    body = json.dumps({"query": query, "parameters": [{"name": "@v", "value": asked}]})
    begin = time.perf_counter()
    rows = client.must("POST", f"dbs/d/colls/{name}/docs", body, QUERY)["Documents"]
    return rows, time.perf_counter() - begin


def figures(client):
    client.connection.request("GET", "/metrics")
    lines = client.connection.getresponse().read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def wait_for_graph(client, name, asked):
    """Seconds until the graph serves; searches go on meanwhile, and how many there were is told."""
    begin, searches, shown = time.perf_counter(), 0, 0
    while True:
        now = figures(client)
        points, wanted = now["orrery_query_vector_graph_points"], now["orrery_query_vector_graph_points_wanted"]
        if now["orrery_query_vector_graphs"] and not now["orrery_query_vector_graphs_building"]:
            break
        if wanted and points / wanted >= shown + 0.25:
            shown += 0.25
            print(f"    {points:.0f} of {wanted:.0f} vectors are in the graph after {time.perf_counter() - begin:.0f} s", flush=True)
        search(client, name, asked, False)
        searches += 1
        time.sleep(0.2)
    print(f"  the graph was built in {time.perf_counter() - begin:.1f} s, while {searches} searches were answered; "
          f"vectors and graph take {now['orrery_query_vectors_bytes'] / 1e6:.1f} MB")


def theirs(program, vectors, asked, exact, directory):
    """Recall and seconds of a search of hnswlib; None: it is not there."""
    if not os.path.exists(program):
        print("  hnswlib is not compared: libhnswlib-dev was not installed when the programs were built")
        return None
    paths = [os.path.join(directory, name) for name in ("vectors", "asked", "exact")]
    for path, rows in zip(paths, (vectors, asked, [array.array("i", map(int, row)) for row in exact])):
        with open(path, "wb") as file:
            for row in rows:
                row.tofile(file)
    result = subprocess.run([program, str(len(vectors[0])), *paths], capture_output=True, text=True, check=True)
    recall, seconds = map(float, result.stdout.split())
    return recall, seconds


def race(client, kind, vectors, asked, exact_from):
    name = kind.lower()
    begin = time.perf_counter()
    fill(client, name, kind, vectors)
    print(f"  {kind}: {len(vectors)} items in {time.perf_counter() - begin:.0f} s")
    rows = [[round(x, 6) for x in vector] for vector in asked]
    search(client, name, rows[0], True)
    exact, brute, found, times = [], [], [], []
    for vector in rows[:exact_from]:
        ids, seconds = search(client, name, vector, True)
        exact.append(ids)
        brute.append(seconds)
    search(client, name, rows[0], False)
    if kind == "diskANN":
        wait_for_graph(client, name, rows[0])
    for vector in rows:
        ids, seconds = search(client, name, vector, False)
        found.append(ids)
        times.append(seconds)
    recall = statistics.mean(len(set(a) & set(b)) / BEST for a, b in zip(exact, found))
    print(f"{kind}, recall of the best {BEST} of {len(vectors)}: {recall:.3f} / 1 = {recall:.3f} (goal: 0.95)")
    ours, all_items = statistics.median(times), statistics.median(brute)
    print(f"{kind}, searches a second by the index and by comparing all items: "
          f"{1 / ours:.1f} / {1 / all_items:.2f} = {all_items / ours:.1f} (goal: 20)")
    return exact, ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--server")
    parser.add_argument("--vectors", type=int, default=int(os.environ.get("VECTOR_BENCH_VECTORS", "10000")))
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--searches", type=int, default=50)
    parser.add_argument("--exact", type=int, default=10, help="searches that are compared with brute force")
    parser.add_argument("--kind", nargs="*", default=["quantizedFlat", "diskANN"])
    options = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(options.program))
    orrery = os.path.abspath(options.server) if options.server else os.path.join(os.path.dirname(programs), "orrery")
    made = Vectors(options.dimensions)
    vectors = [made.next() for _ in range(options.vectors)]
    asked = [made.next() for _ in range(options.searches)]
    with tempfile.TemporaryDirectory() as directory, open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        server = Server("orrery", [
            orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin", "off",
            "--mongo-replica-set", "off", "--set", "throughput.enforce=never", "--set", "query.vectors_bytes_max=1G", "--node", f"local=rocksdb:{directory}/data"],
                        r"REST\s+http://127\.0\.0\.1:(\d+)", log)
        try:
            client = Client(server.port)
            client.must("POST", "dbs", json.dumps({"id": "d"}))
            for kind in options.kind:
                exact, ours = race(client, kind, vectors, asked, options.exact)
            bare = theirs(os.path.join(programs, "vector_bench_theirs"), vectors, asked[:options.exact], exact, directory)
            if bare:
                print(f"searches a second through HTTP and of hnswlib called bare, which has a recall of "
                      f"{bare[0]:.3f}: {1 / ours:.1f} / {1 / bare[1]:.1f} = {bare[1] / ours:.3f} (goal: 0.5)")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
