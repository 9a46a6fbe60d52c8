#!/usr/bin/env python3
"""Runs an ONNX encoder over files of sequences whose paths come by standard input, and prints tokens per second of each.
Its first line says the size of its batches and its streams, those that are the fastest for the first file.
usage: encoder_runtime.py RUNTIME FILE.onnx THREADS SEQUENCES; RUNTIME is openvino-f32, openvino-bf16, openvino-int8,
onnxruntime-f32 or onnxruntime-int8"""

import json
import os
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

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


def calibrated(file):
    """The model with weights and activations in int8, as NNCF quantizes it with random tokens."""
    import nncf
    import openvino

    random = np.random.default_rng(1)
    shapes = [(1, int(length)) for length in random.integers(8, 128, 64)]
    samples = [{"x": random.integers(1000, 30000, shape), "mask": np.ones(shape, np.int64)} for shape in shapes]
    return nncf.quantize(openvino.Core().read_model(file), nncf.Dataset(samples),
                         model_type=nncf.ModelType.TRANSFORMER)


def openvino_callables(file, precision, threads):
    import openvino

    core = openvino.Core()
    model = calibrated(file) if precision == "int8" else core.read_model(file)
    hint = {"f32": openvino.Type.f32, "bf16": openvino.Type.bf16}.get(precision)
    for streams in {1, threads}:
        options = {"NUM_STREAMS": str(streams), "INFERENCE_NUM_THREADS": str(threads)}
        if hint is not None:
            options["INFERENCE_PRECISION_HINT"] = hint
        compiled = core.compile_model(model, "CPU", options)
        requests = [compiled.create_infer_request() for _ in range(streams)]
        yield [lambda x, mask, request=request: request.infer({"x": x, "mask": mask}) for request in requests]


def onnxruntime_callables(file, precision, threads):
    import onnxruntime

    if precision == "int8":
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(file, file + ".int8", per_channel=True)
        file += ".int8"
    for streams in {1, threads}:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads // streams
        sessions = [onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
                    for _ in range(streams)]
        yield [lambda x, mask, session=session: session.run(None, {"x": x, "mask": mask}) for session in sessions]


def rate(callables, path, batch):
    x, lengths = read(path)
    batches = []
    for i in range(0, len(lengths), batch):
        some = lengths[i:i + batch]
        longest = int(some.max())
        mask = (np.arange(longest)[None] < some[:, None]).astype(np.int64)
        batches.append((np.ascontiguousarray(x[i:i + batch, :longest]), mask))
    shares = [batches[i::len(callables)] for i in range(len(callables))]
    start = time.perf_counter()
    with ThreadPoolExecutor(len(callables)) as pool:
        list(pool.map(lambda job: [job[0](*one) for one in job[1]], zip(callables, shares)))
    return int(lengths.sum()) / (time.perf_counter() - start)


def main():
    # The libraries print to standard output, too.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runtime, precision = sys.argv[1].split("-")
    file, threads, warm = sys.argv[2], int(sys.argv[3]), sys.argv[4]
    make = openvino_callables if runtime == "openvino" else onnxruntime_callables
    ways = [(callables, batch) for callables in make(file, precision, threads) for batch in BATCH_SIZES]
    for callables, batch in ways:
        rate(callables, warm, batch)
    callables, batch = max(ways, key=lambda way: rate(way[0], warm, way[1]))
    print(f"batches of {batch}, {len(callables)} streams", file=results, flush=True)
    for line in sys.stdin:
        print(rate(callables, line.strip(), batch), file=results, flush=True)


main()
