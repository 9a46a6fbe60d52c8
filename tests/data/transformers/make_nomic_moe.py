#!/usr/bin/env python3
"""Makes golden cases of NomicBert with experts (nomic-embed-text-v2-moe), with random weights and the names of the
published files. The encoder is NomicBertModel of transformers 5.24.0, whose layers here have the biases and the
feed-forwards of its authors' code: github.com/nomic-ai/contrastors 613ddfd, layers/moe.py and layers/mlp.py.

  python make_nomic_moe.py ../goldens
"""
import json
import sys
import zlib
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

SIZES = dict(vocab_size=64, n_embd=32, n_head=4, n_inner=48, n_layer=4, n_positions=60, type_vocab_size=1,
             activation_function="gelu", layer_norm_epsilon=1e-5, rotary_emb_base=10000, qkv_proj_bias=True,
             mlp_fc1_bias=True, mlp_fc2_bias=True, num_experts=8, moe_top_k=2, moe_every_n_layers=2)
# Each case has: what differs, the length, the lengths, and whether there is a mask.
CASES = {
    "nomic-moe-base": ({}, 30, None, False),
    "nomic-moe-mask": (dict(num_experts=5, moe_top_k=1), 24, None, True),
    "nomic-moe-ragged": (dict(num_experts=4, moe_top_k=3, moe_every_n_layers=3), 40, [40, 1, 2, 17, 33, 16], False),
    "nomic-moe-long": (dict(n_positions=300), 300, [300, 129, 128, 64], False),
    "nomic-moe-unbiased": (dict(qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False), 12, None, False),
}


class FeedForward(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.fc1 = nn.Linear(sizes["n_embd"], sizes["n_inner"], bias=sizes["mlp_fc1_bias"])
        self.fc2 = nn.Linear(sizes["n_inner"], sizes["n_embd"], bias=sizes["mlp_fc2_bias"])

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class Experts(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        shape = (sizes["num_experts"] * sizes["n_inner"], sizes["n_embd"])
        self.router = nn.ModuleDict({"layer": nn.Linear(sizes["n_embd"], sizes["num_experts"], bias=False)})
        self.experts = nn.ParameterDict({"bias": torch.zeros(sizes["n_embd"])})
        self.experts.mlp = nn.ParameterDict({"w1": torch.empty(shape), "w2": torch.empty(shape)})

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(functional.softmax(self.router["layer"](rows), dim=-1), self.sizes["moe_top_k"])
        parts = [self.experts.mlp[name].chunk(self.sizes["num_experts"]) for name in ("w1", "w2")]
        results = torch.zeros_like(rows)
        for i, (w1, w2) in enumerate(zip(*parts)):
            which, place = torch.where(chosen == i)
            results[which] += weights[which, place, None] * (functional.gelu(rows[which] @ w1.T) @ w2)
        return (results + self.experts["bias"]).reshape(x.shape)


def model_of(sizes):
    config = transformers.NomicBertConfig(
        vocab_size=sizes["vocab_size"], hidden_size=sizes["n_embd"], num_attention_heads=sizes["n_head"],
        intermediate_size=sizes["n_inner"], num_hidden_layers=sizes["n_layer"], type_vocab_size=1,
        max_position_embeddings=sizes["n_positions"], layer_norm_eps=sizes["layer_norm_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": float(sizes["rotary_emb_base"])})
    config._attn_implementation = "eager"
    model = transformers.NomicBertModel(config, add_pooling_layer=False).eval()
    for i, layer in enumerate(model.layers):
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, nn.Linear(sizes["n_embd"], sizes["n_embd"], bias=sizes["qkv_proj_bias"]))
        layer.mlp = Experts(sizes) if i % sizes["moe_every_n_layers"] == 1 else FeedForward(sizes)
    return model


def published(state):
    """The names of nomic-ai/nomic-embed-text-v2-moe."""
    names = {"embeddings.LayerNorm.": "emb_ln.", "layers.": "encoder.layers.", "self_attn.o_proj.": "attn.out_proj.",
             "post_attention_layernorm.": "norm1.", "post_mlp_layernorm.": "norm2."}
    renamed = {}
    for name, tensor in state.items():
        for part in ("k_proj", "v_proj"):
            if f"self_attn.{part}." in name:
                break
        else:
            if "self_attn.q_proj." in name:
                tensor = torch.cat([state[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")])
                name = name.replace("self_attn.q_proj.", "attn.Wqkv.")
            for ours, theirs in names.items():
                name = name.replace(ours, theirs)
            renamed[name] = tensor.float().contiguous()
    return renamed


def make(name, root):
    changes, length, lengths, masked = CASES[name]
    sizes = SIZES | changes
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    model = model_of(sizes)
    with torch.no_grad():
        for tensor_name, tensor in model.named_parameters():
            tensor.normal_(generator=generator)
            tensor.mul_(0.3 if tensor.dim() < 2 else tensor.shape[-1] ** -0.5)
            if "orm.weight" in tensor_name or "norm.weight" in tensor_name:
                tensor.add_(1)
            if "router" in tensor_name:
                tensor.mul_(3)
        model.double()
        ids = torch.randint(sizes["vocab_size"], (len(lengths or range(2)), length), generator=generator)
        inputs = {"x": ids}
        if masked:
            inputs["attention_mask"] = torch.rand(ids.shape, generator=generator) < 0.7
            inputs["attention_mask"][:, 0] = True
        if lengths:
            rows = torch.zeros(*ids.shape, sizes["n_embd"], dtype=torch.float64)
            for i, n in enumerate(lengths):
                rows[i, :n] = model(input_ids=ids[i:i + 1, :n]).last_hidden_state[0]
            inputs["lengths"] = torch.tensor(lengths)
            inputs["x"] = ids * (torch.arange(length)[None] < inputs["lengths"][:, None])
        else:
            rows = model(input_ids=ids, attention_mask=inputs.get("attention_mask")).last_hidden_state
    folder = Path(root, name)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(
        {"schema": 1, "architecture": "transformers.NomicBertModel", "params": sizes, "wrapper": None, "call": {},
         "compare": "all", "package": "transformers==5.24.0, contrastors 613ddfd", "tolerance": 1e-5}, indent=1) + "\n")
    save_file(published(model.state_dict()), folder / "model.safetensors", {"format": "pt"})
    save_file({**{"input." + key: tensor.contiguous() for key, tensor in inputs.items()},
               "output.last_hidden_state": rows.float().contiguous()}, folder / "io.safetensors")


for each in CASES:
    make(each, sys.argv[1])
    print(each)
