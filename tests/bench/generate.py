#!/usr/bin/env python3
"""Generates a text with linserve and with the Python package, side by side, and prints medians.

The package runs on the whole prefix for each token, as its AutoregressiveWrapper does; linserve
serves the same weights to `linserve-client generate`, once and several times at once. Both are
greedy, and their tokens are compared. Needs the packages of tests/system/packages: `tests/bench/run
generate` makes an environment with them.
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
from linear_attention_transformer import LinearAttentionTransformerLM
from linear_attention_transformer.autopadder import Autopadder
from safetensors.torch import load_file

from serve import ROOT, Server, init_model

LM = "linear_attention_transformer.LinearAttentionTransformerLM"
PARAMS = {"num_tokens": 1000, "dim": 512, "depth": 6, "heads": 8, "max_seq_len": 2048, "causal": True,
          "n_local_attn_heads": 4, "local_attn_window_size": 128}
PROMPT = [1, 2, 3]


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--params", default=json.dumps(PARAMS), help="of the model, as JSON")
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--concurrency", default="1,8,64", help="texts at once, one number a line")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


def package(directory, params):
    model = LinearAttentionTransformerLM(**params)
    model.load_state_dict(load_file(f"{directory}/model.safetensors"), strict=False)
    return Autopadder(model.eval())


@torch.no_grad()
def package_tokens(model, count):
    tokens = list(PROMPT)
    for _ in range(count):
        tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(PROMPT):]


def served_tokens(options, server, texts):
    """The first of so many texts that are generated at once."""
    command = [f"{options.bin}/linserve-client", "--target", server.grpc, "--timeout", "600", "generate",
               json.dumps(PROMPT), "--max-tokens", str(options.tokens), "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(texts)]
    answers = [process.communicate()[0] for process in running]
    if any(process.returncode != 0 for process in running):
        sys.exit("linserve-client failed")
    return json.loads(answers[0])["token_ids"]


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def main():
    options = arguments()
    params = json.loads(options.params)
    torch.set_num_threads(os.cpu_count())
    counts = [int(text) for text in options.concurrency.split(",")]
    rates = {"package": []} | {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as directory:
        init_model(options, f"{directory}/lm", LM, options.params)
        model = package(f"{directory}/lm", params)
        server = Server(options, directory)
        for _ in range(options.rounds):
            expected, seconds = timed(lambda: package_tokens(model, options.tokens))
            rates["package"].append(options.tokens / seconds)
            for count in counts:
                tokens, seconds = timed(lambda: served_tokens(options, server, count))
                rates[count].append(count * options.tokens / seconds)
                same = sum(a == b for a, b in zip(expected, tokens))
                if same < options.tokens:
                    print(f"the first difference is at token {same}", file=sys.stderr)
        server.stop()
    base = rates["package"]
    print(f"package, whole prefix   {statistics.median(base):9.1f} tokens/s")
    for count in counts:
        ratio = statistics.median(rate / own for rate, own in zip(rates[count], base))
        print(f"linserve, {count:3d} at once    {statistics.median(rates[count]):9.1f} tokens/s, "
              f"{ratio:.0f} times")


if __name__ == "__main__":
    main()
