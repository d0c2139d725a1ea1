#!/usr/bin/env python3
"""Commands of MongoDB's drivers against the same work in SQL on jsonb in PostgreSQL, both durable, at 1, 16 and 128 connections.

    mongo_bench.py PATH_IN_THE_FOLDER_OF_mongo_bench_load [--rounds N] [--seconds S] [--only WORK]

Work: insert-one, insert-many, find-id, find-indexed, update-inc, group.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from servers import Server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", default="9")
    parser.add_argument("--seconds", default="0.4")
    parser.add_argument("--only")
    args = parser.parse_args()
    programs = os.path.dirname(os.path.abspath(args.program))
    orrery = os.path.join(os.path.dirname(programs), "orrery")
    with tempfile.TemporaryDirectory(prefix="mongo_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        ours = Server("orrery", [
            orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "off", "--mongo", "127.0.0.1:0", "--gremlin", "off",
            "--mongo-replica-set", "off", "--node", f"local=rocksdb:{directory}/data",
            "--set", "partition.ru_max=1000000", "--set", "log.level=warning",
        ], r"mongodb://127\.0\.0\.1:(\d+)/", log)
        try:
            result = subprocess.run([
                os.path.join(programs, "mongo_bench_load"), "--ours", ours.argument(), "--rounds", args.rounds,
                "--seconds", args.seconds, *(["--only", args.only] if args.only else []),
            ], check=False)
        finally:
            ours.stop()
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
