#!/usr/bin/env python3
"""Puts an encoder of transformers beside transformers itself, OpenVINO and ONNX Runtime, all in process on the same
processors: the same weights, the same sequences, interleaved; one table of real tokens per second.

The model has random weights and the sizes of all-MiniLM-L6-v2, and the sequences the lengths of sentences. Each round
draws new ones. The others take them sorted by length, in padded batches of the size that is their fastest here.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent.parent
MINILM = {"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
          "intermediate_size": 1536, "max_position_embeddings": 512, "add_pooling_layer": False}
BATCH_SIZES = (1, 4, 16, 32)
RUNTIMES = ("openvino-f32", "openvino-bf16", "openvino-int8", "onnxruntime-f32", "onnxruntime-int8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sequences", type=int, default=256, help="of a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtypes", default="f32,bf16,int8", help="of linserve")
    parser.add_argument("--runtimes", default=",".join(RUNTIMES), help="of " + ", ".join(RUNTIMES))
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--runtimes-python", required=True, help="a Python with requirements-runtimes.txt")
    return parser.parse_args()


class Embedder(torch.nn.Module):
    """The mean over the rows that are there."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, mask):
        rows = self.model(input_ids=x, attention_mask=mask).last_hidden_state
        return (rows * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)


class Sequences:
    """Random tokens in the lengths of sentences, as a file that all read: 35 tokens in the mean."""

    def __init__(self, folder, number, seed):
        random = torch.Generator().manual_seed(seed)
        lengths = torch.empty(number).log_normal_(3.4, 0.55, generator=random).round().clamp(3, 256).long()
        x = torch.randint(1000, 30522, (number, int(lengths.max())), generator=random)
        x *= torch.arange(x.shape[1])[None] < lengths[:, None]
        self.path = f"{folder}/{seed}.safetensors"
        self.tokens = int(lengths.sum())
        save_file({"input.x": x, "input.lengths": lengths}, self.path)


class Linserve:
    def __init__(self, options, model, dtype):
        self.command = [f"{options.bin}/linserve", "bench", "--model", model, "--pooling", "mean", "--rounds", "1",
                        "--json", "--dtype", dtype, "--replicas", "1", "--threads", str(options.threads)]

    def run(self, sequences):
        done = subprocess.run([*self.command, "--input", sequences.path], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        return json.loads(done.stdout)["tokens_per_s"]


class Torch:
    def __init__(self, embedder, batch):
        self.embedder, self.batch = embedder, batch

    def run(self, sequences):
        file = load_file(sequences.path)
        lengths, order = file["input.lengths"].sort()
        x = file["input.x"][order]
        start = time.perf_counter()
        with torch.inference_mode():
            for i in range(0, len(lengths), self.batch):
                some = lengths[i:i + self.batch]
                longest = int(some.max())
                self.embedder(x[i:i + self.batch, :longest], (torch.arange(longest)[None] < some[:, None]).long())
        return sequences.tokens / (time.perf_counter() - start)


class Runtime:
    """A process of encoder_runtime.py, with its best batch."""

    def __init__(self, options, runtime, file, sequences):
        self.process = subprocess.Popen([options.runtimes_python, str(ROOT / "tests/bench/peers/encoder_runtime.py"), runtime,
                                         file, str(options.threads), sequences.path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.how = self.process.stdout.readline().strip()

    def run(self, sequences):
        print(sequences.path, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def contestants(options, folder, warm):
    model = f"{folder}/model"
    subprocess.run([f"{options.bin}/linserve", "init", "--architecture", "transformers.BertModel", "--params",
                    json.dumps(MINILM), "--output", model], check=True, capture_output=True)
    sizes = {name: value for name, value in MINILM.items() if name != "add_pooling_layer"}
    bert = transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False).eval()
    bert.load_state_dict(load_file(f"{model}/model.safetensors"))
    embedder = Embedder(bert)
    file = f"{folder}/model.onnx"
    packages = subprocess.run([options.runtimes_python, "-c", "import site; print(site.getsitepackages()[0])"],
                              check=True, capture_output=True, text=True).stdout.strip()
    sys.path.append(packages)  # the export needs onnx, which lies there
    with torch.inference_mode():
        torch.onnx.export(embedder, (torch.ones(2, 9, dtype=torch.int64), torch.ones(2, 9, dtype=torch.int64)), file,
                          dynamo=False, input_names=["x", "mask"], output_names=["embeddings"],
                          dynamic_axes={"x": {0: "b", 1: "n"}, "mask": {0: "b", 1: "n"}})
    found = {f"linserve, {dtype}": Linserve(options, model, dtype) for dtype in options.dtypes.split(",")}
    batch = max(BATCH_SIZES, key=lambda size: Torch(embedder, size).run(warm))
    found[f"transformers, f32, batches of {batch}"] = Torch(embedder, batch)
    for runtime in options.runtimes.split(","):
        process = Runtime(options, runtime, file, warm)
        found[f"{runtime.replace('-', ', ')}, {process.how}"] = process
    return found


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        warm = Sequences(folder, options.sequences, 1000)
        found = contestants(options, folder, warm)
        rates = {name: [] for name in found}
        for seed in range(options.rounds):
            sequences = Sequences(folder, options.sequences, seed)
            for name, contestant in found.items():
                rates[name].append(contestant.run(sequences))
    first = rates[next(iter(rates))]
    print("| | tokens/s | over the first |\n| --- | --- | --- |")
    for name, measured in rates.items():
        ratio = statistics.median(one / base for one, base in zip(measured, first))
        print(f"| {name} | {statistics.median(measured):,.0f} | {ratio:.2f} × |")


if __name__ == "__main__":
    main()
