#!/usr/bin/env python3
"""Puts the same load on linserve and on OpenVINO and ONNX Runtime, each behind a gRPC server in Python, interleaved, and
prints medians. Each runtime has the package's model, exported to ONNX with a dynamic length.

The sequences' lengths are log-normal. Every request holds one sequence and gets its mean-pooled embedding.
"""

import site
import subprocess
import sys
import tempfile
import time

from protocols import arguments, measure
from serve import LENGTHS, ROOT, Server, init_model
from triton import answers

PORT = 18600
RUNTIMES = ("openvino-f32", "openvino-bf16", "openvino-int8", "onnxruntime-f32", "onnxruntime-int8")


class Runtime:
    def __init__(self, options, runtime, model, port):
        self.grpc = f"127.0.0.1:{port}"
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, str(ROOT / "tests/bench/peers/runtime_model.py"), runtime, model,
                                         str(port)], stdout=self.log, stderr=subprocess.STDOUT)
        while not answers(options, self.grpc):
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"{runtime} ended:\n{self.log.read()}")
            time.sleep(0.5)

    def stop(self):
        self.process.kill()
        self.process.wait()


def main():
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as repository:
        model = f"{repository}/w1"
        init_model(options, model)
        file = f"{tempfile.mkdtemp()}/w1.onnx"
        subprocess.run([ROOT / ".venv-packages/bin/python", ROOT / "tests/bench/peers/export_onnx.py", model, file,
                        site.getsitepackages()[0]], check=True)
        servers = {}
        try:
            for port, dtype in enumerate(("f32", "bf16", "int8"), PORT):
                servers[f"linserve, {dtype}"] = Server(options, repository, dtype=dtype, port=port)
            for port, runtime in enumerate(RUNTIMES, PORT + 10):
                servers[runtime.replace("-", ", ")] = Runtime(options, runtime, file, port)
            measure(options, {name: (server.grpc, "oip", LENGTHS, 1) for name, server in servers.items()})
        finally:
            for server in servers.values():
                server.stop()


if __name__ == "__main__":
    main()
