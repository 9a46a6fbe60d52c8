#!/usr/bin/env python3
"""Puts the same load on linserve, by both of its protocols, and on Triton serving the Python package
with the same weights, interleaved, and prints medians.

The sequences' lengths are log-normal. Triton batches only what is of one length, so its clients
either pad to seq_len (its padding is deducted: tokens are true ones) or get batches of one; both are
measured. Every request holds one sequence and gets its mean-pooled embedding.
"""

import json
import os
import signal
import site
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from protocols import arguments, load_words, measure, ways_of
from serve import LENGTHS, W1, Server, init_model

MEAN_LENGTH = 128  # of LENGTHS
TRITON_PORT = 18600


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
            [sys.executable, str(Path(__file__).parent / "peers/triton_model.py"), model,
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


def answers(options, target):
    """Whether a server answers by the Open Inference Protocol."""
    done = subprocess.run(
        load_words(options, target, "oip", "fixed:8", "--requests", "1", "--warmup", "0"),
        capture_output=True, text=True)
    return done.returncode == 0 and json.loads(done.stdout)["ok_requests"] == 1


def ways_with(linserve, triton):
    padded = f"fixed:{W1['seq_len']}"
    return {**ways_of(linserve),
            "Triton, padded to seq_len": (triton.grpc, "oip", padded, MEAN_LENGTH / W1["seq_len"]),
            "Triton, each at its length": (triton.grpc, "oip", LENGTHS, 1)}


def main():
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as repository:
        model = f"{repository}/w1"
        init_model(options, model)
        triton = Triton(model)
        try:
            triton.wait(lambda: answers(options, triton.grpc))
            linserve = Server(options, repository)
            try:
                measure(options, ways_with(linserve, triton))
            finally:
                linserve.stop()
        finally:
            triton.stop()


if __name__ == "__main__":
    main()
