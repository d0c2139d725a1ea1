#!/usr/bin/env python3
"""The ten most alike of many vectors through HTTP: by an index, against comparing all items, and
against hnswlib called bare.

    vector_bench.py PATH_IN_THE_FOLDER_OF_vector_bench_make [--vectors N] [--dimensions N]
                    [--searches N] [--brute N] [--seconds N] [--kind KIND...] [--server PROGRAM]

Vectors are seeded and lie around some places, as embeddings do; vector_bench_make makes them, and
the ten that are exact for each search. Items are put in by `orrery import`. Recall is how many of
those ten an index finds too. Searches are sent over one connection by search_bench_load, made and
signed before. Of diskANN the graph is waited for, which is built behind the first search while
others are answered. hnswlib is given the same vectors in memory, builds on all processors and
searches on one thread, with as long a list as it takes to find as many as diskANN; where its package
is not installed it is left out, and a line says so.

VECTOR_BENCH_VECTORS=100000 is the size of the goals (`make bench-long`): some minutes, and 2 GB of disk.
"""
import argparse
import array
import base64
import hashlib
import hmac
import http.client
import json
import os
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
BEST = 10
RECALL = 0.95


def fail(text):
    sys.exit(f"vector_bench: {text}")


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


class Data:
    """What vector_bench_make has made."""

    def __init__(self, program, options, directory):
        self.directory, self.count, self.dimensions = directory, options.vectors, options.dimensions
        subprocess.run([program, str(options.vectors), str(options.dimensions), str(options.searches), directory], check=True)
        self.items = os.path.join(directory, "items")
        self.asked = [[round(x, 4) for x in row] for row in self.rows("asked", "f", options.dimensions)]
        self.exact = [list(map(str, row)) for row in self.rows("exact", "i", BEST)]

    def rows(self, name, kind, each):
        with open(os.path.join(self.directory, name), "rb") as file:
            numbers = array.array(kind, file.read())
        return [numbers[at:at + each] for at in range(0, len(numbers), each)]


class Client:
    def __init__(self, server, programs):
        self.server, self.load = server, os.path.join(programs, "search_bench_load")
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def must(self, method, path, body, headers=()):
        self.connection.request(method, "/" + path, body,
                                {"content-type": "application/json", **signed(method, path), **dict(headers)})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            fail(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

    def search(self, name, asked, brute):
        return self.must("POST", f"dbs/d/colls/{name}/docs", query(asked, brute), QUERY)["Documents"]

    def rate(self, name, asked, seconds):
        """Searches in a second, and seconds of the server's processors for each."""
        requests = b""
        for vector in asked:
            body = query(vector, False).encode()
            path = f"dbs/d/colls/{name}/docs"
            headers = {"host": "127.0.0.1", **signed("POST", path), **QUERY, "content-length": str(len(body))}
            whole = f"POST /{path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
            requests += b"%d\n" % (len(whole) + len(body)) + whole.encode() + body
        said = subprocess.run([self.load, str(self.server.port), str(self.server.process.pid), str(seconds), "1"],
                              input=requests, capture_output=True, check=False)
        if said.returncode:
            fail(said.stderr.decode())
        rate, cpu_us = map(float, said.stdout.split())
        return rate, cpu_us / 1e6

    def figures(self):
        self.connection.request("GET", "/metrics")
        lines = self.connection.getresponse().read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def query(asked, brute):
    text = f"SELECT TOP {BEST} VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, {'true' if brute else 'false'})"
    return json.dumps({"query": text, "parameters": [{"name": "@v", "value": asked}]})


def fill(client, orrery, name, kind, data):
    client.must("POST", "dbs/d/colls", json.dumps({
        "id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [{
            "path": "/v", "dataType": "float32", "dimensions": data.dimensions, "distanceFunction": "cosine"}]},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
                           "vectorIndexes": [{"path": "/v", "type": kind}]}}))
    begin = time.perf_counter()
    result = subprocess.run([orrery, "import", data.items, "--database", "d", "--container", name, "--as", "json", "--quiet",
                             "--endpoint", f"http://127.0.0.1:{client.server.port}", "--dev"],
                            capture_output=True, text=True, check=False)
    if result.returncode:
        fail(f"import: {result.stdout}{result.stderr}")
    print(f"  {kind}: {data.count} items of {data.dimensions} dimensions put in, in {time.perf_counter() - begin:.0f} s", flush=True)


def wait_for_graph(client, name, asked):
    """Searches go on meanwhile, and how many there were is told. Bytes of vectors and graph."""
    begin, searches, shown = time.perf_counter(), 0, 0
    while True:
        now = client.figures()
        points, wanted = now["orrery_query_vector_graph_points"], now["orrery_query_vector_graph_points_wanted"]
        if now["orrery_query_vector_graphs"] and not now["orrery_query_vector_graphs_building"]:
            break
        if wanted and points / wanted >= shown + 0.25:
            shown += 0.25
            print(f"    {points:.0f} of {wanted:.0f} vectors are in the graph after {time.perf_counter() - begin:.0f} s", flush=True)
        client.search(name, asked, False)
        searches += 1
        time.sleep(0.2)
    print(f"  the graph was built in {time.perf_counter() - begin:.1f} s, while {searches} searches were answered", flush=True)


def race(client, orrery, kind, data, options):
    """Recall, searches a second, and bytes in memory."""
    name = kind.lower()
    before = client.figures()["orrery_query_vectors_bytes"]
    fill(client, orrery, name, kind, data)
    client.search(name, data.asked[0], True)
    brute = []
    for vector, exact in list(zip(data.asked, data.exact))[:options.brute]:
        begin = time.perf_counter()
        found = client.search(name, vector, True)
        brute.append(time.perf_counter() - begin)
        if sum(id in exact for id in found) < BEST - 1:  # two may be as alike, and single precision decides
            fail(f"comparing all items found {found}, exact are {exact}")
    client.search(name, data.asked[0], False)
    if kind == "diskANN":
        wait_for_graph(client, name, data.asked[0])
    found = [client.search(name, vector, False) for vector in data.asked]
    recall = statistics.mean(len(set(a) & set(b)) / BEST for a, b in zip(data.exact, found))
    rate, cpu_s = client.rate(name, data.asked, options.seconds)
    all_items = statistics.median(brute)
    print(f"{kind}, recall of the best {BEST} of {data.count}: {recall:.3f} / 1 = {recall:.3f} (goal: {RECALL})")
    print(f"{kind}, searches a second by the index and by comparing all items: "
          f"{rate:.1f} / {1 / all_items:.2f} = {rate * all_items:.1f} (goal: 20; {cpu_s * 1e6:.0f} us of our processor each)", flush=True)
    return recall, rate, cpu_s, client.figures()["orrery_query_vectors_bytes"] - before


def compare(program, data, ours):
    """hnswlib, with the recall of ours."""
    recall, rate, cpu_s, memory = ours
    if not os.path.exists(program):
        print("  hnswlib is not compared: libhnswlib-dev was not installed when the programs were built")
        return
    result = subprocess.run([program, str(data.dimensions), data.directory, str(min(recall, 0.99))],
                            capture_output=True, text=True, check=True)
    their_recall, seconds, build, their_memory = map(float, result.stdout.split())
    print(f"  hnswlib called bare: recall {their_recall:.3f}, built in {build:.1f} s on all processors", flush=True)
    print(f"searches a second through HTTP and of hnswlib called bare: {rate:.1f} / {1 / seconds:.1f} = {rate * seconds:.3f} (goal: 0.5)")
    print(f"searches in a second of a processor, through HTTP and of hnswlib called bare: "
          f"{1 / cpu_s:.1f} / {1 / seconds:.1f} = {seconds / cpu_s:.3f}")
    print(f"MB in memory, vectors and graph, and hnswlib's: {memory / 1e6:.1f} / {their_memory / 1e6:.1f} = {memory / their_memory:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--server")
    parser.add_argument("--vectors", type=int, default=int(os.environ.get("VECTOR_BENCH_VECTORS", "10000")))
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--brute", type=int, default=5, help="searches that all items are compared for")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--kind", nargs="*", default=["quantizedFlat", "diskANN"])
    options = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(options.program))
    orrery = os.path.abspath(options.server) if options.server else os.path.join(os.path.dirname(programs), "orrery")
    with tempfile.TemporaryDirectory(prefix="vector_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        data = Data(os.path.join(programs, "vector_bench_make"), options, directory)
        server = Server("orrery", [
            orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin", "off",
            "--mongo-replica-set", "off", "--set", "throughput.enforce=never", "--set", "query.vectors_bytes_max=1G", "--set", "query.deadline_ms=10m",
            "--node", f"local=rocksdb:{directory}/data"],
                        r"REST\s+http://127\.0\.0\.1:(\d+)", log)
        try:
            client = Client(server, programs)
            client.must("POST", "dbs", json.dumps({"id": "d"}))
            results = {kind: race(client, orrery, kind, data, options) for kind in options.kind}
        finally:
            server.stop()
        if "diskANN" in results:
            compare(os.path.join(programs, "vector_bench_theirs"), data, results["diskANN"])


if __name__ == "__main__":
    main()
