"""NVIDIA's perf_analyzer, unmodified: it must end well, without a warning, with the server's own figures."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from served import Server

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / ".venv-perf/bin/perf_analyzer"


def environment():
    libraries = ROOT.glob(".venv-perf/lib/python3*/site-packages/nvidia/cuda_runtime/lib")
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}


def runs():
    if not PROGRAM.exists():
        return False
    tried = subprocess.run([PROGRAM, "--version"], env=environment(), capture_output=True, text=True)
    if "error while loading shared libraries" in tried.stderr:
        print(tried.stderr)
        return False
    return True


class PerfAnalyzerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0

    def measure(self, *options, data=("--input-data", "zero", "--shape", "x:16")):
        """Its report, after a short measurement that need not be a steady one."""
        run = subprocess.run(
            [PROGRAM, "-m", "m", *data, "--measurement-mode", "count_windows", "--measurement-request-count", "10",
             "--stability-percentage", "999", *options],
            env=environment(), capture_output=True, text=True, timeout=300)
        text = run.stdout + run.stderr
        self.assertEqual(run.returncode, 0, text)
        # That it could not keep up it says of this machine, where other tests run, and not of the server.
        said = re.sub(r"(?i)\[warning\] perf analyzer was not able to keep up.*", "", text)
        self.assertNotRegex(said.lower(), "warning|error|failed", text)
        for what in ("Inference count", "Execution count", "Successful request count"):
            self.assertGreater(int(re.search(what + r": (\d+)", text)[1]), 0, text)
        self.assertRegex(text, r"queue \d+ usec \+ compute input \d+ usec \+ compute infer \d+ usec")
        return text

    def over_grpc(self, *options):
        return self.measure("-i", "grpc", "-u", self.server.grpc, *options)

    def test_with_texts(self):
        server = Server(text=True)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"data": [{"text": ["a text"]}, {"text": ["another one"]}]}, file)
            file.flush()
            self.measure("-i", "grpc", "-u", server.grpc, data=("--input-data", file.name))
        self.assertEqual(server.close(), 0)

    def test_with_rising_concurrency(self):
        text = self.over_grpc("--concurrency-range", "1:4:3")
        self.assertEqual(text.count("Concurrency: "), 2, text)

    def test_with_a_request_rate(self):
        self.over_grpc("--request-rate-range", "50:100:50")

    def test_with_batches(self):
        self.over_grpc("-b", "4")

    def test_asynchronously(self):
        self.over_grpc("--async", "--concurrency-range", "4")

    def test_over_rest(self):
        self.measure("-i", "http", "-u", self.server.http, "--concurrency-range", "2")

    def test_over_a_stream(self):
        self.over_grpc("--async", "--streaming", "--concurrency-range", "4")


if __name__ == "__main__":
    if not runs():
        print("skipped: perf_analyzer is not installed (tests/system/clients/install) or cannot run here")
        sys.exit(77)
    unittest.main(verbosity=2)
