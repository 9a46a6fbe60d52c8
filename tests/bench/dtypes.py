#!/usr/bin/env python3
"""Computes models in every type that this CPU has, interleaved, with fresh ragged lengths in each
round, and prints the median tokens per second and, of each round's own, the ratios to f32.

The first row is what the CPU's kernels for blocks reach, by one thread, as `--dtype auto` measures it.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from serve import LENGTHS, ROOT, W1, engine_rate, init_model

LAT = {"num_tokens": 20000, "dim": 256, "depth": 6, "heads": 8, "max_seq_len": 4096}
LPT = {"num_tokens": 20000, "input_size": 512, "channels": 256, "dim_d": 32, "dim_k": 128, "dim_ff": 1024, "nhead": 8,
       "depth": 6}
MODELS = (  # name, architecture, arguments, lengths, sequences of a round
    ("linformer.LinformerLM", "linformer.LinformerLM", W1, LENGTHS, 256),
    ("LinearAttentionTransformerLM, 4,096 tokens", "linear_attention_transformer.LinearAttentionTransformerLM", LAT,
     "fixed:4096", 6),
    ("the same, causal", "linear_attention_transformer.LinearAttentionTransformerLM", LAT | {"causal": True},
     "fixed:4096", 6),
    ("linformer_pytorch.LinformerLM, padded", "linformer_pytorch.LinformerLM", LPT, LENGTHS, 64),
)
TYPES = ("f32", "bf16", "int8")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pooling", default="mean")
    parser.add_argument("--device", default="cpu", choices=("cpu",))
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


def kernel_rates(options, model):
    """Billions of operations a second of one thread, by type; 0 where the CPU has no kernels for it."""
    done = subprocess.run([f"{options.bin}/linserve", "bench", "--model", model, "--dtype", "auto", "--rounds", "1",
                           "--sequences", "1", "--threads", "1"], check=True, capture_output=True, text=True)
    return {dtype: int(re.search(rf"\b{dtype}_gop_s=(\d+)", done.stderr)[1]) for dtype in TYPES}


def measure(options, model, lengths, sequences, types):
    rates = {dtype: [] for dtype in types}
    for seed in range(options.rounds):
        for dtype in types:
            options.dtype, options.seed = dtype, seed
            rates[dtype].append(engine_rate(options, model, lengths, sequences, 2)["tokens_per_s"])
    ratios = {dtype: statistics.median(rate / base for rate, base in zip(rates[dtype], rates["f32"])) for dtype in types}
    return {dtype: statistics.median(rates[dtype]) for dtype in types}, ratios


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        models = []
        for name, architecture, params, lengths, sequences in MODELS:
            models.append((name, f"{directory}/{len(models)}", lengths, sequences))
            init_model(options, models[-1][1], architecture, json.dumps(params))
        padded = Path(models[-1][1], "config.json")
        padded.write_text(json.dumps(json.loads(padded.read_text()) | {"wrapper": {"type": "linformer_pytorch.Padder"}}))
        models.append(("the bundled sentence encoder", str(ROOT / "deploy/models/sentence-encoder"), LENGTHS, 256))
        kernels = kernel_rates(options, models[0][1])
        types = [dtype for dtype in TYPES if kernels[dtype] > 0]
        print("| tokens/s | " + " | ".join(types) + " | over f32 |\n| --- |" + " --- |" * (len(types) + 1))
        print("| kernels, Gop/s, one thread | " + " | ".join(str(kernels[dtype]) for dtype in types) + " | "
              + ", ".join(f"{kernels[dtype] / kernels['f32']:.2f} ×" for dtype in types[1:]) + " |")
        for name, model, lengths, sequences in models:
            rates, ratios = measure(options, model, lengths, sequences, types)
            print(f"| {name} | " + " | ".join(f"{rates[dtype]:,.0f}" for dtype in types) + " | "
                  + ", ".join(f"{ratios[dtype]:.2f} ×" for dtype in types[1:]) + " |", flush=True)


main()
