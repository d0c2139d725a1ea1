#!/usr/bin/env python3
"""What a server takes that nobody asks for anything: its memory, and how often its threads wake up.

    idle_bench.py PATH_IN_THE_FOLDER_OF_THE_PROGRAMS [--seconds N]

The server has one `rocksdb:` node with a container in it that was written to and read from, all fronts open, and rests for
a while before anything is counted. A wake is a switch that the thread asked for itself (voluntary_ctxt_switches).
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

from servers import Server

REST_S = 20
RESIDENT_MB_MAX = 48


def wakes(process):
    """Of each thread, by its number: its name, and how often it went to sleep."""
    found = {}
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
        found[thread] = (fields["Name"].strip(), int(fields["voluntary_ctxt_switches"]))
    return found


def resident_mb(process):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS:"))


def used(orrery, port, directory):
    """A container that has been written to and read from."""
    path = os.path.join(directory, "items.json")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f'{{"id":"{n}","pk":"{n % 10}","text":"{"x" * 900}"}}\n' for n in range(100))
    where = ["--endpoint", f"http://127.0.0.1:{port}", "--dev"]
    for words in (["database", "create", "bench"],
                  ["container", "create", "bench", "items", "--partition-key", "/pk"],
                  ["import", path, "--database", "bench", "--container", "items", "--quiet"],
                  ["query", "bench", "items", "SELECT VALUE COUNT(1) FROM c"]):
        result = subprocess.run([orrery, *words, *where], capture_output=True, text=True, check=False)
        if result.returncode:
            sys.exit(f"idle_bench: {' '.join(words)}: {result.stdout}{result.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    orrery = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(args.program))), "orrery")
    with tempfile.TemporaryDirectory(prefix="idle_bench.") as directory, \
            open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
        server = Server("orrery", [
            orrery, "serve", "--dev", "--rest", "127.0.0.1:0", "--table", "127.0.0.1:0", "--mongo", "127.0.0.1:0",
            "--gremlin", "127.0.0.1:0", "--node", f"local=rocksdb:{directory}/data", "--set", "log.level=warning",
        ], r"REST +https?://\S+:(\d+)/", log)
        try:
            process = server.process.pid
            fresh_mb = resident_mb(process)
            used(orrery, server.port, directory)
            time.sleep(REST_S)
            before = wakes(process)
            time.sleep(args.seconds)
            after = wakes(process)
            resting_mb = resident_mb(process)
        finally:
            server.stop()
    each = {thread: (name, count - before.get(thread, (name, 0))[1])
            for thread, (name, count) in after.items()}
    for name, count in sorted(each.values(), key=lambda one: -one[1])[:5]:
        print(f"  {name}: woken {count} times in {args.seconds} s")
    most = max(count for _, count in each.values()) / args.seconds * 10
    print(f"  resident when it had begun: {fresh_mb:.0f} MB")
    print(f"resident MB, idle behind 100 items, vs the most it may be: {resting_mb:.1f} / {RESIDENT_MB_MAX} = "
          f"{resting_mb / RESIDENT_MB_MAX:.2f} (goal: at most 1)")
    print(f"wakes of the busiest thread in 10 s, idle, vs the most there may be: {most:.2f} / 1 = {most:.2f} "
          f"(goal: at most 1)")


main()
