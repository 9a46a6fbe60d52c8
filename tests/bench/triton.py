#!/usr/bin/env python3
"""Puts the same load on linserve, by both of its protocols, and on Triton serving the Python package
with the same weights, interleaved, and prints medians.

The sequences' lengths are log-normal. Triton batches only what is of one length, so its clients
either pad to seq_len (its padding is deducted: tokens are true ones) or get batches of one; both are
measured. Every request holds one sequence and gets its mean-pooled embedding.
"""

import argparse
import json
import os
import signal
import site
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serve import LENGTHS, ROOT, W1, Server, init_model, output_of

MEAN_LENGTH = 128  # of LENGTHS
TRITON_PORT = 18600


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="f32", help="of linserve")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


class Triton:
    """pytriton's server, whose libraries lie beside its package."""

    def __init__(self, model):
        self.grpc = f"127.0.0.1:{TRITON_PORT}"
        libraries = Path(site.getsitepackages()[0]) / "nvidia_pytriton.libs"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries),
                       "VIRTUAL_ENV": sys.prefix,
                       "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("triton_model.py")), model,
             str(TRITON_PORT)],
            env=environment, stdout=self.log, stderr=subprocess.STDOUT)

    def wait(self, health):
        while not health():
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit("Triton ended:\n" + self.log.read())
            time.sleep(0.5)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def load_words(options, target, protocol, lengths, *more):
    return [f"{options.bin}/linserve-client", "--target", target, "--protocol", protocol,
            "--vocabulary", str(W1["num_tokens"]), "load", "--model", "w1", "--lengths", lengths,
            "--json", "-", *more]


def answers(options, target):
    """Whether a server answers by the Open Inference Protocol."""
    done = subprocess.run(
        load_words(options, target, "oip", "fixed:8", "--requests", "1", "--warmup", "0"),
        capture_output=True, text=True)
    return done.returncode == 0 and json.loads(done.stdout)["ok_requests"] == 1


def measure(options, linserve, triton):
    padded = f"fixed:{W1['seq_len']}"
    true_share = MEAN_LENGTH / W1["seq_len"]
    ways = {
        "linserve, native": (linserve.grpc, "linserve", LENGTHS, 1),
        "linserve, OIP": (linserve.grpc, "oip", LENGTHS, 1),
        "Triton, padded to seq_len": (triton.grpc, "oip", padded, true_share),
        "Triton, each at its length": (triton.grpc, "oip", LENGTHS, 1),
    }
    for concurrency in options.concurrency.split(","):
        figures = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, (target, protocol, lengths, share) in ways.items():
                report = json.loads(output_of(*load_words(
                    options, target, protocol, lengths, "--concurrency", concurrency,
                    "--duration", str(options.seconds))))
                if report["request_errors"]:
                    sys.exit(f"{way}: {report['first_error']}")
                figures[way].append((report["tokens_per_second"] * share,
                                     report["latency_ms"]["p50"], report["latency_ms"]["p99"]))
        print(f"concurrency {concurrency}{'tokens/s':>30}{'p50 ms':>10}{'p99 ms':>10}"
              f"{'over native':>13}")
        for way, rows in figures.items():
            rate, p50, p99 = (statistics.median(column) for column in zip(*rows))
            over = statistics.median(row[0] / native[0] for row, native in
                                     zip(rows, figures["linserve, native"]))
            print(f"  {way:28}{rate:11.0f}{p50:10.2f}{p99:10.2f}{over:13.3f}")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as repository:
        model = f"{repository}/w1"
        init_model(options, model)
        triton = Triton(model)
        try:
            triton.wait(lambda: answers(options, triton.grpc))
            linserve = Server(options, repository)
            try:
                measure(options, linserve, triton)
            finally:
                linserve.stop()
        finally:
            triton.stop()


if __name__ == "__main__":
    main()
