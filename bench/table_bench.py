#!/usr/bin/env python3
"""The Table API: ours, durable on RocksDB, against Azurite, taking turns.

    table_bench.py PATH_IN_THE_FOLDER_OF_table_bench_load [--rounds N] [--seconds S]

Starts both servers and hands them to the program, which makes the load and prints the figures.
Azurite keeps its tables in memory and saves them to a file now and then.
"""
import argparse
import os
import socket
import subprocess
import sys
import tempfile

from servers import Server, install


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
            servers.append(Server("orrery", [
                orrery, "serve", "--dev", "--rest", "off", "--table", "127.0.0.1:0",
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
