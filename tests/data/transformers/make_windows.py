#!/usr/bin/env python3
"""Makes golden cases of Longformer and BigBird of transformers 5.24.0, with random weights.

  python make_windows.py ../goldens [BEGINNING]

Each case is as make.py says. BigBird keeps full attention after a short input, and is set to its blocks again.
"""
import json
import os
import sys
import zlib

import torch
import transformers
from safetensors.torch import save_file

torch.set_num_threads(1)
SMALL = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
LONG = dict(SMALL, max_position_embeddings=44, type_vocab_size=1, attention_window=8)
BIRD = dict(SMALL, max_position_embeddings=48, block_size=2, num_random_blocks=1)
RAGGED = dict(length=40, lengths=[40, 1, 2, 17, 33, 16])
CASES = []


def case(name, architecture, params, length=40, lengths=None, batch=2, **inputs):
    """`inputs` are: mask, types, asks (the share of tokens that are global), pad, pooler, hide_first."""
    CASES.append(dict(name=name, architecture=architecture, params=params, length=length, lengths=lengths,
                      batch=len(lengths) if lengths else batch, **inputs))


case("longformer-base", "LongformerModel", LONG, pooler=True)
case("longformer-ragged", "LongformerModel", dict(LONG, attention_window=6), pooler=True, **RAGGED)
case("longformer-mask", "LongformerModel", dict(LONG, type_vocab_size=2, hidden_act="gelu_new"), mask=True, types=True,
     hide_first=True)
case("longformer-global", "LongformerModel", dict(LONG, attention_window=[4, 12]), length=36, asks=0.2, pooler=True)
case("longformer-global-mask", "LongformerModel", dict(LONG, num_hidden_layers=3), asks=0.3, mask=True, hide_first=True)
case("longformer-global-ragged", "LongformerModel", dict(LONG, attention_window=4), asks=0.3, mask=True, **RAGGED)
case("longformer-all-global", "LongformerModel", LONG, length=25, asks=1)
case("longformer-pads-inside", "LongformerModel", dict(LONG, pad_token_id=3), pad=True, asks=0.1)
case("longformer-wide", "LongformerModel", dict(LONG, attention_window=512, layer_norm_eps=1e-5), asks=0.1, mask=True)
case("longformer-odd-heads", "LongformerModel",
     dict(LONG, hidden_size=30, num_attention_heads=6, hidden_act="silu", attention_window=10), asks=0.1)
case("longformer-long", "LongformerModel", dict(LONG, max_position_embeddings=402, attention_window=64), length=400,
     lengths=[400, 129, 128, 64])
case("longformer-global-long", "LongformerModel", dict(LONG, max_position_embeddings=602, attention_window=100),
     length=600, lengths=[600, 129, 257], asks=0.35, mask=True)
case("longformer-classifier", "LongformerForSequenceClassification",
     dict(LONG, id2label={str(i): f"class {i}" for i in range(3)}), mask=True)
case("longformer-classifier-asked", "LongformerForSequenceClassification", dict(LONG, num_labels=2), mask=True, asks=0.2,
     hide_first=True)
case("longformer-reranker", "LongformerForSequenceClassification", dict(LONG, num_labels=1), **RAGGED)

case("big-bird-base", "BigBirdModel", BIRD, pooler=True)
case("big-bird-ragged", "BigBirdModel", BIRD, length=40, lengths=[40, 1, 14, 15, 33, 16], pooler=True)
case("big-bird-mask", "BigBirdModel", dict(BIRD, block_size=3, num_random_blocks=2, type_vocab_size=3), length=41,
     mask=True, types=True, hide_first=True)
case("big-bird-short", "BigBirdModel", dict(BIRD, block_size=4), length=28, mask=True, hide_first=True)
case("big-bird-full", "BigBirdModel", dict(BIRD, attention_type="original_full", hidden_act="gelu"), mask=True)
case("big-bird-unbiased", "BigBirdModel",
     dict(BIRD, use_bias=False, rescale_embeddings=True, hidden_act="relu", layer_norm_eps=1e-6), batch=1)
case("big-bird-odd-heads", "BigBirdModel",
     dict(BIRD, hidden_size=30, num_attention_heads=6, block_size=5, max_position_embeddings=50), length=49, mask=True)
case("big-bird-long", "BigBirdModel", dict(BIRD, max_position_embeddings=400, block_size=16, num_random_blocks=3),
     length=400, lengths=[400, 129, 177, 192], mask=True)
# Lengths for which the package has a plan of its own where its blocks are random.
case("big-bird-planned", "BigBirdModel", dict(BIRD, max_position_embeddings=1024, block_size=64, num_random_blocks=3),
     length=1024, batch=1, mask=True)
case("big-bird-classifier", "BigBirdForSequenceClassification",
     dict(BIRD, id2label={str(i): f"class {i}" for i in range(3)}), mask=True, hide_first=True)
case("big-bird-reranker", "BigBirdForSequenceClassification", dict(BIRD, num_labels=1, hidden_act="relu"), **RAGGED)


def fill(model, generator):
    """Random weights of which nothing can be left out unnoticed: biases and norms, too."""
    for name, tensor in model.state_dict().items():
        norm = "norm" in name.lower() and name.endswith("weight")
        scale = 0.2 if norm or tensor.dim() == 1 else 0.7 if "embeddings" in name else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if norm else 0.0))


def inputs_of(case, config, generator):
    shape = (case["batch"], case["length"])
    inputs = {"x": torch.randint(4, config.vocab_size, shape, generator=generator)}
    if case.get("pad"):
        inputs["x"][:, 5:7] = config.pad_token_id
        inputs["x"][0, -1] = config.pad_token_id
    if case.get("mask"):
        inputs["attention_mask"] = torch.rand(shape, generator=generator) < 0.7
        inputs["attention_mask"][:, 0] = not case.get("hide_first")
    if case.get("types"):
        inputs["token_type_ids"] = torch.randint(0, config.type_vocab_size, shape, generator=generator)
    if "asks" in case:
        inputs["global_attention_mask"] = torch.rand(shape, generator=generator) < case["asks"]
    return inputs


def outputs_of(model, inputs):
    if isinstance(model.base_model, transformers.BigBirdModel):
        model.base_model.set_attention_type(model.config.attention_type)
    arguments = {("input_ids" if name == "x" else name): tensor.long() for name, tensor in inputs.items()}
    arguments.setdefault("attention_mask", torch.ones_like(arguments["input_ids"]))
    result = model(**arguments)
    if model.base_model is model:
        return {"last_hidden_state": result.last_hidden_state, "pooler_output": result.pooler_output}
    rows = model(**arguments, output_hidden_states=True).hidden_states[-1]
    return {"logits": result.logits, "last_hidden_state": rows}


def expected_of(case, model, inputs):
    if not case["lengths"]:
        return outputs_of(model, inputs)
    alone = [outputs_of(model, {name: tensor[i:i + 1, :n] for name, tensor in inputs.items()})
             for i, n in enumerate(case["lengths"])]
    outputs = {name: torch.cat([one[name] for one in alone]) for name in alone[0] if name != "last_hidden_state"}
    rows = torch.zeros(case["batch"], case["length"], model.config.hidden_size, dtype=torch.float64)
    for one, row, n in zip(alone, rows, case["lengths"]):
        row[:n] = one["last_hidden_state"][0]
    return outputs | {"last_hidden_state": rows}


def make(case, root):
    generator = torch.Generator().manual_seed(zlib.crc32(case["name"].encode()))
    kind = getattr(transformers, case["architecture"])
    config = kind.config_class(**case["params"])
    config._attn_implementation = "eager"
    model = kind(config).eval()
    with torch.no_grad():
        fill(model, generator)
        inputs = inputs_of(case, config, generator)
        expected = expected_of(case, model.double(), inputs)
    params, state = case["params"], model.state_dict()
    if case["architecture"].endswith("Model") and not case.get("pooler"):
        del expected["pooler_output"]
        params = dict(params, add_pooling_layer=False)
        state = {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}
    if case["lengths"]:
        inputs["lengths"] = torch.tensor(case["lengths"])
        there = torch.arange(case["length"])[None] < inputs["lengths"][:, None]
        inputs = {name: tensor if name == "lengths" else tensor * there for name, tensor in inputs.items()}
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "transformers." + case["architecture"], "params": params,
                   "wrapper": None, "call": {}, "compare": "all",
                   "package": "transformers==" + transformers.__version__, "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.float().contiguous() for name, tensor in state.items()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               **{"output." + name: tensor.float().contiguous() for name, tensor in expected.items()}},
              os.path.join(folder, "io.safetensors"))


for one in CASES:
    if one["name"].startswith(sys.argv[2] if len(sys.argv) > 2 else ""):
        make(one, sys.argv[1])
        print(one["name"])
