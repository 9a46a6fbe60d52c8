#!/usr/bin/env python3
"""Embeds sentences with all-MiniLM-L6-v2, from texts to vectors: by a server of linserve and its client, and by
sentence-transformers in process, which sorts them by length. Each round draws other sentences of the descriptions of
Debian's packages; all take them in turns, on the same processors. Prints a table of sentences per second.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/system" / folder) for folder in ("packages", "clients")]
BATCH_SIZES = (8, 32, 128)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000, help="of a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtypes", default="f32,bf16,int8", help="of linserve")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    return parser.parse_args()


class Served:
    """A server of the model, and a client that writes the vectors of a file of sentences."""

    def __init__(self, options, dtype, repository):
        os.environ["LINSERVE_TEST_BIN"] = options.bin
        from served import Server
        self.client = f"{options.bin}/linserve-client"
        self.server = Server("--dtype", dtype, "--processors", str(options.threads), repository=repository)

    def embed(self, sentences, folder):
        texts = Path(folder, "texts.txt")
        texts.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        subprocess.run([self.client, "--target", self.server.grpc, "embed", texts, "--format", "text", "--output",
                        Path(folder, "vectors.npy")], check=True)


class Package:
    def __init__(self, model, batch):
        self.model, self.batch = model, batch

    def embed(self, sentences, _):
        self.model.encode(sentences, batch_size=self.batch)


def seconds(contestant, sentences, folder):
    start = time.perf_counter()
    contestant.embed(sentences, folder)
    return time.perf_counter() - start


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    import minilm
    if not (minilm.FOLDER / "config.json").exists():
        minilm.fetch()
    with tempfile.TemporaryDirectory() as folder:
        found = {f"linserve, {dtype}": Served(options, dtype, minilm.FOLDER.parent)
                 for dtype in options.dtypes.split(",")}
        model = SentenceTransformer(str(minilm.FOLDER), device="cpu")
        few = minilm.sentences(min(options.sentences, 256), 1000)
        batch = min(BATCH_SIZES, key=lambda size: seconds(Package(model, size), few, folder))
        found[f"sentence-transformers, f32, batches of {batch}"] = Package(model, batch)
        rates = {name: [] for name in found}
        for seed in range(options.rounds + 1):
            sentences = minilm.sentences(options.sentences, seed)
            for name, contestant in found.items():
                rates[name].append(len(sentences) / seconds(contestant, sentences, folder))
        for name in found:
            del rates[name][0]  # it warms all up
            if isinstance(found[name], Served):
                found[name].server.close()
    package = rates[next(reversed(rates))]
    print("| | sentences/s | over sentence-transformers |\n| --- | --- | --- |")
    for name, measured in rates.items():
        ratio = statistics.median(one / base for one, base in zip(measured, package))
        print(f"| {name} | {statistics.median(measured):,.0f} | {ratio:.1f} × |")


if __name__ == "__main__":
    main()
