#!/usr/bin/env python3
"""Queries over a million items of 1 KB: ours against PostgreSQL, against point reads, over many
partitions against one, and as the data grows.

    query_bench.py PATH_IN_THE_FOLDER_OF_query_bench_load [--items N] [--only PART...]

Parts: race, spread, flat, http. All that is kept is kept in the machine's directory for temporary
files. valgrind counts instructions, so that a busy machine does not matter.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

PARTITIONS = 16
GROWTH = 10

# Those whose cost must not depend on how much else there is, and how often they are run.
FLAT = {"point query by id and key": 200, "equality, one item": 200,
        "range, ordered, first 20": 40}

# Of the emulator: no secret.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="


def run(*command):
    if subprocess.run(list(command), check=False).returncode:
        sys.exit(f"query_bench: {os.path.basename(command[0])} {command[1]} failed")


def instructions(program, node, items, query, times):
    """Of one query whose data is in memory, as callgrind counts them."""
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         "--toggle-collect=counted_run", program, "repeat", node, "1", str(items), query,
         str(times)], capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not found:
        sys.exit(f"query_bench: valgrind did not run {program}:\n{result.stderr}")
    return int(found[1]) / times


def charge(program, node, items, query):
    result = subprocess.run([program, "charge", node, "1", str(items), query], capture_output=True,
                            text=True, check=True)
    return int(result.stdout) / 100


def flat(program, small, large, items):
    """What a query costs among ten times as many items."""
    for query, times in FLAT.items():
        costs, charges = [], []
        for node, count in ((large, items), (small, items // GROWTH)):
            costs.append(instructions(program, node, count, query, times))
            charges.append(charge(program, node, count, query))
        print(f"{query}, RU among {items} items and among {items // GROWTH} (less is better): "
              f"{charges[0]:.2f} / {charges[1]:.2f} = {charges[0] / charges[1]:.2f} (goal: 1)")
        print(f"{query}, instructions among {items} items and among {items // GROWTH} (less is "
              f"better): {costs[0]:.0f} / {costs[1]:.0f} = {costs[0] / costs[1]:.2f} (goal: about "
              "1)", flush=True)


def http(program, orrery, directory):
    with open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "off", "--gremlin", "off",
             "--mongo-replica-set", "off", "--node",
             f"local=rocksdb:{directory}/server", "--set", "partition.ru_max=1000000", "--set",
             "log.level=warning"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            text=True)
        try:
            for line in server.stdout:
                found = re.search(r"REST +https?://\S+:(\d+)/", line)
                if found:
                    break
            else:
                sys.exit("query_bench: orrery did not start")
            run(program, "http", found[1], str(server.pid), KEY)
        finally:
            server.stdin.close()
            server.terminate()
            server.stdout.close()
            server.wait(timeout=30)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--items", type=int, default=1000000)
    parser.add_argument("--only", nargs="+", default=["race", "spread", "flat", "http"])
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    program = os.path.join(programs, "query_bench_load")
    items, parts = args.items, args.only
    with tempfile.TemporaryDirectory(prefix="query_bench.") as directory:
        large, small, many = (os.path.join(directory, name) for name in ("large", "small", "many"))
        if "http" in parts:
            http(program, os.path.join(os.path.dirname(programs), "orrery"), directory)
        if "spread" in parts or "flat" in parts:
            run(program, "fill", small, "1", str(items // GROWTH))
        if "spread" in parts:
            run(program, "fill", many, str(PARTITIONS), str(items // GROWTH))
            run(program, "spread", small, str(items // GROWTH), many, str(PARTITIONS))
        if "race" in parts or "flat" in parts:
            run(program, "fill", large, "1", str(items))
        if "flat" in parts:
            flat(program, small, large, items)
        if "race" in parts:
            run(program, "race", large, "1", str(items))


main()
