#!/usr/bin/env python3
"""Makes golden cases of the static models of sentence-transformers 6.2.0 and model2vec 0.10.0, with random weights.

  python make.py ../goldens

Each case is a folder: config.json, model.safetensors, io.safetensors (input.*, output.*). A ragged case has
input.lengths: what is expected is that of each sequence alone.
"""
import json
import sys
import zlib
from pathlib import Path

import tokenizers as tk
import torch
from model2vec import StaticModel
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

TOKENS = 50
TOKENIZER = tk.Tokenizer(tk.models.WordLevel({str(i): i for i in range(TOKENS)}, unk_token="0"))


def static_embedding(generator, width):
    module = StaticEmbedding(TOKENIZER, torch.randn(TOKENS, width, generator=generator, dtype=torch.float64))

    def mean(ids):
        return module({"input_ids": ids, "offsets": torch.tensor([0])})["sentence_embedding"][0].detach()

    return dict(module.state_dict()), {"num_embeddings": TOKENS, "embedding_dim": width}, mean


def static_model(generator, width, weighted=False, rows=None):
    vectors = torch.randn(rows or TOKENS, width, generator=generator, dtype=torch.float64)
    weights = torch.rand(TOKENS, generator=generator, dtype=torch.float64) if weighted else None
    mapping = torch.randint(rows, (TOKENS,), generator=generator) if rows else None
    model = StaticModel(vectors.numpy(), TOKENIZER, weights=None if weights is None else weights.numpy(),
                        token_mapping=None if mapping is None else mapping.numpy())

    def mean(ids):
        return torch.from_numpy(model._encode_helper(ids.numpy()).mean(axis=0)) if len(ids) else torch.zeros(width)

    state = {"embeddings": vectors, "weights": weights, "mapping": mapping}
    params = {"vocab_size": TOKENS, "hidden_dim": width, "weighted": weighted, "vocabulary_quantization": rows}
    return {name: tensor for name, tensor in state.items() if tensor is not None}, params, mean


# Each case has: its model, the arguments, the length, and lengths or whether there is a mask.
CASES = {
    "static-base": (static_embedding, dict(width=24), 30, None, False),
    "static-mask": (static_embedding, dict(width=37), 9, None, True),
    "static-long": (static_embedding, dict(width=16), 700, [700, 1, 64, 65, 129], False),
    "static-model2vec": (static_model, dict(width=20), 40, [40, 1, 2, 17, 33, 16], False),
    "static-model2vec-weighted": (static_model, dict(width=20, weighted=True), 12, None, True),
    "static-model2vec-shared": (static_model, dict(width=24, weighted=True, rows=11), 30, None, False),
}


def make(name, root):
    function, arguments, length, lengths, masked = CASES[name]
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    state, params, mean = function(generator, **arguments)
    batch = len(lengths or range(3))
    ids = torch.randint(TOKENS, (batch, length), generator=generator)
    inputs = {"x": ids}
    there = torch.ones(batch, length, dtype=torch.bool)
    if masked:
        there = torch.rand(batch, length, generator=generator) < 0.6
        there[1] = False  # no token is there
        inputs["attention_mask"] = there
    if lengths:
        inputs["lengths"] = torch.tensor(lengths)
        there = torch.arange(length)[None] < inputs["lengths"][:, None]
        inputs["x"] = ids * there
    expected = torch.stack([mean(ids[i, there[i]]) for i in range(batch)])
    folder = Path(root, name)
    folder.mkdir(exist_ok=True)
    package = "sentence-transformers==6.2.0" if function is static_embedding else "model2vec==0.10.0"
    architecture = ("sentence_transformers.StaticEmbedding" if function is static_embedding
                    else "model2vec.StaticModel")
    (folder / "config.json").write_text(json.dumps(
        {"schema": 1, "architecture": architecture, "params": params, "wrapper": None, "call": {}, "compare": "all",
         "package": package, "tolerance": 1e-5}, indent=1) + "\n")
    save_file({name: tensor if tensor.dtype == torch.int64 else tensor.float() for name, tensor in state.items()},
              folder / "model.safetensors", {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               "output.sentence_embedding": expected.float()}, folder / "io.safetensors")


for each in CASES:
    make(each, sys.argv[1])
    print(each)
