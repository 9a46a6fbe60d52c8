#!/usr/bin/env python3
"""Makes golden cases of NomicBert and GTE as their authors published them, before transformers had the classes.

  python make_published.py NOMIC GTE ../goldens

NOMIC holds modeling_hf_nomic_bert.py and configuration_hf_nomic_bert.py of nomic-ai/contrastors (its
src/contrastors/models/huggingface), which needs einops. GTE holds modeling.py and configuration.py of
Alibaba-NLP/new-impl. Each case is as make.py says.
"""
import copy
import json
import os
import sys
import zlib

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)


def module(folder, name):
    sys.path.insert(0, os.path.dirname(os.path.abspath(folder)))
    return __import__(os.path.basename(os.path.abspath(folder)) + "." + name, fromlist=[name])


nomic, nomic_config = (module(sys.argv[1], name + "_hf_nomic_bert") for name in ("modeling", "configuration"))
gte, gte_config = (module(sys.argv[2], name) for name in ("modeling", "configuration"))


def visible_keys(_self, mask, *_):
    return (1 - mask[:, None, None].double()) * -1e30


# Versions of transformers from 5 on lack what the classes inherited.
nomic.NomicBertModel.get_extended_attention_mask = gte.NewModel.get_extended_attention_mask = visible_keys
nomic.NomicBertModel.get_head_mask = lambda self, mask, layers, *_: [None] * layers

NOMIC = dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=320, activation_function="swiglu",
             qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, rotary_emb_fraction=1.0, rotary_emb_base=1000,
             rotary_scaling_factor=None, layer_norm_epsilon=1e-12, pad_vocab_size_multiple=64,
             attn_pdrop=0.0)  # which is dropped at inference, too
GTE = dict(model_type="new", vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
           intermediate_size=48, max_position_embeddings=320, hidden_dropout_prob=0.0)


def nomic_model(params):
    return nomic.NomicBertModel(nomic_config.NomicBertConfig(**params), add_pooling_layer=False)


def gte_model(params):
    scaling = copy.deepcopy(params.get("rope_scaling"))
    config = gte_config.NewConfig(**{key: value for key, value in params.items()
                                     if key not in ("model_type", "rope_scaling")})
    # Versions of transformers from 5 on would change the one, and have no other.
    object.__setattr__(config, "rope_scaling", scaling)
    object.__setattr__(config, "pad_token_id", params.get("pad_token_id", 0))
    config._attn_implementation = "eager"
    # What is computed in the constructor is as exact as the rest.
    torch.set_default_dtype(torch.float64)
    model = gte.NewModel(config)
    torch.set_default_dtype(torch.float32)
    return model


def make(name, architecture, package, model, params, width, lengths, mask=False):
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    model = model(params).eval().double()
    length = max(lengths)
    ids = torch.randint(4, params["vocab_size"], (len(lengths), length), generator=generator)
    expected = torch.zeros(len(lengths), length, width)
    visible = torch.ones_like(ids, dtype=torch.bool)
    if mask:
        visible = torch.rand(ids.shape, generator=generator) < 0.7
        visible[:, 0] = True
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            norm = any(part in key for part in ("norm", "emb_ln", "LayerNorm", "_ln."))
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
    folder = os.path.join(sys.argv[3], name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": architecture, "params": params, "wrapper": None, "call": {},
                   "compare": "all", "package": package, "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file({key: tensor.float().contiguous() for key, tensor in model.state_dict().items()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + key: tensor.contiguous() for key, tensor in inputs.items()},
               "output.last_hidden_state": expected}, os.path.join(folder, "io.safetensors"))
    print(name)


def make_nomic(name, lengths, mask=False, **params):
    make("nomic-published-" + name, "transformers.NomicBertModel", "nomic-ai/contrastors", nomic_model,
         {**NOMIC, **params}, NOMIC["n_embd"], lengths, mask)


def make_gte(name, lengths, mask=False, **params):
    make("gte-published-" + name, "transformers.GteModel", "Alibaba-NLP/new-impl", gte_model, {**GTE, **params},
         GTE["hidden_size"], lengths, mask)


make_nomic("base", [40, 1, 2, 17, 33, 16])
make_nomic("mask", [24, 24], mask=True)
make_nomic("geglu", [300, 129], activation_function="geglu", vocab_size=60, n_layer=3, rotary_emb_base=300,
           type_vocab_size=1, layer_norm_epsilon=1e-5)
make_gte("base", [40, 1, 2, 17, 33, 16])
make_gte("mask", [24, 24], mask=True, rope_scaling={"type": "ntk", "factor": 2.0}, rope_theta=500000, type_vocab_size=0)
make_gte("scaled", [300, 129, 64], rope_scaling={"type": "ntk", "factor": 8.0}, rope_theta=20000, pad_token_id=1,
         hidden_act="silu", layer_norm_eps=1e-6)
make_gte("apart", [33, 20], pack_qkv=False, num_attention_heads=2, type_vocab_size=3)
