#!/usr/bin/env python3
"""Embeds sequences of many rows through the server, and prints time, memory and what others notice.

A model of linformer-pytorch is made for each length. Its rows go to `linserve serve` in parts and
come back in chunks of rows, by `linserve-client embed`. Memory is the server's anonymous memory
(RssAnon), sampled meanwhile, over what it is before the first of them. At the last length short requests to another
model and to the same one run beside, and for as long without.
"""

import argparse
import array
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from serve import ROOT, Server, init_model

STACK = "linformer_pytorch.Linformer"
PARAMS = {"dim_d": 256, "dim_k": 128, "dim_ff": 128, "nhead": 4, "depth": 2, "activation": "gelu",
          "parameter_sharing": "layerwise"}
MIB = 1024 * 1024


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="65536,262144,1048576", help="one number a line")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--params", default=json.dumps(PARAMS), help="of the model besides, as JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", type=int, default=128, help="rows of a short request")
    parser.add_argument("--rate", type=float, default=20, help="short requests a second")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


def write_npy(path, rows, width):
    """Normal numbers, the same thousand rows again and again, each time scaled anew."""
    block = 1024
    numbers = [random.gauss(0, 1) for _ in range(block * width)]
    with open(path, "wb") as file:
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for first in range(0, rows, block):
            scale = random.uniform(0.5, 2)
            count = min(block, rows - first) * width
            file.write(array.array("f", (scale * x for x in numbers[:count])).tobytes())


class PeakOf:
    """The largest RssAnon of the server within a block, in MiB over `idle`."""

    def __init__(self, server, idle):
        self.server, self.idle = server, idle

    def __enter__(self):
        self.peak = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def sample(self):
        while not self.ended.wait(0.002):
            self.peak = max(self.peak, self.server.memory()[1])

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.over = self.peak - self.idle


def client(options, server, *words):
    return [f"{options.bin}/linserve-client", "--target", server.grpc, "--timeout", "3600", *words]


def embed(options, server, model, directory):
    done = subprocess.run(
        client(options, server, "embed", f"{directory}/{model}.npy", "--model", model, "--pooling",
               "none", "--output", f"{directory}/rows.npy"), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)


def median_of(function, rounds):
    return statistics.median(function() for _ in range(rounds))


def measure(options, server, idle, rows, directory):
    model = f"n{rows}"
    write_npy(f"{directory}/{model}.npy", rows, options.channels)
    embed(options, server, model, directory)  # the first one finds the projections' pages
    seconds, peaks = [], []
    for _ in range(options.rounds):
        with PeakOf(server, idle) as peak:
            start = time.perf_counter()
            embed(options, server, model, directory)
            seconds.append(time.perf_counter() - start)
        peaks.append(peak.over)
    bound = 3 * rows * options.channels * 4 / MIB + 64
    print(f"{rows:8d} rows: {statistics.median(seconds):7.2f} s, "
          f"{1e6 * statistics.median(seconds) / rows:5.2f} us a row, "
          f"{max(peaks):6.0f} MiB over {rows * options.channels * 4 / MIB:.0f} MiB of input "
          f"(at most {bound:.0f})", flush=True)
    return statistics.median(seconds)


def p99(options, server, model, seconds):
    report = json.loads(subprocess.run(
        client(options, server, "load", "--model", model, "--json", "-", "--pooling", "mean", "--lengths",
               f"fixed:{options.short}", "--rate", str(options.rate), "--duration", str(seconds)),
        capture_output=True, text=True, check=True).stdout)
    return report["latency_ms"]["p99"]


def beside(options, server, long, short, seconds, directory):
    """The 99th percentile of short requests without and with long ones, and their ratio."""
    ratios, alone, both = [], [], []
    for _ in range(options.rounds):
        alone.append(p99(options, server, short, seconds))
        ended = threading.Event()

        def repeat():
            while not ended.is_set():
                embed(options, server, long, directory)

        thread = threading.Thread(target=repeat)
        thread.start()
        both.append(p99(options, server, short, seconds))
        ended.set()
        thread.join()
        ratios.append(both[-1] / alone[-1])
    print(f"short requests to {short}: p99 {statistics.median(alone):.1f} ms alone, "
          f"{statistics.median(both):.1f} ms beside {long}: {statistics.median(ratios):.2f} times",
          flush=True)


def main():
    options = arguments()
    lengths = [int(text) for text in options.rows.split(",")]
    with tempfile.TemporaryDirectory() as directory:
        for rows in lengths:
            params = json.loads(options.params) | {"input_size": rows, "channels": options.channels}
            init_model(options, f"{directory}/models/n{rows}", STACK, json.dumps(params))
        server = Server(options, f"{directory}/models")
        idle = server.memory()[1]
        print(f"RssAnon of the idle server with all models: {idle:.0f} MiB", flush=True)
        seconds = [measure(options, server, idle, rows, directory) for rows in lengths]
        long = f"n{lengths[-1]}"
        for short in dict.fromkeys((f"n{lengths[0]}", long)):
            beside(options, server, long, short, max(10, 3 * seconds[-1]), directory)
        server.stop()


if __name__ == "__main__":
    main()
