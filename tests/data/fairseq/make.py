#!/usr/bin/env python3
"""Makes golden cases of linformer_roberta, the Linformer paper's own code in fairseq, with random weights.

  git clone https://github.com/facebookresearch/fairseq && git -C fairseq checkout 3d262bb
  python make.py fairseq ../goldens

It runs in the environment of tests/system/packages, with omegaconf. Each case is a folder: config.json,
model.safetensors (the state_dict as it is saved), io.safetensors (input.*, output.*). Each sequence is computed alone,
since the package lets padding leak into other rows; a ragged case has input.lengths.
"""
import json
import os
import sys
import zlib

import torch
from fairseq_clone import linformer_roberta
from safetensors.torch import save_file

torch.set_num_threads(1)
SMALL = dict(encoder_layers=2, encoder_embed_dim=32, encoder_attention_heads=4, encoder_ffn_embed_dim=48,
             max_positions=24, compressed=4)
VOCABULARY = 40
CASES = []


def case(name, length=24, batch=2, lengths=None, pads=False, features=False, older=False, **more):
    CASES.append(dict(name="linformer-roberta-" + name, params={**SMALL, **more}, length=length, batch=batch,
                      lengths=lengths, pads=pads, features=features, older=older))


case("base")
case("ragged", batch=6, lengths=[24, 1, 2, 17, 23, 16])
case("shared-kv", length=19, shared_kv_compressed=1, activation_fn="relu")
case("shared-layers", shared_layer_kv_compressed=1, freeze_compress=1, compressed=3, lengths=[21, 5])
case("shared-all", length=11, shared_layer_kv_compressed=1, shared_kv_compressed=1, activation_fn="gelu_accurate")
case("prenorm", encoder_normalize_before=True, layernorm_embedding=False, untie_weights_roberta=True, lengths=[24, 9])
case("prenorm-normed", length=13, encoder_normalize_before=True, activation_fn="tanh", shared_kv_compressed=1)
case("pads-inside", pads=True, length=20)
case("sinusoidal", encoder_learned_pos=False, no_scale_embedding=False, activation_fn="linear", compressed=1,
     lengths=[24, 7])
case("no-positions", no_token_positional_embeddings=True, layernorm_embedding=False, quant_noise_pq=0.1,
     encoder_layerdrop=0.2, encoder_layers=3, encoder_layers_to_keep="0,2", lengths=[18, 24])
case("odd", length=17, encoder_embed_dim=30, encoder_attention_heads=6, max_positions=23, compressed=5)
case("one-slot", length=10, compressed=24, features=True, untie_weights_roberta=True)
case("older", lengths=[22, 24], older=True)
case("long", length=300, batch=4, lengths=[300, 129, 128, 20], max_positions=300, compressed=6, shared_layer_kv_compressed=1)


def weights(model, generator):
    """Random weights of which nothing can be left out unnoticed: biases and norms, too."""
    for name, tensor in model.named_parameters():
        norm = "norm" in name and name.endswith("weight")
        scale = 0.2 if norm or tensor.dim() == 1 else 0.3 if "embed_" in name else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if norm else 0.0))


def older(name):
    """What the code's upgrade_state_dict_named() renames."""
    for new, old in (("encoder.", "decoder."), ("layernorm_embedding", "emb_layer_norm"),
                     ("self_attn_layer_norm", "layer_norms.0"), ("final_layer_norm", "layer_norms.1")):
        name = name.replace(new, old, 1)
    return name


def outputs_of(model, ids, lengths, features):
    outputs = {}
    for i, length in enumerate(lengths):
        alone = ids[i:i + 1, :length]
        for name, only in (("embeddings", True), ("y", features)):
            rows = model(alone, features_only=only)[0][0]
            outputs.setdefault(name, torch.zeros(*ids.shape, rows.shape[-1]))[i, :length] = rows.float()
    return outputs


def make(case, root):
    generator = torch.Generator().manual_seed(zlib.crc32(case["name"].encode()))
    model, dictionary = linformer_roberta(sys.argv[1], case["params"], VOCABULARY)
    padding = dictionary.pad()
    lengths = case["lengths"] or [case["length"]] * case["batch"]
    ids = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    if case["pads"]:
        ids[:, 5:7] = padding
        ids[0, -1] = padding
    with torch.no_grad():
        weights(model, generator)
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        expected = outputs_of(model.double(), ids, lengths, case["features"])
    if case["older"]:
        state = {older(name): tensor for name, tensor in state.items() if not name.endswith("version")}
    inputs = {"input.x": ids}
    if case["lengths"] is not None:
        inputs["input.lengths"] = torch.tensor(lengths)
        ids *= torch.arange(ids.shape[1])[None] < inputs["input.lengths"][:, None]
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "fairseq.LinformerRoberta",
                   "params": {**case["params"], "vocab_size": VOCABULARY, "padding_idx": padding}, "wrapper": None,
                   "call": {"features_only": True} if case["features"] else {}, "compare": "all",
                   "package": "facebookresearch/fairseq 3d262bb", "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file(state, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**inputs, **{"output." + name: rows for name, rows in expected.items()}},
              os.path.join(folder, "io.safetensors"))


for one in CASES:
    make(one, sys.argv[2])
    print(one["name"])
