#!/usr/bin/env python3
"""Texts to token ids by linserve and by the package tokenizers, one thread each, in turns.

usage: tests/bench/run tokenizers [--rounds N] [--lines N] [--vocabulary N] [--only NAME]

The tokenizers are trained here, on the translations and the documentation of Debian, of which the texts are others. The
package encodes them one by one (encode) and all at once (encode_batch); each round takes the quickest of a second. What
is printed are medians of the rounds, in MB of text a second, and the medians of the ratios.
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

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system/tokenizers"))
import texts  # noqa: E402
import trained  # noqa: E402

NAMES = ["bert-uncased", "bert-cased", "roberta", "llama3", "qwen", "clip", "llama", "xlm-roberta", "albert", "deberta", "words"]


def quickest(work, seconds=1):
    """The shortest time of one go, of those that fit into some seconds."""
    best, end = float("inf"), time.monotonic() + seconds
    while True:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if time.monotonic() > end:
            return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--vocabulary", type=int, default=30000)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/encode_lines"))
    arguments = parser.parse_args()
    lines = [line for line in texts.documentation(60000) if len(line) > 20]
    lines += [line for line in texts.translations(60000) if len(line) > 20]
    held_out = lines[:: len(lines) // arguments.lines][:arguments.lines]
    chosen = set(held_out)
    learned = [line for line in lines if line not in chosen]
    size = sum(len(line.encode()) for line in held_out)
    inputs = "\n".join(json.dumps(line) for line in held_out) + "\n"
    print(f"{len(held_out)} texts, {size / len(held_out):.0f} bytes each")
    print("| tokenizer | encode, MB/s | encode_batch, MB/s | linserve, MB/s | over encode | over encode_batch |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.only or NAMES:
            tokenizer = trained.train(name, learned, arguments.vocabulary)
            path = str(Path(directory) / "tokenizer.json")
            tokenizer.save(path)
            rates = []
            for _ in range(arguments.rounds):
                one = size / quickest(lambda: [tokenizer.encode(line) for line in held_out]) / 1e6
                batch = size / quickest(lambda: tokenizer.encode_batch(held_out)) / 1e6
                done = subprocess.run([arguments.program, path, "--time", "1"], input=inputs, capture_output=True, text=True,
                                      check=True)
                rates.append((one, batch, size / float(done.stdout.split()[2]) / 1e6))
            one, batch, own = (statistics.median(column) for column in zip(*rates))
            over = [statistics.median(rate[2] / rate[i] for rate in rates) for i in (0, 1)]
            print(f"| {name} | {one:.2f} | {batch:.2f} | {own:.1f} | {over[0]:.1f} × | {over[1]:.1f} × |", flush=True)


if __name__ == "__main__":
    main()
