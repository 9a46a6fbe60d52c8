#!/usr/bin/env python3
"""Embeds sentences with all-MiniLM-L6-v2, from texts to vectors: by a server of linserve and its client, and by
sentence-transformers in process, which sorts them by length. Each round draws other sentences of the descriptions of
Debian's packages; all take them in turns, on the same processors. Prints a table of sentences per second.

With --rerank it orders the sentences, 100 at a time, by how they fit the first one: by a re-ranker of the same encoder
with a random head, over /rerank and by a CrossEncoder in process.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/system" / folder) for folder in ("packages", "clients")]
BATCH_SIZES = (8, 32, 128)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000, help="of a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtypes", default="f32,bf16,int8", help="of linserve")
    parser.add_argument("--rerank", action="store_true")
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


class ServedRanker(Served):
    """A server of the re-ranker, which is asked by one request after the other."""

    def embed(self, sentences, _):
        for query, texts in questions(sentences):
            body = json.dumps({"query": query, "texts": texts}).encode()
            urllib.request.urlopen(f"http://{self.server.http}/rerank", body).read()


class Package:
    def __init__(self, model, batch):
        self.model, self.batch = model, batch

    def embed(self, sentences, _):
        self.model.encode(sentences, batch_size=self.batch)


class PackageRanker(Package):
    def embed(self, sentences, _):
        for query, texts in questions(sentences):
            self.model.predict([(query, text) for text in texts], batch_size=self.batch)


def questions(sentences):
    return [(sentences[0], sentences[i:i + 100]) for i in range(0, len(sentences), 100)]


def make_ranker(encoder, folder):
    """Saves a re-ranker with the weights of the encoder, of which only the head is random."""
    torch.manual_seed(1)
    model = transformers.BertForSequenceClassification.from_pretrained(encoder, num_labels=1)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(encoder / name, folder)


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
        model_folder, served, package_of, class_of = minilm.FOLDER, Served, Package, SentenceTransformer
        if options.rerank:
            model_folder = Path(folder, "models/ranker")
            served, package_of, class_of = ServedRanker, PackageRanker, CrossEncoder
            make_ranker(minilm.FOLDER, model_folder)
        found = {f"linserve, {dtype}": served(options, dtype, model_folder.parent)
                 for dtype in options.dtypes.split(",")}
        model = class_of(str(model_folder), device="cpu")
        few = minilm.sentences(min(options.sentences, 256), 1000)
        batch = min(BATCH_SIZES, key=lambda size: seconds(package_of(model, size), few, folder))
        found[f"sentence-transformers, f32, batches of {batch}"] = package_of(model, batch)
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
    print(f"| | {'pairs' if options.rerank else 'sentences'}/s | over sentence-transformers |\n| --- | --- | --- |")
    for name, measured in rates.items():
        ratio = statistics.median(one / base for one, base in zip(measured, package))
        print(f"| {name} | {statistics.median(measured):,.0f} | {ratio:.1f} × |")


if __name__ == "__main__":
    main()
