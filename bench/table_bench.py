#!/usr/bin/env python3
"""The Table API: ours, durable on RocksDB, against Azurite, taking turns.

    table_bench.py PATH_IN_THE_FOLDER_OF_table_bench_load [--rounds N] [--seconds S]

Starts both servers and hands them to the program, which makes the load and prints the figures.
Azurite keeps its tables in memory and saves them to a file now and then.
"""
import argparse
import base64
import email.utils
import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

from servers import Server, install


# Of the Cosmos DB emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

# Nothing is indexed but the keys, in their order.
KEYED = {
    "id": "keyed",
    "partitionKey": {"paths": ["/PartitionKey"], "kind": "Hash", "version": 2},
    "indexingPolicy": {
        "includedPaths": [], "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [[{"path": "/PartitionKey", "order": "ascending"},
                              {"path": "/id", "order": "ascending"}]],
    },
}


def container_make(port):
    """A table with a policy of its own, made through the NoSQL API."""
    date = email.utils.formatdate(usegmt=True)
    text = f"post\ncolls\ndbs/TablesDB\n{date.lower()}\n\n"
    mac = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    token = urllib.parse.quote(f"type=master&ver=1.0&sig={base64.b64encode(mac).decode()}", safe="")
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/dbs/TablesDB/colls", json.dumps(KEYED).encode(),
        {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15",
         "x-ms-offer-throughput": "1000000"})
    with urllib.request.urlopen(request):
        pass


def database_make(port):
    """The first table makes the database of tables."""
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    date = email.utils.formatdate(usegmt=True)
    text = f"{date}\n/devstoreaccount1/devstoreaccount1/Tables"
    mac = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/devstoreaccount1/Tables", b'{"TableName":"first"}',
        {"authorization": f"SharedKeyLite devstoreaccount1:{base64.b64encode(mac).decode()}",
         "x-ms-date": date, "content-type": "application/json"})
    with urllib.request.urlopen(request):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--seconds", default="1")
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    orrery = os.path.join(os.path.dirname(programs), "orrery")
    install("table_bench")
    with tempfile.TemporaryDirectory(prefix="table_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        servers = []
        try:
            rest = free_port()
            servers.append(Server("orrery", [
                orrery, "serve", "--dev", "--rest", f"127.0.0.1:{rest}", "--table", "127.0.0.1:0",
                "--mongo", "off", "--gremlin", "off", "--mongo-replica-set", "off",
                "--node", f"local=rocksdb:{directory}/data",
                "--set", "partition.ru_max=1000000", "--set", "log.level=warning",
            ], r"TableEndpoint=https?://\S+:(\d+)/", log))
            servers.append(Server("Azurite", [
                "node", "node_modules/azurite/dist/src/table/main.js",
                "--tableHost", "127.0.0.1", "--tablePort", str(free_port()),
                "--location", f"{directory}/azurite", "--silent", "--disableTelemetry",
                "--skipApiVersionCheck",
            ], r"successfully started on 127.0.0.1:(\d+)", log))
            ours, azurite = servers
            database_make(ours.port)
            container_make(rest)
            result = subprocess.run([
                os.path.join(programs, "table_bench_load"), "--ours", ours.argument(),
                "--azurite", azurite.argument(), "--rounds", args.rounds, "--seconds", args.seconds,
            ], check=False)
        finally:
            for server in servers:
                server.stop()
        if result.returncode:
            log.flush()
            with open(log.name, encoding="utf-8") as text:
                print(text.read()[-2000:], file=sys.stderr)
            sys.exit(result.returncode)


main()
