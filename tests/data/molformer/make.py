#!/usr/bin/env python3
"""Makes golden cases of IBM's MoLFormer with random weights.

  python make.py FOLDER ../goldens

FOLDER holds modeling_molformer.py and configuration_molformer.py, as MoLFormer-XL's folder on the hub has them; they
are run, with whatever version of transformers they are for. Each case is a folder: config.json, model.safetensors (the
state_dict), io.safetensors (input.*, output.*). A ragged case has input.lengths: rows past them are zeros, and what is
expected is that of each sequence alone.
"""
import json
import os
import sys
import zlib

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from configuration_molformer import MolformerConfig  # noqa: E402
from modeling_molformer import MolformerForSequenceClassification, MolformerModel  # noqa: E402

SMALL = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             num_random_features=16)
CASES = []


def case(name, length=24, batch=2, lengths=None, mask=False, kind=MolformerModel, hide_first=False, **params):
    CASES.append(dict(name="molformer-" + name, params={**SMALL, **params}, length=max(lengths or [length]),
                      batch=len(lengths or range(batch)), lengths=lengths, mask=mask, kind=kind,
                      hide_first=hide_first))


case("base", deterministic_eval=True)
case("ragged", lengths=[40, 1, 2, 17, 33, 16])
case("mask", mask=True, deterministic_eval=True)
case("long", lengths=[300, 129, 128, 64], max_position_embeddings=40)
case("kernel-gelu", mask=True, feature_map_kernel="gelu", num_hidden_layers=1)
case("kernel-sigmoid", feature_map_kernel="sigmoid", hidden_act="relu", linear_attention_eps=1e-3)
case("kernel-tanh", lengths=[30, 5], feature_map_kernel="gelu_new", hidden_act="gelu_new")
case("many-features", lengths=[50, 20, 3], num_random_features=37, layer_norm_eps=1e-6)
case("few-features", mask=True, num_random_features=3, num_attention_heads=2, hidden_act="quick_gelu")
case("eps", length=9, linear_attention_eps=0.5, num_attention_heads=1, hidden_size=30, num_random_features=33)
case("one-layer", lengths=[7, 130], num_hidden_layers=1, intermediate_size=20, pad_token_id=0)
case("classifier", mask=True, hide_first=True, kind=MolformerForSequenceClassification, deterministic_eval=True,
     id2label={"0": "inert", "1": "toxic", "2": "unknown"})
case("classifier-no-skip", lengths=[30, 1, 17, 2], kind=MolformerForSequenceClassification, num_labels=1,
     problem_type="regression", classifier_skip_connection=False, hidden_act="relu")
case("classifier-tanh", lengths=[9, 40], kind=MolformerForSequenceClassification, num_labels=7,
     problem_type="multi_label_classification", hidden_act="tanh")


def weights(model, generator):
    """Random weights of which nothing can be left out unnoticed: biases and norms, too."""
    for name, tensor in model.state_dict().items():
        if name.endswith("feature_map.weight"):
            continue
        norm = "LayerNorm" in name and name.endswith("weight")
        scale = 0.2 if tensor.dim() == 1 else 0.7 if "embeddings" in name else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if norm else 0.0))


def forward(model, ids, mask=None):
    """The rows of the encoder, and of a classifier the logits, else the mean of the rows."""
    arguments = dict(input_ids=ids, attention_mask=(torch.ones_like(ids) if mask is None else mask).double())
    if isinstance(model, MolformerForSequenceClassification):
        return model.molformer(**arguments).last_hidden_state, model(**arguments).logits
    result = model(**arguments)
    return result.last_hidden_state, result.pooler_output


def outputs_of(case, model, inputs):
    if case["lengths"] is None:
        return forward(model, inputs["x"], inputs.get("attention_mask"))
    rows, pooled = torch.zeros(*inputs["x"].shape, model.config.hidden_size, dtype=torch.float64), []
    for i, length in enumerate(case["lengths"]):
        own, mean = forward(model, inputs["x"][i:i + 1, :length])
        rows[i, :length] = own[0]
        pooled.append(mean)
    return rows, torch.cat(pooled)


def make(case, root):
    seed = zlib.crc32(case["name"].encode())
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    # The service uses the directions of the checkpoint, whatever this says.
    model = case["kind"](MolformerConfig(**{**case["params"], "deterministic_eval": True})).eval()
    with torch.no_grad():
        weights(model, generator)
        inputs = {"x": torch.randint(3, case["params"]["vocab_size"], (case["batch"], case["length"]),
                                     generator=generator)}
        if case["mask"]:
            inputs["attention_mask"] = torch.rand(inputs["x"].shape, generator=generator) < 0.7
            inputs["attention_mask"][:, 0] = not case["hide_first"]
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        rows, pooled = outputs_of(case, model.double(), inputs)
    if case["lengths"] is not None:
        inputs["lengths"] = torch.tensor(case["lengths"])
        inputs["x"] *= torch.arange(case["length"])[None] < inputs["lengths"][:, None]
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "molformer." + case["kind"].__name__, "params": case["params"], "wrapper": None,
                   "call": {}, "compare": "all", "package": "ibm/MoLFormer-XL-both-10pct", "tolerance": 1e-5}, file,
                  indent=1)
        file.write("\n")
    save_file(state, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               "output.last_hidden_state": rows.float().contiguous(),
               "output.pooler_output" if case["kind"] is MolformerModel else "output.logits": pooled.float()},
              os.path.join(folder, "io.safetensors"))


for one in CASES:
    make(one, sys.argv[2])
    print(one["name"])
