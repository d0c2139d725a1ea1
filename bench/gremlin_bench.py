#!/usr/bin/env python3
"""Traversals over WebSocket against the same in SQL on PostgreSQL, both durable, at 16 connections.

    gremlin_bench.py PATH_IN_THE_FOLDER_OF_gremlin_bench_load [--rounds N] [--seconds S] [--vertices N] [--only WORK]

Work: point, hop, hops, back, count, add-vertex, add-edge, scale. Every vertex has ten edges: the 100,000 vertices of --vertices, or of
the variable GREMLIN_BENCH_VERTICES, make a million. The graph, and one of a tenth, are put in by `orrery import --graph`.
"""
import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

from attack_bench import Client
from servers import Server


def make_graph(programs, directory, ports, name, vertices):
    rest, gremlin, orrery = ports
    file = os.path.join(directory, f"{name}.csv")
    subprocess.run([os.path.join(programs, "gremlin_bench_load"), "--csv", file, "--vertices", str(vertices)], check=True)
    client = Client(rest, "")
    client.send("POST", "dbs", {"id": "bench"})
    client.must("POST", "dbs/bench/colls", {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}},
                headers={"x-ms-offer-throughput": "1000000"})
    subprocess.run([orrery, "import", file, "--graph", "--endpoint", f"http://127.0.0.1:{rest}", "--dev", "--database", "bench",
                    "--container", name], check=True, stderr=subprocess.DEVNULL)
    os.unlink(file)
    # A first traversal that meets edges: the graph gets the indexes of them, which are built behind it.
    asked = http.client.HTTPConnection("127.0.0.1", gremlin)
    asked.request("POST", "/gremlin", json.dumps({"gremlin": "g.V(['p0','v0']).out().count()", "aliases": {"g": f"bench.{name}"}}))
    answer = asked.getresponse()
    if answer.status != 200:
        sys.exit(f"gremlin_bench: a first hop gave {answer.status}: {answer.read()[:300]}")
    while True:
        states = [index["state"] for index in json.loads(client.must("GET", f"dbs/bench/colls/{name}")).get("orrery", {}).get("indexes", [])]
        if len(states) == 3 and set(states) == {"ready"}:
            break
        time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", default="9")
    parser.add_argument("--seconds", default="0.4")
    parser.add_argument("--vertices", type=int, default=int(os.environ.get("GREMLIN_BENCH_VERTICES", "100000")))
    parser.add_argument("--only")
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    orrery = os.path.join(os.path.dirname(programs), "orrery")
    with tempfile.TemporaryDirectory(prefix="gremlin_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        ours = Server("orrery", [
            orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin", "127.0.0.1:0",
            "--node", f"local=rocksdb:{directory}/data", "--set", "partition.ru_max=1000000", "--set", "log.level=warning",
        ], r"http://127\.0\.0\.1:(\d+)/", log)
        try:
            rest = ours.port
            ours.find(r"ws://127\.0\.0\.1:(\d+)/")
            for name, vertices in (("graph", args.vertices), ("small", args.vertices // 10)):
                make_graph(programs, directory, (rest, ours.port, orrery), name, vertices)
            result = subprocess.run([
                os.path.join(programs, "gremlin_bench_load"), "--ours", ours.argument(), "--vertices", str(args.vertices),
                "--rounds", args.rounds, "--seconds", args.seconds, *(["--only", args.only] if args.only else []),
            ], check=False)
        finally:
            ours.stop()
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
