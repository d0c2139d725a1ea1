#!/usr/bin/env python3
"""A backup of a running server, and its restore, against `cp -r` of its store, both until they are durable.

    backup_bench.py PATH_IN_THE_FOLDER_OF_fill_bench_load [--items N] [--rounds N] [--fill DIR | --filled DIR]

A million items of 1 KB are about 1 GB; ten times as many take ten times as long, since nothing is kept in memory: what 10 GB of
files would take is printed, by that. MB are those of the store's files, the same for all three, so that the ratio is that of the times.
--fill only puts the items into DIR, which takes longest, and --filled measures with them: on a quiet machine, as often as wanted.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from servers import Server

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"backup_bench: {' '.join(command)}: {result.stdout}{result.stderr}")
    return result.stdout


def timed(*command):
    begun = time.monotonic()
    run(*command)
    return time.monotonic() - begun


def bytes_of(directory):
    return sum(os.path.getsize(os.path.join(path, name))
               for path, _, names in os.walk(directory) for name in names)


def measure(orrery, where, directory, rounds):
    """Seconds of each, turn by turn; and the size of what was copied."""
    seconds = {"backup": [], "incremental": [], "restore": [], "cp": []}
    size = bytes_of(f"{directory}/data")
    for nth in range(rounds):
        backups, copy = os.path.join(directory, f"b{nth}"), os.path.join(directory, f"copy{nth}")
        restored = os.path.join(directory, f"restored{nth}")
        seconds["backup"].append(timed(orrery, "backup", backups, *where))
        seconds["incremental"].append(timed(orrery, "backup", backups, "--incremental", *where))
        seconds["restore"].append(timed(orrery, "restore", backups, restored))
        seconds["cp"].append(timed("sh", "-c", f"cp -r {directory}/data {copy} && sync -f {copy}"))
        print("  " + ", ".join(f"{name} {values[-1]:.1f} s" for name, values in seconds.items())
              + f", {bytes_of(backups) / 1e6:.0f} MB of backups", flush=True)
        for path in (backups, copy, restored):
            shutil.rmtree(path)
    return {name: statistics.median(values) for name, values in seconds.items()}, size


def serve(orrery, directory, log):
    return Server("orrery", [
        orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off",
        "--gremlin", "off", "--mongo-replica-set", "off", "--node",
        f"local=rocksdb:{directory}/data", "--set", "partition.ru_max=1000000", "--set",
        "log.level=warning"], r"REST +https?://\S+:(\d+)/", log)


def fill(programs, server, items):
    run(os.path.join(programs, "fill_bench_load"), "--items", str(items), "--key", KEY,
        "--ours", server.argument())


def bench(args, programs, orrery, directory, log):
    server = serve(orrery, directory, log)
    try:
        if not args.filled:
            fill(programs, server, args.items)
        if args.fill:
            return
        where = ["--endpoint", f"http://127.0.0.1:{server.port}", "--dev"]
        median, size = measure(orrery, where, directory, args.rounds)
        print(f"  {args.items} items of 1 KB: {size / 1e6:.0f} MB of files", flush=True)
    finally:
        server.stop()
    for name in ("backup", "restore"):
        ours, theirs = (size / 1e6 / median[way] for way in (name, "cp"))
        print(f"{name} of {args.items} items of 1 KB, MB of files per second, vs cp -r and sync: "
              f"{ours:.0f} / {theirs:.0f} = {ours / theirs:.2f}")
    print("10 GB of files, extrapolated: " + ", ".join(
        f"{name} {median[name] * 1e10 / size:.0f} s" for name in ("backup", "restore", "cp")))
    print(f"incremental backup of nothing new, seconds, vs the full one (less is better): "
          f"{median['incremental']:.2f} / {median['backup']:.2f} = "
          f"{median['incremental'] / median['backup']:.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--items", type=int,
                        default=int(os.environ.get("BACKUP_BENCH_ITEMS", "200000")))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fill", metavar="DIRECTORY", help="only put the items in there")
    parser.add_argument("--filled", metavar="DIRECTORY", help="measure with what --fill put there")
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    orrery = os.path.join(os.path.dirname(programs), "orrery")
    with tempfile.TemporaryDirectory(prefix="backup_bench.") as made, \
            open(os.path.join(made, "log"), "w", encoding="utf-8") as log:
        bench(args, programs, orrery, args.fill or args.filled or made, log)


main()
