#!/usr/bin/env python3
"""The REST front: ours against PostgreSQL, an emulator in Node and bare HTTP, taking turns.

    rest_bench.py PATH_IN_THE_FOLDER_OF_rest_bench_load [--rounds N] [--seconds S]

Starts the servers and hands them to the program, which starts PostgreSQL itself, makes the load
and prints the figures. All that is kept is kept in the machine's directory for temporary files, so
on one file system; the emulator keeps nothing. It speaks plain HTTP as the others do.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench")

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

EMULATOR = """
const server = require('@vercel/cosmosdb-server').createHttpServer({ keepAlive: true });
server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
"""


def install():
    """The emulator, from the lock file when it has changed since the last time."""
    lock = os.path.join(BENCH, "package-lock.json")
    installed = os.path.join(BENCH, "node_modules", ".installed-lock")
    if not shutil.which("npm"):
        sys.exit("rest_bench: npm is missing")
    with open(lock, encoding="utf-8") as file:
        wanted = file.read()
    if os.path.exists(installed):
        with open(installed, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    result = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
                            cwd=BENCH, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"rest_bench: npm ci failed:\n{result.stdout}{result.stderr}")
    with open(installed, "w", encoding="utf-8") as file:
        file.write(wanted)


class Server:
    """A process that tells its port in its first lines and ends when its standard input does."""

    def __init__(self, name, command, pattern, log):
        self.process = subprocess.Popen(command, cwd=BENCH, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.process.stdout:
            found = re.search(pattern, line)
            if found:
                self.port = int(found[1])
                return
        sys.exit(f"rest_bench: {name} did not start, see {log.name}")

    def argument(self):
        return f"{self.port}:{self.process.pid}"

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait(timeout=30)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", default="9")
    parser.add_argument("--seconds", default="0.5")
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    orrery = os.path.join(os.path.dirname(programs), "orrery")
    install()
    with tempfile.TemporaryDirectory(prefix="rest_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        servers = []
        try:
            # the container is one partition that may spend as much as it likes
            servers.append(Server("orrery", [
                orrery, "serve", "--dev", "--rest", "127.0.0.1:0",
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
