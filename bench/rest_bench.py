#!/usr/bin/env python3
"""The REST front: ours against PostgreSQL, an emulator in Node and bare HTTP, taking turns.

    rest_bench.py PATH_IN_THE_FOLDER_OF_rest_bench_load [--rounds N] [--seconds S]

Starts the servers and hands them to the program, which starts PostgreSQL itself, makes the load
and prints the figures. All that is kept is kept in the machine's directory for temporary files, so
on one file system; the emulator keeps nothing. It speaks plain HTTP as the others do.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from servers import Server, install

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

EMULATOR = """
const server = require('@vercel/cosmosdb-server').createHttpServer({ keepAlive: true });
server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", default="9")
    parser.add_argument("--seconds", default="0.5")
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    orrery = os.path.join(os.path.dirname(programs), "orrery")
    install("rest_bench")
    with tempfile.TemporaryDirectory(prefix="rest_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        servers = []
        try:
            # the container is one partition that may spend as much as it likes
            servers.append(Server("orrery", [
                orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin", "off",
             "--mongo-replica-set", "off",
                "--node", f"local=rocksdb:{directory}/data",
                "--set", "partition.ru_max=1000000", "--set", "log.level=warning",
            ], r"REST +https?://\S+:(\d+)/", log))
            servers.append(Server("the emulator", ["node", "-e", EMULATOR], r"port (\d+)", log))
            servers.append(Server("bare HTTP", [os.path.join(programs, "http_bench_server"), "0"],
                                  r"^(\d+)$", log))
            ours, emulator, bare = servers
            result = subprocess.run([
                os.path.join(programs, "rest_bench_load"), "--ours", ours.argument(),
                "--emulator", emulator.argument(), "--bare", bare.argument(), "--key", KEY,
                "--directory", directory, "--rounds", args.rounds, "--seconds", args.seconds,
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
