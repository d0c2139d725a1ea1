#!/usr/bin/env python3
"""Much data put in at once, every path indexed: ours through bulk requests and through `orrery import`, against prepared
inserts of many rows into PostgreSQL with a GIN index.

    fill_bench.py PATH_IN_THE_FOLDER_OF_fill_bench_load [--items N] [--rounds N] [--set KEY=VALUE ...]

Servers begin empty in every round and take turns. The time ends when a server is quiet: what it puts off counts.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from servers import Server

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
NAMES = ("first", "last", "all", "cpu", "resident", "written")


class Filler:
    """The programs and what they are called with."""

    def __init__(self, programs, items, settings):
        self.load = os.path.join(programs, "fill_bench_load")
        self.orrery = os.path.join(os.path.dirname(programs), "orrery")
        self.items = items
        self.settings = [word for setting in settings for word in ("--set", setting)]

    def call(self, *words, items=None):
        """One fill, or the file for one; its figures by name."""
        result = subprocess.run([self.load, "--items", str(self.items if items is None else items),
                                 "--key", KEY, *words],
                                stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            sys.exit(result.returncode)
        return dict(zip(NAMES, map(float, result.stdout.split())))

    def serve(self, directory, log):
        return Server("orrery", [
            self.orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo",
            "off", "--mongo-replica-set", "off", "--node", f"local=rocksdb:{directory}/data",
            "--set", "partition.ru_max=1000000", "--set", "log.level=warning", *self.settings,
        ], r"REST +https?://\S+:(\d+)/", log)

    def bulk(self):
        with tempfile.TemporaryDirectory(prefix="fill_bench.") as directory, \
                open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
            server = self.serve(directory, log)
            try:
                return self.call("--ours", server.argument())
            finally:
                server.stop()

    def imported(self):
        """Seconds of `orrery import`, with what the server does afterwards."""
        with tempfile.TemporaryDirectory(prefix="fill_bench.") as directory, \
                open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
            path = os.path.join(directory, "items.json")
            self.call("--file", path)
            server = self.serve(directory, log)
            try:
                where = ["--endpoint", f"http://127.0.0.1:{server.port}", "--dev"]
                self.call("--ours", server.argument(), items=0)
                begun = time.monotonic()
                result = subprocess.run(
                    [self.orrery, "import", path, "--database", "bench", "--container", "items",
                     "--quiet", *where], capture_output=True, text=True, check=False)
                if result.returncode:
                    sys.exit(f"fill_bench: import: {result.stdout}{result.stderr}")
                quiet_wait(server.process.pid)
                return {"all": time.monotonic() - begun - QUIET_S}
            finally:
                server.stop()


QUIET_S = 1


def cpu_s(process):
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quiet_wait(process):
    """Until it has used less than a tenth of a core for a second."""
    while True:
        before = cpu_s(process)
        time.sleep(QUIET_S)
        if cpu_s(process) - before < 0.1 * QUIET_S:
            return


def budget_mb(settings):
    """What caches and write buffers may take: a quarter of the machine unless it is set, in bytes or with K, M or G."""
    for setting in settings:
        name, _, value = setting.partition("=")
        if name == "engine.budget_bytes" and value != "0":
            factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(value[-1].upper(), 1)
            return int(value.rstrip("KMGkmg")) * factor / (1 << 20)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 4 / (1 << 20)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--items", type=int,
                        default=int(os.environ.get("FILL_BENCH_ITEMS", "200000")))
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("FILL_BENCH_ROUNDS", "1")))
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--only", choices=("bulk", "import", "postgresql"))
    args = parser.parse_args()
    filler = Filler(os.path.dirname(os.path.abspath(args.program)), args.items, args.set)
    ways = {"bulk": filler.bulk, "import": filler.imported,
            "postgresql": lambda: filler.call("--postgresql")}
    if args.only:
        ways = {args.only: ways[args.only]}
    rounds = {way: [] for way in ways}
    for _ in range(args.rounds):
        for way, fill in ways.items():
            figures = fill()
            rounds[way].append(figures)
            print(f"  {args.items} items of 1 KB, {way}: " + ", ".join(
                f"{name} {value:.1f}" for name, value in figures.items()), flush=True)
    median = {way: {name: statistics.median(figures[name] for figures in all_of)
                    for name in all_of[0]} for way, all_of in rounds.items()}
    if "bulk" in median:
        ours = median["bulk"]
        print(f"rate of the last fifth of {args.items} items and of the first, bulk, per second: "
              f"{args.items / 5 / ours['last']:.0f} / {args.items / 5 / ours['first']:.0f} = "
              f"{ours['first'] / ours['last']:.2f} (goal: at least 0.8)")
    for way in ("bulk", "import"):
        if way in median and "postgresql" in median:
            one, other = (args.items / median[name]["all"] for name in (way, "postgresql"))
            print(f"{args.items} items of 1 KB, every path indexed, {way}, per second until quiet, vs "
                  f"PostgreSQL with GIN: {one:.0f} / {other:.0f} = {one / other:.2f} (goal: 1)")
    if "bulk" in median:
        resident, budget = median["bulk"]["resident"], budget_mb(args.set)
        print(f"largest resident set while {args.items} items are put in through bulk, MB, vs "
              f"engine.budget_bytes: {resident:.0f} / {budget:.0f} = {resident / budget:.2f} (goal: at most 1)")
    if "bulk" in median and "postgresql" in median:
        one, other = (args.items / median[name]["cpu"] for name in ("bulk", "postgresql"))
        print(f"{args.items} items of 1 KB, every path indexed, bulk, per CPU second, vs PostgreSQL with "
              f"GIN: {one:.0f} / {other:.0f} = {one / other:.2f}")


main()
