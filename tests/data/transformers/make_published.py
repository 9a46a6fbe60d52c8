#!/usr/bin/env python3
"""Makes golden cases of NomicBert as its authors published it, before transformers had the class.

  python make_published.py FOLDER ../goldens

FOLDER holds modeling_hf_nomic_bert.py and configuration_hf_nomic_bert.py of nomic-ai/contrastors (its
src/contrastors/models/huggingface), which needs einops. Each case is as make.py says.
"""
import json
import os
import sys
import zlib

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
package = os.path.basename(os.path.abspath(sys.argv[1]))
configuration = __import__(package + ".configuration_hf_nomic_bert", fromlist=["NomicBertConfig"])
modeling = __import__(package + ".modeling_hf_nomic_bert", fromlist=["NomicBertModel"])
# Versions of transformers from 5 on lack what it inherited.
modeling.NomicBertModel.get_extended_attention_mask = lambda self, mask, *_: (1 - mask[:, None, None].double()) * -1e30
modeling.NomicBertModel.get_head_mask = lambda self, mask, layers, *_: [None] * layers

PUBLISHED = dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=320, activation_function="swiglu",
                 qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, rotary_emb_fraction=1.0,
                 rotary_emb_base=1000, rotary_scaling_factor=None, layer_norm_epsilon=1e-12, pad_vocab_size_multiple=64,
                 attn_pdrop=0.0)  # which is dropped at inference, too


def make(name, lengths, mask=False, **params):
    name = "nomic-published-" + name
    params = {**PUBLISHED, **params}
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    model = modeling.NomicBertModel(configuration.NomicBertConfig(**params), add_pooling_layer=False).eval().double()
    length = max(lengths)
    ids = torch.randint(4, params["vocab_size"], (len(lengths), length), generator=generator)
    expected = torch.zeros(len(lengths), length, params["n_embd"])
    visible = torch.ones_like(ids, dtype=torch.bool)
    if mask:
        visible = torch.rand(ids.shape, generator=generator) < 0.7
        visible[:, 0] = True
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            norm = "norm" in key or "emb_ln" in key
            scale = 0.2 if norm else 0.7 if "embeddings" in key else tensor.shape[-1] ** -0.5
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale
                         + (1.0 if norm and key.endswith("weight") else 0.0))
        for i, n in enumerate(lengths):
            expected[i, :n] = model(ids[i:i + 1, :n], attention_mask=visible[i:i + 1, :n].long()).last_hidden_state[0]
    inputs = {"x": ids}
    if mask:
        inputs["attention_mask"] = visible
    if len(set(lengths)) > 1:
        inputs["lengths"] = torch.tensor(lengths)
        inputs["x"] *= torch.arange(length)[None] < inputs["lengths"][:, None]
    folder = os.path.join(sys.argv[2], name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "transformers.NomicBertModel", "params": params, "wrapper": None,
                   "call": {}, "compare": "all", "package": "nomic-ai/contrastors", "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file({key: tensor.float() for key, tensor in model.state_dict().items()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + key: tensor.contiguous() for key, tensor in inputs.items()},
               "output.last_hidden_state": expected}, os.path.join(folder, "io.safetensors"))
    print(name)


make("base", [40, 1, 2, 17, 33, 16])
make("mask", [24, 24], mask=True)
make("geglu", [300, 129], activation_function="geglu", vocab_size=60, n_layer=3, rotary_emb_base=300, type_vocab_size=1,
     layer_norm_epsilon=1e-5)
