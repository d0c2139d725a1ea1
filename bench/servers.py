"""What the comparisons that start servers share: installing what runs in Node, and processes that
tell their port."""
import os
import re
import shutil
import subprocess
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))


def install(who):
    """The packages of package.json, from the lock file when it has changed since the last time."""
    lock = os.path.join(BENCH, "package-lock.json")
    installed = os.path.join(BENCH, "node_modules", ".installed-lock")
    if not shutil.which("npm"):
        sys.exit(f"{who}: npm is missing")
    with open(lock, encoding="utf-8") as file:
        wanted = file.read()
    if os.path.exists(installed):
        with open(installed, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    result = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
                            cwd=BENCH, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{who}: npm ci failed:\n{result.stdout}{result.stderr}")
    with open(installed, "w", encoding="utf-8") as file:
        file.write(wanted)


class Server:
    """A process that tells its port in its first lines and ends when its standard input does."""

    def __init__(self, name, command, pattern, log):
        self.process = subprocess.Popen(command, cwd=BENCH, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        self.name, self.log = name, log
        self.find(pattern)

    def find(self, pattern):
        """The next line it says that has a port, of those that come."""
        for line in self.process.stdout:
            found = re.search(pattern, line)
            if found:
                self.port = int(found[1])
                return
        sys.exit(f"bench: {self.name} did not start, see {self.log.name}")

    def argument(self):
        return f"{self.port}:{self.process.pid}"

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait(timeout=30)
