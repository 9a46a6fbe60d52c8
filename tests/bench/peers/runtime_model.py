#!/usr/bin/env python3
"""Serves an ONNX model by the Open Inference Protocol, as one would who puts a runtime behind a small gRPC server in
Python: one request an inference, two at a time.
usage: runtime_model.py RUNTIME FILE.onnx PORT; RUNTIME is openvino-f32, openvino-bf16, openvino-int8, onnxruntime-f32 or
onnxruntime-int8"""

import importlib
import queue
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
from grpc_tools import protoc
from onnx_models import models

ROOT = Path(__file__).resolve().parents[3]
STREAMS = 2


def stubs():
    """The messages and services of proto/inference."""
    folder = tempfile.mkdtemp()
    protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}",
                 *map(str, (ROOT / "proto/inference").glob("*.proto"))])
    sys.path.insert(0, folder)
    return (importlib.import_module("inference.grpc_service_pb2"),
            importlib.import_module("inference.grpc_service_pb2_grpc"))


def samples():
    random = np.random.default_rng(1)
    return [{"x": random.integers(0, 20000, (1, int(length)))} for length in random.integers(8, 512, 64)]


def main():
    messages, services = stubs()
    free = queue.Queue()
    for infer in models(sys.argv[1], sys.argv[2], STREAMS, STREAMS, samples()):
        free.put(infer)

    class Service(services.GRPCInferenceServiceServicer):
        def ModelMetadata(self, request, context):
            tensor = messages.ModelMetadataResponse.TensorMetadata
            return messages.ModelMetadataResponse(
                name=request.name, versions=["1"], inputs=[tensor(name="x", datatype="INT64", shape=[-1, -1])],
                outputs=[tensor(name="embeddings", datatype="FP32", shape=[-1, 256])])

        def ModelReady(self, request, context):
            return messages.ModelReadyResponse(ready=True)

        def ModelInfer(self, request, context):
            x = np.frombuffer(request.raw_input_contents[0], np.int64).reshape(request.inputs[0].shape)
            infer = free.get()
            try:
                rows = np.ascontiguousarray(infer({"x": x}))
            finally:
                free.put(infer)
            answer = messages.ModelInferResponse(model_name=request.model_name, id=request.id,
                                                 raw_output_contents=[rows.tobytes()])
            answer.outputs.add(name="embeddings", datatype="FP32", shape=rows.shape)
            return answer

    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    services.add_GRPCInferenceServiceServicer_to_server(Service(), server)
    server.add_insecure_port(f"127.0.0.1:{sys.argv[3]}")
    server.start()
    server.wait_for_termination()


main()
