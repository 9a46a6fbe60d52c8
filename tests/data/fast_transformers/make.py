#!/usr/bin/env python3
"""Makes golden cases of idiap/fast-transformers (a clone of its commit 2ad36b9), with random weights.

  python make.py CLONE ../goldens [NAME…]

Nothing of the clone is compiled: its extensions' products are computed by their formulas, in float64. Each case is a
folder: config.json, model.safetensors (the state_dict), io.safetensors (input.*, output.*). A ragged case has
input.lengths: rows past them are zeros, and what is expected is that of each sequence alone.
"""
import json
import os
import sys
import types
import zlib

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)


def causal_dot_product(q, k, v, product):
    product.copy_(torch.tril(q @ k.transpose(-1, -2)) @ v)


def local_slots(length, keys, context):
    """Which key stands in each slot of a query, and whether there is one."""
    places = torch.arange(length)[:, None] - context // 2 + torch.arange(context)
    return places.clamp(0, keys - 1), (places >= 0) & (places < keys)


def local_dot_product(q, k, mask, lengths, context):
    places, there = local_slots(q.shape[2], k.shape[2], context)
    dots = torch.einsum("nhle,nhlse->nhls", q, k[:, :, places])
    dots = dots + mask.to(q).gather(1, places.clamp(max=mask.shape[1] - 1))
    there = there[None] & (places[None] < lengths[:, None, None])
    return dots.masked_fill(~there[:, None], -1e24)


def local_weighted_average(weights, v):
    places, there = local_slots(weights.shape[2], v.shape[2], weights.shape[3])
    return torch.einsum("nhls,nhlse->nhle", weights * there, v[:, :, places])


def import_package(clone):
    def extension(name, **functions):
        module = types.ModuleType(name)
        module.__getattr__ = lambda attribute: functions.get(attribute, None)
        sys.modules["fast_transformers." + name] = module

    extension("causal_product.causal_product_cpu", causal_dot_product=causal_dot_product)
    extension("local_product.local_product_cpu", local_dot_product=local_dot_product,
              local_weighted_average=local_weighted_average)
    for name in ("aggregate.aggregate_cpu", "hashing.hash_cpu", "clustering.hamming.cluster_cpu",
                 "sparse_product.sparse_product_cpu", "sparse_product.clustered_sparse_product_cpu"):
        extension(name)
    sys.path.insert(0, clone)


ENCODER = dict(n_layers=2, n_heads=4, query_dimensions=8, value_dimensions=8, feed_forward_dimensions=48)
SHORT = [40, 1, 2, 17, 33, 16]
LONG = [260, 129, 64]
CASES = []


def encoder(name, lengths=None, mask=None, causal=False, batch=2, length=24, **params):
    CASES.append(dict(name="fast-" + name, kind="TransformerEncoder", params={**ENCODER, **params}, lengths=lengths,
                      mask=mask, causal=causal, batch=batch, length=max(lengths or [length])))


def decoder(name, lengths=None, mask=False, causal=False, batch=2, length=20, memory=13, **params):
    CASES.append(dict(name="fast-decoder-" + name, kind="TransformerDecoder", params={**ENCODER, **params},
                      lengths=lengths, mask=mask, causal=causal, batch=batch, length=max(lengths or [length]),
                      memory=memory))


def feature_map(name, **arguments):
    return dict(name=name, deterministic_eval=True, **arguments)


linear, causal = dict(attention_type="linear"), dict(attention_type="causal-linear")
encoder("linear", lengths=SHORT, **linear)
encoder("linear-long", lengths=LONG, value_dimensions=12, **linear)
encoder("linear-mask", mask="holes", activation="gelu", final_normalization=False, **linear)
encoder("linear-favor", lengths=SHORT, feature_map=feature_map("Favor", n_dims=24, softmax_temp=0.3), n_layers=3,
        value_dimensions=6, **linear)
encoder("linear-favor-odd", mask="length", feature_map=dict(name="Favor", n_dims=13), n_heads=3, query_dimensions=7,
        **linear)
encoder("linear-favor-stabilized", lengths=LONG, feature_map=feature_map("Favor", stabilize=True, orthogonal=False),
        **linear)
encoder("linear-favor-stabilized-mask", mask="holes", feature_map=feature_map("Favor", n_dims=32, stabilize=True),
        activation="gelu", **linear)
encoder("linear-smoothed", lengths=SHORT,
        feature_map=feature_map("SmoothedRandomFourierFeatures", n_dims=33, smoothing=2.0, softmax_temp=0.1), **linear)
encoder("linear-fourier", length=30, feature_map=feature_map("RandomFourierFeatures", n_dims=64, softmax_temp=0.05),
        **linear)
encoder("linear-generalized", lengths=SHORT, feature_map=feature_map("GeneralizedRandomFeatures", n_dims=20), **linear)
encoder("linear-generalized-kernel", lengths=LONG, model_dimensions=30,
        feature_map=feature_map("GeneralizedRandomFeatures", kernel_fn="sigmoid", softmax_temp=0.5, redraw=4), **linear)
encoder("causal", lengths=LONG, **causal)
encoder("causal-mask", mask="holes", activation="gelu", n_layers=1, final_normalization=False, **causal)
encoder("causal-favor", lengths=LONG, feature_map=feature_map("Favor", n_dims=20), value_dimensions=5, **causal)
encoder("causal-favor-stabilized", lengths=SHORT, feature_map=feature_map("Favor", stabilize=True), **causal)
encoder("causal-generalized", lengths=SHORT, n_layers=1,
        feature_map=feature_map("GeneralizedRandomFeatures", n_dims=25), **causal)
encoder("full", lengths=SHORT)
encoder("full-widths", lengths=LONG, value_dimensions=12, query_dimensions=5, softmax_temp=0.7, activation="gelu")
encoder("full-causal", lengths=LONG, causal=True, final_normalization=False)
encoder("full-mask", mask="holes", attention_type="full", attention_dropout=0.2, dropout=0.0)
encoder("local", lengths=SHORT, attention_type="local", local_context=6)
encoder("local-long", lengths=LONG, attention_type="local", local_context=151, value_dimensions=10, softmax_temp=0.2)
encoder("local-causal", lengths=LONG, causal=True, attention_type="local", local_context=9, activation="gelu")
encoder("local-mask", mask="length", attention_type="local", local_context=4)
encoder("local-causal-mask", mask="length", causal=True, attention_type="local", local_context=5)
decoder("full", lengths=SHORT)
decoder("full-causal", causal=True, lengths=LONG, memory=140, mask=True, activation="gelu")
decoder("causal", self_attention_type="causal-linear", cross_attention_type="linear", mask=True, lengths=LONG, memory=40)
decoder("causal-favor", self_attention_type="causal-linear", cross_attention_type="linear", lengths=SHORT,
        feature_map=feature_map("Favor", n_dims=16), final_normalization=False)
decoder("causal-to-full", self_attention_type="causal-linear", cross_attention_type="full", lengths=SHORT,
        value_dimensions=6, cross_n_heads=3, cross_query_dimensions=5, cross_value_dimensions=7,
        cross_model_dimensions=19)
decoder("linear", self_attention_type="linear", cross_attention_type="linear", mask=True, memory=200, cross_n_heads=2,
        cross_value_dimensions=11, n_layers=3)
decoder("favor-stabilized", self_attention_type="linear", cross_attention_type="linear", mask=True, lengths=SHORT,
        feature_map=feature_map("Favor", stabilize=True, softmax_temp=0.2))
decoder("local", self_attention_type="local", cross_attention_type="local", local_context=7, length=24, memory=18)
decoder("local-causal", self_attention_type="local", cross_attention_type="full", causal=True, local_context=4,
        mask=True, lengths=SHORT)
decoder("smoothed", self_attention_type="linear", cross_attention_type="full", lengths=SHORT, length=24,
        feature_map=feature_map("SmoothedRandomFourierFeatures", n_dims=20, softmax_temp=0.2))


def build(case):
    from fast_transformers import builders, feature_maps
    params = dict(case["params"])
    if "feature_map" in params:
        arguments = dict(params["feature_map"], deterministic_eval=True)
        if "kernel_fn" in arguments:
            arguments["kernel_fn"] = getattr(torch.nn.functional, arguments["kernel_fn"])
        params["feature_map"] = getattr(feature_maps, arguments.pop("name")).factory(**arguments)
    model = getattr(builders, case["kind"] + "Builder").from_kwargs(**params).get()
    for module in model.modules():
        if hasattr(module, "new_feature_map"):
            module.new_feature_map("cpu")  # draws, for the last time
    return model.eval()


def weights(model, generator):
    """Random weights of which nothing can be left out unnoticed: biases and norms, too."""
    for name, tensor in model.state_dict().items():
        if name.endswith("omega"):
            continue
        norm = "norm" in name and name.endswith("weight")
        scale = 0.2 if tensor.dim() == 1 else tensor.shape[-1] ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if norm else 0.0))


def mask_of(kind, batch, length, generator):
    if kind == "holes":
        mask = torch.rand((batch, length), generator=generator) < 0.7
    else:
        mask = torch.arange(length) < torch.randint(1, length, (batch, 1), generator=generator)
    mask[:, 0] = True
    return mask


def inputs_of(case, model, generator):
    width = model.layers[0].linear1.in_features
    inputs = {"x": torch.randn(case["batch"], case["length"], width, generator=generator)}
    if case["kind"] == "TransformerDecoder":
        memory = model.layers[0].cross_attention.key_projection.in_features
        inputs["memory"] = torch.randn(case["batch"], case["memory"], memory, generator=generator)
        if case["mask"]:
            inputs["memory_length_mask"] = mask_of("length", case["batch"], case["memory"], generator)
    elif case["mask"]:
        inputs["length_mask"] = mask_of(case["mask"], case["batch"], case["length"], generator)
    return inputs


def forward(case, model, inputs):
    from fast_transformers.masking import FullMask, LengthMask, TriangularCausalMask
    inputs = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    masks = {}
    for name, tensor in inputs.items():
        if name.endswith("length_mask"):
            prefix = (tensor[:, 1:] <= tensor[:, :-1]).all()
            masks[name] = LengthMask(tensor.sum(1), tensor.shape[1]) if prefix else FullMask(tensor)
    if case["causal"] or "causal-linear" in case["params"].values():
        name = "attn_mask" if case["kind"] == "TransformerEncoder" else "x_mask"
        masks[name] = TriangularCausalMask(inputs["x"].shape[1])
    rows = [inputs[name] for name in ("x", "memory") if name in inputs]
    return model(*rows, **masks)


def outputs_of(case, model, inputs):
    if case["lengths"] is None:
        return forward(case, model, inputs)
    result = torch.zeros(*inputs["x"].shape, dtype=torch.float64)
    for i, length in enumerate(case["lengths"]):
        alone = {name: tensor[i:i + 1] for name, tensor in inputs.items()}
        alone["x"] = alone["x"][:, :length]
        result[i, :length] = forward(case, model, alone)[0]
    return result


def make(case, root):
    if case["lengths"] is not None:
        case["batch"] = len(case["lengths"])
    seed = zlib.crc32(case["name"].encode())
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = build(case)
    with torch.no_grad():
        weights(model, generator)
        inputs = inputs_of(case, model, generator)
        if case["lengths"] is not None:
            inputs["lengths"] = torch.tensor(case["lengths"])
            inputs["x"] *= (torch.arange(case["length"])[None] < inputs["lengths"][:, None])[..., None]
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        read = {name: tensor for name, tensor in inputs.items() if name != "lengths"}
        expected = outputs_of(case, model.double(), read)
    call = {}
    if case["causal"]:
        call["attn_mask" if case["kind"] == "TransformerEncoder" else "x_mask"] = "TriangularCausalMask"
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "fast_transformers." + case["kind"], "params": case["params"],
                   "wrapper": None, "call": call, "compare": "all", "package": "fast-transformers 2ad36b9",
                   "tolerance": 1e-5}, file, indent=1)
        file.write("\n")
    save_file(state, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               "output.y": expected.float().contiguous()}, os.path.join(folder, "io.safetensors"))


if __name__ == "__main__":
    import_package(sys.argv[1])
    for one in CASES:
        if len(sys.argv) == 3 or one["name"] in sys.argv[3:]:
            make(one, sys.argv[2])
            print(one["name"])
