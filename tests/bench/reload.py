#!/usr/bin/env python3
"""Measures what a reload costs the callers: an open-loop load on one model, with and without its
being replaced again and again, interleaved. Prints medians of the latencies and the requests that
failed, of which there must be none.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from serve import LENGTHS, ROOT, Server, init_model


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="60", help="requests a second")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--pause", type=float, default=4, help="seconds between reloads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


def loads(server):
    """How often it was tried to load the model."""
    page = urllib.request.urlopen(f"http://{server.http}/metrics").read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
               if line.startswith("linserve_model_loads_total"))


def replace(server, model):
    """As a user would: by renaming the new file over the old one, and a signal. Returns the seconds
    until the new one serves."""
    before, start = loads(server), time.monotonic()
    shutil.copy(f"{model}/model.safetensors", f"{model}/.new")
    os.rename(f"{model}/.new", f"{model}/model.safetensors")
    server.process.send_signal(signal.SIGHUP)
    while loads(server) == before:
        time.sleep(0.02)
    return time.monotonic() - start


def measure(options, server, model, reloading):
    client = subprocess.Popen(
        [f"{options.bin}/linserve-client", "--target", server.grpc, "load", "--lengths", LENGTHS,
         "--rate", options.rate, "--duration", str(options.seconds), "--json", "-"],
        stdout=subprocess.PIPE, text=True)
    seconds = []
    end = time.monotonic() + 1 + options.seconds  # after the client's warm-up
    time.sleep(2)
    while reloading and time.monotonic() < end - options.pause:
        seconds.append(replace(server, model))
        time.sleep(options.pause)
    report = json.loads(client.communicate()[0])
    return report, seconds


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as repository:
        model = f"{repository}/w1"
        init_model(options, model)
        server = Server(options, repository)
        quiet, reloaded, seconds, failed = [], [], [], 0
        try:
            for _ in range(options.rounds):
                for reloading, reports in ((False, quiet), (True, reloaded)):
                    report, took = measure(options, server, model, reloading)
                    reports.append(report["latency_ms"])
                    seconds += took
                    failed += report["requests"] - report["ok_requests"]
        finally:
            server.stop()
    print(f"{len(seconds)} reloads of {statistics.median(seconds):.2f} s each, {failed} requests "
          "failed")
    for name in ("p50", "p99", "max"):
        pairs = [(a[name], b[name]) for a, b in zip(quiet, reloaded)]
        without, during = (statistics.median(column) for column in zip(*pairs))
        more = statistics.median(b - a for a, b in pairs)
        print(f"{name:4} {without:8.1f} ms without, {during:8.1f} ms with reloads: + {more:.1f} ms")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
