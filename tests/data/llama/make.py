#!/usr/bin/env python3
"""Makes golden cases of Llama's kin in transformers 5.24.0 (../transformers/requirements.txt), with random weights.

  python make.py ../goldens [NAME]

Each case is a folder: config.json, model.safetensors (the state_dict), io.safetensors (input.*, output.*). A ragged
case has input.lengths: rows past them are zeros, and what is expected is that of each sequence alone.
"""
import copy
import json
import os
import sys
import zlib

import torch
import transformers
from safetensors.torch import save_file

torch.set_num_threads(1)
SMALL = dict(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=40, max_position_embeddings=64)
GEMMA = dict(SMALL, head_dim=8, use_bidirectional_attention=True, query_pre_attn_scalar=12, sliding_window=8,
             layer_types=["sliding_attention", "full_attention"])
RAGGED = [40, 1, 2, 17, 33, 16]
LONG = [300, 129, 64]
CASES = []


def case(name, architecture, params, lengths=(24, 24), mask=0, pads=False, blind=False, answers=None):
    """`mask` hides tokens, but for every so many, of which the first is one; `pads` has pad tokens in the texts. `blind`
    hides all that some rows see, of which scaled_dot_product_attention makes zeros. A score is the logit of the first
    of `answers` less that of the second, if there is one."""
    CASES.append(dict(name=name, architecture=architecture, params=params, lengths=list(lengths), mask=mask, pads=pads,
                      blind=blind, answers=answers))


def by_type(full, sliding):
    return {"full_attention": full, "sliding_attention": sliding}


def names_of(count):
    return {str(i): f"class {i}" for i in range(count)}


QWEN3 = dict(SMALL, head_dim=12)
case("qwen3-base", "Qwen3Model", dict(QWEN3, rope_theta=1000000))
case("qwen3-ragged", "Qwen3Model", dict(QWEN3, num_key_value_heads=4), RAGGED)
case("qwen3-mask", "Qwen3Model", dict(QWEN3, num_key_value_heads=1), mask=5)
case("qwen3-window", "Qwen3Model", dict(QWEN3, num_hidden_layers=3, use_sliding_window=True, sliding_window=6,
                                        max_window_layers=1), RAGGED)
case("qwen3-types", "Qwen3Model",
     dict(QWEN3, use_sliding_window=True, sliding_window=5, layer_types=["sliding_attention", "full_attention"],
          rope_parameters={"rope_type": "default", "rope_theta": 500.0}), mask=4)
case("qwen3-odd", "Qwen3Model", dict(SMALL, hidden_size=30, num_attention_heads=3, num_key_value_heads=1, head_dim=14,
                                     intermediate_size=37, vocab_size=41, hidden_act="gelu", rms_norm_eps=1e-3), [23, 9])
case("qwen3-biased", "Qwen3Model", dict(QWEN3, attention_bias=True, hidden_act="gelu_new", num_key_value_heads=None),
     [33, 20])
case("qwen3-yarn", "Qwen3Model",
     dict(QWEN3, head_dim=16, max_position_embeddings=256, rope_theta=1000,
          rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}), [200, 50])
case("qwen3-bidirectional", "Qwen3Model", dict(QWEN3, is_causal=False, use_sliding_window=True, sliding_window=7,
                                               max_window_layers=1), RAGGED)
case("qwen3-long", "Qwen3Model", dict(QWEN3, max_position_embeddings=300, use_sliding_window=True, sliding_window=100,
                                      max_window_layers=1), LONG)
case("qwen2-base", "Qwen2Model", SMALL)
case("qwen2-ragged", "Qwen2Model", dict(SMALL, num_key_value_heads=1, rope_theta=1000000), RAGGED)
case("qwen2-window", "Qwen2Model", dict(SMALL, num_key_value_heads=4, use_sliding_window=True, sliding_window=9,
                                        layer_types=["full_attention", "sliding_attention"]), RAGGED)
case("llama-base", "LlamaModel", dict(SMALL, num_key_value_heads=4))
case("llama-mask", "LlamaModel", dict(SMALL, head_dim=8), mask=5)
case("llama-scaled", "LlamaModel",
     dict(SMALL, num_attention_heads=2, max_position_embeddings=256, rope_theta=10000.0, num_key_value_heads=None,
          rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                        "original_max_position_embeddings": 32}), [200, 31])
case("llama-linear", "LlamaModel", dict(SMALL, num_key_value_heads=1, rope_scaling={"type": "linear", "factor": 2.5}),
     RAGGED)
case("llama-dynamic", "LlamaModel",
     dict(SMALL, rope_parameters={"rope_type": "dynamic", "factor": 3.0, "rope_theta": 700.0}), [64, 20])
case("llama-biased", "LlamaModel", dict(SMALL, attention_bias=True, mlp_bias=True, hidden_act="relu"), [30, 13])
case("llama-yarn", "LlamaModel",
     dict(SMALL, head_dim=16, max_position_embeddings=128,
          rope_parameters={"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 48, "beta_fast": 8,
                           "beta_slow": 0.5, "mscale": 1.2, "mscale_all_dim": 0.7, "truncate": False,
                           "rope_theta": 200.0}), [120, 40])
case("llama-long", "LlamaModel", dict(SMALL, max_position_embeddings=300), LONG)
case("mistral-base", "MistralModel", dict(SMALL, sliding_window=None, head_dim=10))
case("mistral-window", "MistralModel", dict(SMALL, num_key_value_heads=1, sliding_window=7), RAGGED)
case("mistral-mask", "MistralModel", dict(SMALL, sliding_window=5), mask=5)
case("mistral-long", "MistralModel", dict(SMALL, num_key_value_heads=4, max_position_embeddings=300,
                                          sliding_window=140), LONG)
case("gemma3-base", "Gemma3TextModel", GEMMA)
case("gemma3-ragged", "Gemma3TextModel", dict(GEMMA, num_key_value_heads=1, sliding_window=7, rope_theta=500000.0,
                                              rope_local_base_freq=300.0), RAGGED)
case("gemma3-mask", "Gemma3TextModel", dict(GEMMA, num_key_value_heads=4, sliding_window=10), mask=4)
case("gemma3-causal", "Gemma3TextModel", dict(GEMMA, use_bidirectional_attention=False, sliding_window=6), RAGGED)
case("gemma3-pattern", "Gemma3TextModel",
     {key: value for key, value in GEMMA.items() if key != "layer_types"} |
     dict(num_hidden_layers=3, sliding_window_pattern=3, attention_bias=True, hidden_activation="gelu"), [29, 12])
case("gemma3-scaled", "Gemma3TextModel",
     dict(GEMMA, rope_parameters=by_type({"rope_type": "linear", "factor": 8.0, "rope_theta": 1000.0},
                                         {"rope_type": "default", "rope_theta": 100.0})), RAGGED)
case("gemma3-long", "Gemma3TextModel", dict(GEMMA, max_position_embeddings=300, sliding_window=100), LONG)
GEMMA1 = dict(SMALL, head_dim=8)
case("gemma-base", "GemmaModel", dict(GEMMA1, num_key_value_heads=1, rope_theta=500.0))
case("gemma-ragged", "GemmaModel", dict(GEMMA1, hidden_act="gelu"), RAGGED)
case("gemma-mask", "GemmaModel", dict(GEMMA1, num_key_value_heads=4, attention_bias=True), mask=5)
case("gemma-bidirectional", "GemmaModel", dict(GEMMA1, is_causal=False, use_bidirectional_attention=True), RAGGED)
case("gemma-long", "GemmaModel", dict(GEMMA1, max_position_embeddings=300), LONG)
# Random scores are small: caps so low bend them as 50 bends those of a trained model.
GEMMA2 = dict(SMALL, head_dim=8, query_pre_attn_scalar=2, sliding_window=6, attn_logit_softcapping=1.5)
case("gemma2-base", "Gemma2Model", GEMMA2)
case("gemma2-ragged", "Gemma2Model", dict(GEMMA2, num_key_value_heads=1, num_hidden_layers=3, rope_theta=300.0), RAGGED)
case("gemma2-mask", "Gemma2Model", dict(GEMMA2, num_key_value_heads=4, attention_bias=True), mask=5)
case("gemma2-types", "Gemma2Model",
     dict(GEMMA2, layer_types=["full_attention", "sliding_attention"], hidden_activation="gelu",
          rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 700.0}), RAGGED)
case("gemma2-uncapped", "Gemma2Model", dict(GEMMA2, attn_logit_softcapping=None), [29, 12])
case("gemma2-usual-cap", "Gemma2Model",
     {key: value for key, value in GEMMA2.items() if key != "attn_logit_softcapping"} |
     dict(query_pre_attn_scalar=1), RAGGED)
case("gemma2-bidirectional", "Gemma2Model", dict(GEMMA2, is_causal=False), RAGGED)
case("gemma2-long", "Gemma2Model", dict(GEMMA2, max_position_embeddings=300, sliding_window=100), LONG)
case("llama-blind", "LlamaModel", SMALL, mask=7, blind=True)
case("mistral-blind", "MistralModel", dict(SMALL, sliding_window=3), mask=7, blind=True)
case("qwen3-blind", "Qwen3Model", dict(QWEN3, is_causal=False, use_sliding_window=True, sliding_window=2,
                                       max_window_layers=1), mask=9, blind=True)
case("gemma3-blind", "Gemma3TextModel", dict(GEMMA, sliding_window=5), mask=9, blind=True)
PHI3 = dict(SMALL, pad_token_id=0)
SHORT = [1.0, 1.1, 1.3, 1.7]
case("phi3-base", "Phi3Model", PHI3)
case("phi3-ragged", "Phi3Model", dict(PHI3, num_key_value_heads=None, rope_theta=300.0, sliding_window=7), RAGGED)
case("phi3-mask", "Phi3Model", dict(PHI3, num_key_value_heads=1, hidden_act="gelu"), mask=5)
case("phi3-share", "Phi3Model", dict(PHI3, hidden_size=40, partial_rotary_factor=0.8), RAGGED)
case("phi3-long-positions", "Phi3Model",
     dict(PHI3, hidden_size=40, partial_rotary_factor=0.8, original_max_position_embeddings=48, max_position_embeddings=480,
          rope_scaling={"type": "longrope", "short_factor": SHORT, "long_factor": [9.0, 9.0, 9.0, 9.0]}), RAGGED)
case("phi3-long", "Phi3Model", dict(PHI3, max_position_embeddings=300), LONG)
case("llama-long-positions", "LlamaModel",
     dict(SMALL, head_dim=8, rope_parameters={
         "rope_type": "longrope", "short_factor": SHORT, "long_factor": SHORT[::-1], "factor": 3.0,
         "original_max_position_embeddings": 50, "rope_theta": 700.0, "attention_factor": 1.2}), RAGGED)
GRANITE = dict(SMALL, embedding_multiplier=3.5, residual_multiplier=0.4, attention_multiplier=0.25, logits_scaling=6.0)
case("granite-base", "GraniteModel", GRANITE)
case("granite-ragged", "GraniteModel", dict(GRANITE, num_key_value_heads=None, rope_theta=100.0), RAGGED)
case("granite-mask", "GraniteModel", dict(GRANITE, attention_bias=True, mlp_bias=True), mask=5)
case("granite-unsaid", "GraniteModel", SMALL, [20, 7])
SMOL = dict(SMALL, num_hidden_layers=4, pad_token_id=0)
case("smollm3-base", "SmolLM3Model", SMOL)
case("smollm3-ragged", "SmolLM3Model", dict(SMOL, num_hidden_layers=3, no_rope_layer_interval=2, use_sliding_window=True,
                                            sliding_window=6), RAGGED)
case("smollm3-mask", "SmolLM3Model", dict(SMOL, num_hidden_layers=2, no_rope_layers=[0, 1], attention_bias=True,
                                          mlp_bias=True), mask=5)
case("smollm3-types", "SmolLM3Model", dict(SMOL, num_hidden_layers=2, no_rope_layers=[1, 1, 0], sliding_window=5,
                                           layer_types=["sliding_attention", "full_attention"]), RAGGED)
case("olmo2-base", "Olmo2Model", SMALL)
case("olmo2-ragged", "Olmo2Model", dict(SMALL, num_key_value_heads=1, rope_theta=500000.0), RAGGED)
case("olmo2-mask", "Olmo2Model", dict(SMALL, num_key_value_heads=None, attention_bias=True, rms_norm_eps=1e-3), mask=5)
case("olmo2-long", "Olmo2Model", dict(SMALL, max_position_embeddings=300), LONG)
MINISTRAL = dict(SMALL, head_dim=8, sliding_window=6)
case("ministral-base", "MinistralModel", MINISTRAL)
case("ministral-types", "MinistralModel", dict(MINISTRAL, layer_types=["full_attention", "sliding_attention"],
                                               rope_theta=400.0), RAGGED)
case("ministral-mask", "MinistralModel", dict(MINISTRAL, num_key_value_heads=1), mask=5)
MIXED = ["conv", "full_attention", "conv"]
LFM2 = dict(SMALL, num_hidden_layers=3, layer_types=MIXED, block_multiple_of=8)
case("lfm2-base", "Lfm2Model", LFM2)
case("lfm2-ragged", "Lfm2Model", dict(LFM2, conv_L_cache=4, num_key_value_heads=1, rope_theta=500.0), RAGGED)
case("lfm2-mask", "Lfm2Model", dict(LFM2, conv_bias=True), mask=5)
case("lfm2-indices", "Lfm2Model",
     {key: value for key, value in LFM2.items() if key != "layer_types"} |
     dict(full_attn_idxs=[0, 2, 7], block_ff_dim=50, block_ffn_dim_multiplier=1.3, norm_eps=1e-3), RAGGED)
case("lfm2-unadjusted", "Lfm2Model", dict(LFM2, block_auto_adjust_ff_dim=False, conv_L_cache=1, is_causal=False), RAGGED)
case("lfm2-long", "Lfm2Model", dict(LFM2, max_position_embeddings=300, conv_L_cache=5), LONG)
EURO = dict(SMALL, pad_token_id=0)
case("eurobert-base", "EuroBertModel", dict(EURO, num_key_value_heads=None, rope_theta=250000))
case("eurobert-ragged", "EuroBertModel", dict(EURO, num_key_value_heads=1), RAGGED)
case("eurobert-mask", "EuroBertModel", EURO, mask=24)
case("eurobert-biased", "EuroBertModel", dict(EURO, attention_bias=True, mlp_bias=True, head_dim=10, rms_norm_eps=1e-6),
     [30, 13])
case("eurobert-long", "EuroBertModel", dict(EURO, max_position_embeddings=300), LONG)

for short, architecture, params in (("qwen3", "Qwen3", QWEN3), ("qwen2", "Qwen2", SMALL), ("llama", "Llama", SMALL),
                                    ("mistral", "Mistral", dict(SMALL, sliding_window=8)),
                                    ("gemma", "Gemma", GEMMA1), ("gemma2", "Gemma2", GEMMA2),
                                    ("phi3", "Phi3", PHI3), ("smollm3", "SmolLM3", SMOL), ("olmo2", "Olmo2", SMALL),
                                    ("ministral", "Ministral", MINISTRAL),
                                    ("gemma3", "Gemma3Text", dict(GEMMA, use_bidirectional_attention=False))):
    kind = architecture + "ForSequenceClassification"
    case(short + "-reranker", kind, dict(params, num_labels=1, pad_token_id=0), RAGGED, pads=True)
case("qwen3-classifier", "Qwen3ForSequenceClassification", dict(QWEN3, id2label=names_of(3), pad_token_id=0), mask=5,
     pads=True)
case("llama-classifier", "LlamaForSequenceClassification", dict(SMALL, id2label=names_of(7)), [24])
case("gemma-answering", "GemmaForCausalLM", GEMMA1, RAGGED, answers=(7, 30))
case("gemma2-answering", "Gemma2ForCausalLM", dict(GEMMA2, final_logit_softcapping=1.5), RAGGED, answers=(7, 30))
case("gemma2-one-answer", "Gemma2ForCausalLM", GEMMA2, RAGGED, answers=(5,))
case("granite-answering", "GraniteForCausalLM", GRANITE, RAGGED, answers=(7, 30))
case("olmo2-answering", "Olmo2ForCausalLM", SMALL, RAGGED, answers=(7, 30))
case("lfm2-answering", "Lfm2ForCausalLM", dict(LFM2, num_hidden_layers=2, layer_types=MIXED[:2]), RAGGED,
     answers=(7, 30))
classifier = "EuroBertForSequenceClassification"
case("eurobert-reranker", classifier, dict(EURO, num_labels=1), RAGGED)
case("eurobert-classifier-mean", classifier, dict(EURO, num_labels=7, classifier_pooling="mean"), mask=24)
case("eurobert-classifier-bos", classifier, dict(EURO, id2label=names_of(3), classifier_pooling="bos"), RAGGED)
case("eurobert-classifier-late", classifier, dict(EURO, id2label=names_of(5), classifier_pooling="late"), mask=24)


def weights(model, generator):
    """Random weights of which nothing can be left out unnoticed: biases and norms, too."""
    gemma = "Gemma" in type(model).__name__  # whose weights of norms lack one
    for name, tensor in model.state_dict().items():
        norm = "norm" in name and name.endswith("weight")
        scale = 0.2 if tensor.dim() == 1 else 0.7 if "embed" in name else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if norm and not gemma else 0.0))


def inputs_of(case, vocabulary, generator):
    shape = (len(case["lengths"]), max(case["lengths"]))
    ids = torch.randint(4, vocabulary, shape, generator=generator)
    if case["pads"]:
        for i, n in enumerate(case["lengths"]):
            ids[i, max(0, n - i):n] = 0
            ids[i, n // 2] = 0
    inputs = {"x": ids}
    if case["mask"]:
        mask = torch.rand(shape, generator=generator) < 0.6
        mask[:, ::case["mask"]] = True
        if case["blind"]:
            mask = torch.zeros(shape, dtype=torch.bool)
            mask[:, 2::case["mask"]] = True
        inputs["attention_mask"] = mask
    return inputs


def forward(model, inputs, answers):
    ids = inputs["x"]
    mask = inputs.get("attention_mask", torch.ones_like(ids)).long()
    rows = model.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    if model is model.base_model:
        return {"last_hidden_state": rows}
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    if answers is not None:
        logits = logits[:, -1, answers]
        logits = logits[:, :1] - logits[:, 1:].sum(1, keepdim=True)
    return {"logits": logits, "last_hidden_state": rows}


def outputs_of(case, model, inputs):
    alone = [forward(model, {name: tensor[i:i + 1, :n] for name, tensor in inputs.items()}, case["answers"])
             for i, n in enumerate(case["lengths"])]
    rows = torch.zeros(*inputs["x"].shape, alone[0]["last_hidden_state"].shape[-1], dtype=torch.float64)
    for i, (one, n) in enumerate(zip(alone, case["lengths"])):
        rows[i, :n] = one["last_hidden_state"][0]
    outputs = {"last_hidden_state": rows}
    if "logits" in alone[0]:
        outputs["logits"] = torch.cat([one["logits"] for one in alone])
    return {name: tensor.float().contiguous() for name, tensor in outputs.items()}


def make(case, root):
    generator = torch.Generator().manual_seed(zlib.crc32(case["name"].encode()))
    kind = getattr(transformers, case["architecture"])
    config = kind.config_class(**copy.deepcopy(case["params"]))
    config._attn_implementation = "sdpa" if case["blind"] else "eager"
    model = kind(config).eval()
    with torch.no_grad():
        weights(model, generator)
        inputs = inputs_of(case, config.vocab_size, generator)
        expected = outputs_of(case, model.double(), inputs)
    if len(set(case["lengths"])) > 1:
        inputs["lengths"] = torch.tensor(case["lengths"])
        inputs["x"] *= torch.arange(inputs["x"].shape[1])[None] < inputs["lengths"][:, None]
    answers = dict(zip(("true_token_id", "false_token_id"), case["answers"] or ()))
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "transformers." + case["architecture"], "params": case["params"] | answers,
                   "wrapper": None, "call": {}, "compare": "all",
                   "package": "transformers==" + transformers.__version__, "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.float() for name, tensor in model.state_dict().items()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               **{"output." + name: tensor for name, tensor in expected.items()}},
              os.path.join(folder, "io.safetensors"))


for one in CASES:
    if one["name"].startswith(sys.argv[2] if len(sys.argv) > 2 else ""):
        make(one, sys.argv[1])
        print(one["name"])
