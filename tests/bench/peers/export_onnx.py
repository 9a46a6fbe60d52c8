#!/usr/bin/env python3
"""Exports linformer.LinformerLM, without its logits and with the mean over its rows, to ONNX with a dynamic length.
usage: export_onnx.py MODEL_DIRECTORY FILE.onnx PACKAGES; PACKAGES is where `onnx` lies, besides this Python's own"""

import json
import sys
from pathlib import Path

import torch
from linformer import LinformerLM
from safetensors.torch import load_file


class Embedder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).mean(1)


def main():
    directory, file = Path(sys.argv[1]), sys.argv[2]
    sys.path.append(sys.argv[3])
    model = LinformerLM(**json.loads((directory / "config.json").read_text())["params"]).eval()
    model.load_state_dict(load_file(directory / "model.safetensors"))
    model.to_logits = torch.nn.Identity()
    with torch.inference_mode():
        torch.onnx.export(Embedder(model), (torch.ones(1, 96, dtype=torch.int64),), file, dynamo=False,
                          input_names=["x"], output_names=["embeddings"], dynamic_axes={"x": {1: "n"}})


main()
