#!/usr/bin/env python3
"""HTTP: our server against nginx, the same answer from both, taking turns.

    http_bench.py PATH_OF_http_bench_server [--rounds N] [--seconds S] [--workers 1,0]

Both answer every request with 1 KB and the same 13 headers over kept-alive connections on the
loopback; wrk asks. What counts is requests per CPU second of the server's own processes, for the
wall is shared with wrk. Every comparison ends in a line `name: ours / theirs = ratio`; medians of
all rounds, the spread beside them.
"""
import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

# The same names and values as in http_bench_server.c.
HEADERS = [
    ("x-ms-activity-id", "6f0f6dd2-63c4-4b5f-b3f3-0c8f6a1f8d51"),
    ("x-ms-request-charge", "1.00"),
    ("x-ms-session-token", "0:-1#1042"),
    ("x-ms-resource-quota", "documentSize=51200;documentsCount=-1"),
    ("x-ms-resource-usage", "documentSize=0;documentsCount=17"),
    ("x-ms-schemaversion", "1.18"),
    ("x-ms-serviceversion", "version=2.14.0.0"),
    ("x-ms-gatewayversion", "version=2.14.0"),
    ("x-ms-last-state-change-utc", "Thu, 27 Apr 2017 00:51:12 GMT"),
    ("x-ms-transport-request-id", "1"),
    ("lsn", "1042"),
    ("etag", "0000d826-0000-0700-0000-62f1a2b30000"),
    ("cache-control", "no-store, no-cache"),
]


def tool(name):
    """nginx lives in /usr/sbin, which is not on everybody's path."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if not path:
        sys.exit(f"http_bench: {name} is missing: install it (Debian: nginx-light, wrk, openssl)")
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pids):
    """CPU time of all threads of the processes, from the scheduler's nanoseconds."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
    return total / 1e9


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


class Ours:
    def __init__(self, program, workers, cert, key):
        self.process = subprocess.Popen([program, str(workers), cert, key],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port = int(self.process.stdout.readline())
        self.plain, self.tls = f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/"

    def pids(self):
        return [self.process.pid]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


class Nginx:
    def __init__(self, program, workers, cert, key, directory):
        port, tls_port = free_port(), free_port()
        self.plain, self.tls = f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{tls_port}/"
        headers = "\n".join(f'add_header {name} "{value}";' for name, value in HEADERS)
        config = f"""
worker_processes {workers or "auto"};
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 75s;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  ssl_certificate {cert};
  ssl_certificate_key {key};
  ssl_protocols TLSv1.2 TLSv1.3;
  server {{
    listen 127.0.0.1:{port};
    listen 127.0.0.1:{tls_port} ssl;
    location / {{
      {headers}
      return 200 "{"x" * 1024}";
    }}
  }}
}}
"""
        path = os.path.join(directory, "nginx.conf")
        with open(path, "w") as f:
            f.write(config)
        self.process = subprocess.Popen([program, "-c", path, "-p", directory],
                                        stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("http_bench: nginx did not start")

    def pids(self):
        return children(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=10)


def turn(wrk, server, url, connections, seconds):
    """One round of load: requests per CPU second of the server, and per second."""
    pids = server.pids()
    before = cpu_seconds(pids)
    out = subprocess.run([wrk, "-t1", f"-c{connections}", f"-d{seconds}s", url],
                         capture_output=True, text=True, timeout=seconds * 10 + 10).stdout
    used = cpu_seconds(pids) - before
    match = re.search(r"(\d+) requests in ([\d.]+)(m?s)", out)
    if not match or "Non-2xx" in out or "Socket errors" in out:
        sys.exit(f"http_bench: wrk was not answered as expected:\n{out}")
    count = int(match[1])
    wall = float(match[2]) / (1000 if match[3] == "ms" else 1)
    return count / used, count / wall


def spread(values):
    return (max(values) - min(values)) / statistics.median(values) * 100


def compare(wrk, ours, theirs, tls, connections, workers, args):
    results = {ours: [], theirs: []}
    for round_number in range(args.rounds):
        order = [ours, theirs] if round_number % 2 else [theirs, ours]
        for server in order:
            url = server.tls if tls else server.plain
            results[server].append(turn(wrk, server, url, connections, args.seconds))
    kind = "https" if tls else "http"
    plural = "connection" if connections == 1 else "connections"
    loops = "one loop" if workers == 1 else "a loop for each core"
    for index, unit in ((0, "requests per CPU second"), (1, "requests per second")):
        a = [r[index] for r in results[ours]]
        b = [r[index] for r in results[theirs]]
        ma, mb = statistics.median(a), statistics.median(b)
        print(f"  spread of {len(a)} rounds: ours {spread(a):.0f} %, theirs {spread(b):.0f} %")
        print(f"{kind} 1 KB, {connections} {plural}, {loops}, {unit}: "
              f"{ma:.0f} / {mb:.0f} = {ma / mb:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--workers", default="1,0", help="0: one for each core")
    parser.add_argument("--connections", default="1,16,64")
    args = parser.parse_args()
    wrk, nginx, openssl = tool("wrk"), tool("nginx"), tool("openssl")

    with tempfile.TemporaryDirectory(prefix="http_bench.") as directory:
        os.chmod(directory, 0o755)
        cert, key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
        subprocess.run([openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
                        "-days", "2", "-subj", "/CN=localhost"],
                       check=True, capture_output=True)
        for workers in [int(w) for w in args.workers.split(",")]:
            ours = Ours(args.server, workers, cert, key)
            theirs = Nginx(nginx, workers, cert, key, directory)
            for tls in (False, True):
                for connections in [int(c) for c in args.connections.split(",")]:
                    compare(wrk, ours, theirs, tls, connections, workers, args)
            ours.stop()
            theirs.stop()


main()
