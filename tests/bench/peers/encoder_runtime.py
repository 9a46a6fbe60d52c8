#!/usr/bin/env python3
"""Runs an ONNX encoder over files of sequences whose paths come by standard input, and prints tokens per second of each.
Its first line says the size of its batches and its streams, those that are the fastest for the first file.
usage: encoder_runtime.py RUNTIME FILE.onnx THREADS SEQUENCES; RUNTIME is openvino-f32, openvino-bf16, openvino-int8,
onnxruntime-f32 or onnxruntime-int8"""

import json
import os
import statistics
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from onnx_models import models

BATCH_SIZES = (1, 4, 16, 32)


def read(path):
    """The batches' rows and lengths, the shortest first, of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()

    def tensor(name):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(data[begin:end], np.int64).reshape(header[name]["shape"])

    lengths = tensor("input.lengths")
    order = np.argsort(lengths, kind="stable")
    return tensor("input.x")[order], lengths[order]


def samples():
    random = np.random.default_rng(1)
    shapes = [(1, int(length)) for length in random.integers(8, 128, 64)]
    return [{"x": random.integers(1000, 30000, shape), "mask": np.ones(shape, np.int64)} for shape in shapes]


def rate(streams, path, batch):
    x, lengths = read(path)
    batches = []
    for i in range(0, len(lengths), batch):
        some = lengths[i:i + batch]
        longest = int(some.max())
        mask = (np.arange(longest)[None] < some[:, None]).astype(np.int64)
        batches.append({"x": np.ascontiguousarray(x[i:i + batch, :longest]), "mask": mask})
    shares = [batches[i::len(streams)] for i in range(len(streams))]
    start = time.perf_counter()
    with ThreadPoolExecutor(len(streams)) as pool:
        list(pool.map(lambda job: [job[0](inputs) for inputs in job[1]], zip(streams, shares)))
    return int(lengths.sum()) / (time.perf_counter() - start)


def main():
    # The libraries print to standard output, too.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runtime, file, threads, warm = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    made = [models(runtime, file, streams, threads, samples()) for streams in sorted({1, threads})]
    ways = [(streams, batch) for streams in made for batch in BATCH_SIZES]
    for streams, batch in ways:
        rate(streams, warm, batch)
    # One try alone would at times choose a slow way.
    tries = {way: [] for way in range(len(ways))}
    for way in 3 * list(tries):
        tries[way].append(rate(ways[way][0], warm, ways[way][1]))
    streams, batch = ways[max(tries, key=lambda way: statistics.median(tries[way]))]
    print(f"batches of {batch}, {len(streams)} streams", file=results, flush=True)
    for line in sys.stdin:
        print(rate(streams, line.strip(), batch), file=results, flush=True)


main()
