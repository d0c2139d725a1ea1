#!/usr/bin/env python3
"""The cost of point operations at 256 physical partitions against 1, in instructions.

    flat_bench.py PATH_OF_flat_bench_server [--partitions 256] [--limit 1.1]

valgrind counts the instructions of all threads, so that a busy machine does not matter. With a
limit the results are printed as TAP and a ratio above it fails.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

COUNTS = {"read": 4000, "replace": 400, "create": 400}
# Threads that look around in rounds add to a run, more the longer it takes on a busy machine, and nothing takes away: so the
# least of several runs is nearest to what was asked for. Reads are so cheap that it shows.
# Runners of tests have the allocator fill whatever is allocated, which is no cost of ours.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
RUNS = {"none": 3, "read": 3, "replace": 1, "create": 1}


def instructions(program, filled, partitions, operation, count):
    """Of a whole run on a copy of the filled node, as callgrind counts them."""
    with tempfile.TemporaryDirectory(prefix="flat_bench.") as directory:
        node = os.path.join(directory, "node")
        shutil.copytree(filled, node)
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, node,
             str(partitions), operation, str(count)], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not found:
        sys.exit(f"flat_bench: valgrind did not run {program}:\n{result.stderr}")
    return int(found[1])


def costs(program, partitions):
    """Of one operation each: the run with many, less the run with none."""
    with tempfile.TemporaryDirectory(prefix="flat_bench.") as directory:
        filled = os.path.join(directory, "node")
        subprocess.run([program, filled, str(partitions), "fill"], check=True)

        def least(operation, count, runs):
            return min(instructions(program, filled, partitions, operation, count) for _ in range(runs))

        none = least("read", 0, RUNS["none"])
        return {operation: (least(operation, count, RUNS[operation]) - none) / count for operation, count in COUNTS.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--partitions", type=int, default=256)
    parser.add_argument("--limit", type=float)
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("flat_bench: valgrind is missing")
    if args.limit:
        print(f"1..{len(COUNTS)}")
    at_many, at_one = costs(args.program, args.partitions), costs(args.program, 1)
    for number, operation in enumerate(COUNTS, 1):
        many, one = at_many[operation], at_one[operation]
        line = (f"{operation} of an item, instructions at {args.partitions} partitions and at 1 "
                f"(less is better): {many:.0f} / {one:.0f} = {many / one:.2f}")
        if args.limit:
            good = many <= args.limit * one
            print(f"{'ok' if good else 'not ok'} {number} - {line}, at most {args.limit}",
                  flush=True)
        else:
            print(line, flush=True)


main()
