#!/usr/bin/env python3
"""Serves linformer.LinformerLM by Triton, as the package's users would: a function in Python behind
Triton's dynamic batcher, which puts sequences of equal length together. usage: triton_model.py
MODEL_DIRECTORY GRPC_PORT"""

import json
import sys
from pathlib import Path

import numpy
import torch
from linformer import LinformerLM
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig
from safetensors.torch import load_file


def main():
    directory, port = Path(sys.argv[1]), int(sys.argv[2])
    params = json.loads((directory / "config.json").read_text())["params"]
    model = LinformerLM(**params).eval()
    model.load_state_dict(load_file(directory / "model.safetensors"))
    model.to_logits = torch.nn.Identity()

    @batch
    def infer(x):
        with torch.inference_mode():
            return [model(torch.from_numpy(x)).mean(1).numpy()]

    config = TritonConfig(grpc_port=port, http_port=port + 1, allow_metrics=False)
    with Triton(config=config) as server:
        server.bind(
            "w1", infer, inputs=[Tensor(name="x", dtype=numpy.int64, shape=(-1,))],
            outputs=[Tensor(name="embeddings", dtype=numpy.float32, shape=(params["dim"],))],
            # Nobody waits for company while the model is free, as in linserve's defaults.
            config=ModelConfig(max_batch_size=32, batcher=DynamicBatcher(
                max_queue_delay_microseconds=0)))
        server.serve()


if __name__ == "__main__":
    main()
