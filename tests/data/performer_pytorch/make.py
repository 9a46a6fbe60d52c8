#!/usr/bin/env python3
"""Makes golden cases of performer-pytorch 1.1.4 (tests/system/packages/requirements.txt), with random weights.

  python make.py ../goldens
  git clone https://github.com/TencentAILabHealthcare/scBERT && git -C scBERT checkout 262fd4b
  python make.py ../goldens scBERT

The second form makes those of scBERT's own copy of the package, whose largest key is that of all heads. Each case is a folder: config.json, model.safetensors (the state_dict), io.safetensors (input.*, output.*). A ragged
case has input.lengths: rows past them are zeros, and what is expected is that of each sequence alone. Expected rows
are computed in F64.
"""
import json
import os
import sys
import zlib

import numpy
import torch
from safetensors.torch import save_file

OF_SCBERT = len(sys.argv) > 2
if OF_SCBERT:
    sys.path.insert(0, sys.argv[2])
import performer_pytorch  # noqa: E402

torch.set_num_threads(1)
STACK = dict(dim=24, depth=2, heads=3, dim_head=8)
MODEL = dict(STACK, num_tokens=30, max_seq_len=40)
CASES = []


def case(name, kind, params, length=21, batch=2, lengths=None, mask=False, context=0, encodings=False, whole=False):
    """context: rows of it; with a mask, it has one, too. whole: under all names that the state_dict has."""
    CASES.append(dict(name="performer-" + name, kind=kind, params=params, length=length, batch=batch, lengths=lengths,
                      mask=mask, context=context, encodings=encodings, whole=whole))


def stack(name, more=None, **about):
    case(name, "Performer", dict(STACK, **(more or {})), **about)


def model(name, more=None, **about):
    case("lm-" + name, "PerformerLM", dict(MODEL, **(more or {})), **about)


LOCAL = dict(local_attn_heads=1, local_window_size=8)
RAGGED = dict(length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16])
stack("base")
stack("ragged", **RAGGED)
stack("long", dict(dim_head=32), length=300, batch=2, lengths=[300, 129])
stack("scalenorm", dict(use_scalenorm=True, nb_features=5, dim_head=None, qkv_bias=False, attn_out_bias=False), mask=True)
stack("rezero-glu", dict(use_rezero=True, ff_glu=True, ff_mult=2, shift_tokens=True), mask=True)
stack("generalized", dict(generalized_attention=True, reversible=True, ff_chunks=3, dim_head=10))
stack("no-projection", dict(no_projection=True, generalized_attention=True), mask=True)
stack("causal", dict(causal=True, nb_features=11), mask=True)
stack("causal-long", dict(causal=True, depth=1), length=300, batch=2, lengths=[300, 100])
stack("causal-generalized", dict(LOCAL, causal=True, generalized_attention=True, shift_tokens=True, reversible=True))
stack("causal-no-projection", dict(causal=True, no_projection=True, qkv_bias=False))
stack("local", LOCAL)
stack("local-ragged", dict(LOCAL, local_attn_heads=[1, 3], shift_tokens=True), **RAGGED)
stack("local-mask", dict(LOCAL, local_attn_heads=2), mask=True, length=24)
stack("local-odd-mask", dict(LOCAL, local_attn_heads=2), mask=True)
stack("local-only-causal", dict(LOCAL, local_attn_heads=3, causal=True))
stack("context", dict(cross_attend=True, shift_tokens=True), context=9)
stack("context-masks", dict(cross_attend=True, reversible=True, causal=True, generalized_attention=True), context=13,
      mask=True)
stack("context-no-projection", dict(cross_attend=True, no_projection=True, use_rezero=True), context=9, mask=True)
model("base")
model("ragged", dict(LOCAL), **RAGGED)
model("names", dict(tie_embed=True, reversible=True, qkv_bias=True, attn_out_bias=True), whole=True)
model("axial", dict(rotary_position_emb=False, axial_position_emb=True, tie_embed=True, max_seq_len=70), length=70)
model("axial-shape", dict(rotary_position_emb=False, axial_position_emb=True, axial_position_shape=[3, 4, 5]), mask=True)
model("learned", dict(rotary_position_emb=False, causal=True, generalized_attention=True, ff_glu=True))
model("rotary-causal", dict(LOCAL, causal=True, reversible=True, shift_tokens=True, use_scalenorm=True))
model("encodings", dict(no_projection=True, causal=True), encodings=True, mask=True)
model("decoder", dict(cross_attend=True, causal=True, no_projection=True), context=9, mask=True)


if OF_SCBERT:  # its largest key is that of a batch: each sequence is computed alone
    CASES.clear()
    model("scbert", dict(g2v_position_emb=True), length=40, lengths=[40, 40], batch=2)
    model("scbert-ragged", dict(LOCAL, g2v_position_emb=True, tie_embed=True, qkv_bias=True), **RAGGED)
    model("scbert-long", dict(g2v_position_emb=True, dim_head=32, max_seq_len=300, depth=1), length=300, batch=2,
          lengths=[300, 129])
    model("scbert-no-positions", dict(g2v_position_emb=False, generalized_attention=True, use_scalenorm=True), length=17,
          batch=1, encodings=True, mask=True)
    model("scbert-mask", dict(g2v_position_emb=True, use_rezero=True, ff_glu=True), length=17, batch=1, mask=True)


def set_weights(module, generator):
    """Random weights of which nothing can be left out unnoticed: biases, norms and factors, too."""
    for name, tensor in module.named_parameters():
        factor = name.endswith(".g") or ("norm" in name and name.endswith("weight"))
        scale = 0.2 if factor else 0.7 if "emb" in name else 0.3 if tensor.dim() == 1 else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if factor else 0.0))


def random_mask(batch, length, generator):
    mask = torch.rand(batch, length, generator=generator) < 0.7
    mask[:, 0] = True
    return mask


def inputs_of(case, generator):
    batch, length, params = case["batch"], case["length"], case["params"]
    if case["kind"] == "Performer":
        inputs = {"x": torch.randn(batch, length, params["dim"], generator=generator)}
    else:
        inputs = {"x": torch.randint(1, params["num_tokens"], (batch, length), generator=generator)}
    if case["mask"]:
        inputs["mask"] = random_mask(batch, length, generator)
    if case["context"]:
        inputs["context"] = torch.randn(batch, case["context"], params["dim"], generator=generator)
        if case["mask"]:
            inputs["context_mask"] = random_mask(batch, case["context"], generator)
    return inputs


def forward(module, inputs, **options):
    """Each sequence alone: the package's own largest key is that of a sequence, but of all its padding, too."""
    inputs = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    # The package masks its values in place.
    return module(inputs.pop("x").clone(), **{name: tensor.clone() for name, tensor in inputs.items()}, **options)


def outputs_of(case, module, inputs):
    options = [{"y": {}}, {"embeddings": dict(return_encodings=True), "y": dict(return_encodings=case["encodings"])}]
    outputs = {}
    for name, given in options[case["kind"] == "PerformerLM"].items():
        if case["lengths"] is None:
            outputs[name] = forward(module, inputs, **given)
            continue
        alone = [forward(module, {"x": inputs["x"][i:i + 1, :n]}, **given) for i, n in enumerate(case["lengths"])]
        rows = torch.zeros(*inputs["x"].shape[:2], alone[0].shape[-1], dtype=torch.float64)
        for i, (one, n) in enumerate(zip(alone, case["lengths"])):
            rows[i, :n] = one[0]
        outputs[name] = rows
    return {name: tensor.float().contiguous() for name, tensor in outputs.items()}


def state_of(case, module):
    state = {}
    for name, tensor in module.state_dict().items():
        if case["whole"] or "proj_updater" not in name:
            state[name] = tensor.float().clone() if tensor.is_floating_point() else tensor.clone()
    return state


def make(case, root):
    seed = zlib.crc32(case["name"].encode())
    torch.manual_seed(seed)  # of the projections
    generator = torch.Generator().manual_seed(seed)
    arguments = {name: tuple(value) if isinstance(value, list) else value for name, value in case["params"].items()}
    # scBERT's code reads its table of genes when it is made, and adds a row.
    numpy.load = lambda path: numpy.zeros((arguments["max_seq_len"] - 1, arguments["dim"]))
    module = getattr(performer_pytorch, case["kind"])(**arguments).eval()
    with torch.no_grad():
        set_weights(module, generator)
        inputs = inputs_of(case, generator)
        state = state_of(case, module)
        expected = outputs_of(case, module.double(), inputs)
    if case["lengths"] is not None:
        inputs["lengths"] = torch.tensor(case["lengths"])
        inside = torch.arange(case["length"])[None] < inputs["lengths"][:, None]
        inputs["x"] *= inside if inputs["x"].dim() == 2 else inside[..., None]
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "performer_pytorch." + case["kind"], "params": case["params"],
                   "wrapper": None, "call": {"return_encodings": True} if case["encodings"] else {}, "compare": "all",
                   "package": "TencentAILabHealthcare/scBERT 262fd4b" if OF_SCBERT else "performer-pytorch==1.1.4", "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file(state, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               **{"output." + name: tensor for name, tensor in expected.items()}},
              os.path.join(folder, "io.safetensors"))


for one in CASES:
    make(one, sys.argv[1])
    print(one["name"])
