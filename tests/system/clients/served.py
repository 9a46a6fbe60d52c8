"""A linserve process for tests, and what it should answer."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

BIN = Path(os.environ["LINSERVE_TEST_BIN"])
TOKENIZER = Path(__file__).parents[2] / "data/text/tokenizer.model"
SEQ_LEN = 64
DIM = 16
WORDS = 256
PARAMS = f'{{"num_tokens": {WORDS}, "dim": {DIM}, "seq_len": {SEQ_LEN}, "depth": 1, "k": 8, "heads": 2}}'


CAUSAL_PARAMS = f'{{"num_tokens": {WORDS}, "dim": {DIM}, "max_seq_len": {SEQ_LEN}, "depth": 1, "heads": 2, "causal": true}}'


def init_model(directory, seed=3, architecture="linformer.LinformerLM", params=PARAMS):
    subprocess.run([BIN / "linserve", "init", "--architecture", architecture, "--seed", str(seed),
                    "--params", params, "--output", directory], check=True, capture_output=True)


def init_causal_model(directory):
    init_model(directory, architecture="linear_attention_transformer.LinearAttentionTransformerLM",
               params=CAUSAL_PARAMS)


class Server:
    """`linserve serve` with the model "m", on free ports unless told otherwise, ready; ended by SIGTERM.
    `causal`: with the model "causal", too. `serving`: the options of "m". `repository`: with the models that are
    there, and no other. `within`: the command that runs it."""

    def __init__(self, *options, grpc_port=0, http_port=0, text=False, causal=False, serving=None, repository=None,
                 within=()):
        self.directory = tempfile.TemporaryDirectory()
        self.repository = Path(repository or self.directory.name)
        if not repository:
            init_model(self.repository / "m")
        if text:
            shutil.copy(TOKENIZER, self.repository / "m")
        if serving:
            config = self.repository / "m" / "config.json"
            config.write_text(json.dumps(json.loads(config.read_text()) | {"serving": serving}))
        if causal:
            init_causal_model(self.repository / "causal")
        self.process = subprocess.Popen(
            [*within, BIN / "linserve", "serve", "--model-repository", self.repository, "--grpc-address",
             f"127.0.0.1:{grpc_port}", "--http-address", f"127.0.0.1:{http_port}", *options], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.log = []
        ports = None
        while ports is None:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server did not start:\n" + "".join(self.log))
            self.log.append(line)
            ports = re.search(r" ready grpc_port=(\d+) http_port=(\d+)", line)
        self.grpc = f"127.0.0.1:{ports[1]}"
        self.http = f"127.0.0.1:{ports[2]}"
        # Else it would block once the pipe is full.
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def close(self):
        """The exit code after SIGTERM."""
        self.process.terminate()
        code = self.process.wait(60)
        self.reader.join()
        self.process.stdout.close()
        self.directory.cleanup()
        return code
