#!/usr/bin/env python3
"""Makes golden cases of JinaBERT, whose authors publish it as code beside the weights.

  python make_jina_bert.py FILE ../goldens

FILE is modeling_jina_bert.py of huggingface/transformers at commit ddbac918c333836f5ff42fe32427ef6d97c1000f, which is
jinaai/jina-bert-v2-qk-post-norm's code. What it computes positions by is that of the older code, too,
jinaai/jina-bert-implementation: a BertModel of transformers whose scores have that added, and where there is a gate,
its JinaBertGLUMLP. Each case is as make.py says.
"""
import ast
import json
import math
import os
import sys
import types
import zlib
from typing import List, Optional, Tuple, Union

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from transformers.activations import ACT2FN
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

torch.set_num_threads(1)
SMALL = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=320, position_embedding_type="alibi")
LATER = dict(SMALL, qk_norm=True)


def published(path):
    """The classes of the file that make rows of tokens; what else it imports is no longer in transformers."""
    names = {"List": List, "Optional": Optional, "Tuple": Tuple, "Union": Union, "ACT2FN": ACT2FN, "nn": nn,
             "torch": torch, "math": math, "JinaBertConfig": object, "scaled_dot_product_attention": None,
             "BaseModelOutputWithPastAndCrossAttentions": BaseModelOutputWithPastAndCrossAttentions}
    wanted = ["Embeddings", "SelfAttention", "SelfOutput", "Attention", "Intermediate", "Output", "MLP", "GLUMLP",
              "Layer", "Encoder", "Pooler"]
    for node in ast.parse(open(path, encoding="utf-8").read()).body:
        if isinstance(node, ast.ClassDef) and node.name in ["JinaBert" + name for name in wanted]:
            exec(compile(ast.Module([node], []), path, "exec"), names)
    return types.SimpleNamespace(**names)


jina = published(sys.argv[1])


class Later(nn.Module):
    def __init__(self, params, pooler):
        super().__init__()
        usual = dict(type_vocab_size=2, layer_norm_eps=1e-12, pad_token_id=0, hidden_act="gelu",
                     hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, is_decoder=False,
                     add_cross_attention=False, chunk_size_feed_forward=0, attn_implementation=None, feed_forward_type="geglu")
        config = types.SimpleNamespace(**{**usual, **params})
        self.embeddings = jina.JinaBertEmbeddings(config)
        self.embeddings.position_embeddings = None
        self.encoder = jina.JinaBertEncoder(config)
        for layer in self.encoder.layer:
            layer.intermediate = layer.output = None  # which are left over there
        self.pooler = jina.JinaBertPooler(config) if pooler else None

    def forward(self, ids, visible, kinds):
        mask = (1 - visible[:, None, None].double()) * -1e30
        rows = self.encoder(self.embeddings(ids, kinds), attention_mask=mask).last_hidden_state
        return rows, self.pooler(rows) if self.pooler else None


class Gate(nn.Module):
    """JinaBertGLUMLP of jina-bert-implementation."""

    def __init__(self, width, inner, activation, eps):
        super().__init__()
        self.activation = activation
        self.gated_layers = nn.Linear(width, 2 * inner, bias=False)
        self.wo = nn.Linear(inner, width)
        self.layernorm = nn.LayerNorm(width, eps=eps)

    def forward(self, _, rows):
        gated, plain = self.gated_layers(rows).chunk(2, -1)
        return self.layernorm(self.wo(self.activation(gated) * plain) + rows)


class Older(nn.Module):
    def __init__(self, params, pooler):
        super().__init__()
        own = ("position_embedding_type", "feed_forward_type", "num_labels", "qk_norm")
        config = transformers.BertConfig(**{name: value for name, value in params.items() if name not in own})
        config._attn_implementation = "eager"
        self.bert = transformers.BertModel(config, add_pooling_layer=pooler)
        self.bert.embeddings.position_embeddings.weight.data.zero_()
        gate = {"geglu": nn.GELU(), "reglu": nn.ReLU()}.get(params.get("feed_forward_type"))
        for layer in self.bert.encoder.layer if gate else []:
            layer.intermediate = nn.Identity()
            layer.output = Gate(config.hidden_size, config.intermediate_size, gate, config.layer_norm_eps)
        self.heads = types.SimpleNamespace(num_attention_heads=config.num_attention_heads)

    def forward(self, ids, visible, kinds):
        alibi = jina.JinaBertEncoder.rebuild_alibi_tensor(self.heads, ids.shape[1]).double()
        mask = alibi + (1 - visible[:, None, None].double()) * -1e30
        result = self.bert(ids, attention_mask=mask, token_type_ids=kinds)
        return result.last_hidden_state, result.pooler_output

    def state_dict(self, *arguments, **options):
        of_gate = isinstance(self.bert.encoder.layer[0].output, Gate)
        named = {}
        for name, tensor in self.bert.state_dict(*arguments, **options).items():
            parts = name.split(".")
            if of_gate and parts[:2] == ["encoder", "layer"] and parts[3] == "output":
                parts[3] = "mlp"
            if "position_embeddings" not in name:
                named[".".join(parts)] = tensor
        return named


def fill(state, generator):
    for key, tensor in state.items():
        norm = "norm" in key.lower()
        scale = 0.2 if norm or tensor.dim() == 1 else 0.7 if "embeddings" in key else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale
                     + (1.0 if norm and key.endswith("weight") else 0.0))


def make(name, params, lengths, mask=False, kinds=False, pooler=False):
    classifies = "num_labels" in params
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    model = (Later if params.get("qk_norm") else Older)(params, pooler or classifies).eval().double()
    head = nn.Linear(params["hidden_size"], params["num_labels"]).double() if classifies else None
    length = max(lengths)
    shape = (len(lengths), length)
    ids = torch.randint(4, params["vocab_size"], shape, generator=generator)
    inputs = {"x": ids}
    visible = torch.ones_like(ids, dtype=torch.bool)
    if mask:
        visible = torch.rand(shape, generator=generator) < 0.7
        visible[:, 0] = True
        inputs["attention_mask"] = visible
    types_of = torch.randint(0, 2, shape, generator=generator) if kinds else torch.zeros_like(ids)
    if kinds:
        inputs["token_type_ids"] = types_of
    outputs = {"last_hidden_state": torch.zeros(*shape, params["hidden_size"])}
    with torch.no_grad():
        state = model.state_dict()
        fill(state, generator)
        if head is not None:
            fill(head.state_dict(), generator)
        alone = [model(ids[i:i + 1, :n], visible[i:i + 1, :n], types_of[i:i + 1, :n]) for i, n in enumerate(lengths)]
        for i, (rows, _) in enumerate(alone):
            outputs["last_hidden_state"][i, :lengths[i]] = rows[0]
        if pooler or classifies:
            pooled = torch.cat([pooled for _, pooled in alone])
            outputs["pooler_output"] = pooled.float()
        if classifies:
            outputs["logits"] = head(pooled).float()
            state = {**{"bert." + key: tensor for key, tensor in state.items()},
                     **{"classifier." + key: tensor for key, tensor in head.state_dict().items()}}
    if len(set(lengths)) > 1:
        inputs["lengths"] = torch.tensor(lengths)
        inputs["x"] = ids * (torch.arange(length)[None] < inputs["lengths"][:, None])
    params = dict(params) if pooler or classifies else dict(params, add_pooling_layer=False)
    folder = os.path.join(sys.argv[2], "jina-bert-" + name)
    os.makedirs(folder, exist_ok=True)
    kind = "JinaBertForSequenceClassification" if classifies else "JinaBertModel"
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "jina_bert." + kind, "params": params, "wrapper": None, "call": {},
                   "compare": "all", "package": "jinaai", "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file({key: tensor.float().contiguous() for key, tensor in state.items()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + key: tensor.contiguous() for key, tensor in inputs.items()},
               **{"output." + key: tensor for key, tensor in outputs.items()}}, os.path.join(folder, "io.safetensors"))
    print(name)


make("geglu", dict(SMALL, feed_forward_type="geglu"), [40, 1, 2, 17, 33, 16], pooler=True)
make("reglu", dict(SMALL, feed_forward_type="reglu", hidden_size=30, num_attention_heads=6, layer_norm_eps=1e-6),
     [24, 24], mask=True, kinds=True)
make("original", dict(SMALL, feed_forward_type="original", hidden_act="gelu_new", num_attention_heads=2), [24, 11],
     kinds=True)
make("long", dict(SMALL, feed_forward_type="geglu", num_attention_heads=8), [300, 129, 128, 64])
make("classifier", dict(SMALL, feed_forward_type="geglu", num_labels=3), [20, 20], mask=True, kinds=True)
make("reranker", dict(SMALL, num_labels=1), [30, 1, 17, 2])
make("later-geglu", dict(LATER, feed_forward_type="geglu"), [40, 1, 2, 17, 33, 16], pooler=True)
make("later-reglu", dict(LATER, feed_forward_type="reglu", hidden_size=36, num_attention_heads=3, num_hidden_layers=3),
     [24, 24], mask=True, kinds=True)
make("later-long", dict(LATER, num_hidden_layers=1), [300, 129, 128, 64])
make("later-classifier", dict(LATER, num_labels=3), [20, 9])
