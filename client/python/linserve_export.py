"""Writes a model that was trained in Python as a directory that linserve serves.

    from linserve_export import export
    export(model, params, "models/my-model", example=torch.randint(20000, (2, 100)))

It needs this file, torch, safetensors, and the package that the model is of.
"""

import argparse
import copy
import importlib.metadata
import inspect
import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

__all__ = ["export", "load"]

# The packages, and of each the classes that linserve has.
ARCHITECTURES = {
    "linformer": ("LinformerSelfAttention", "Linformer", "LinformerLM"),
    "linformer_pytorch": ("MHAttention", "Linformer", "LinformerLM", "LinformerEncDec"),
    "linear_attention_transformer": (
        "LinearAttentionTransformer", "LinearAttentionTransformerLM", "ImageLinearAttention"),
    "linear_multihead_attention": ("LinearMultiheadAttention",),
    "performer_pytorch": ("Performer", "PerformerLM"),
}
ANYWHERE = "linear_multihead_attention"  # no package but a file, which people put where they like
# What packages put around their models that changes numbers: it pads.
PADDERS = {"Padder": "linformer_pytorch.Padder", "Autopadder": "linear_attention_transformer.Autopadder"}
# What torch puts into the names of tensors where a part of a model is compiled, checkpointed or sharded.
INSERTED = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")
EXAMPLE = "example.safetensors"
MOST_NAMED = 8  # tensors in a line
TRAINING = ("optimizer", "callbacks", "lr_schedulers")  # the beginnings of names in checkpoints
COUNTER = "calls_since_last_redraw"  # a Performer's, of its training, wherever its version has it
# Arguments of a call without which a head is computed, and the beginning of its tensors' names.
HEADLESS = {"return_encodings": "to_out."}
# The functions that a Performer's features may be made by, under the server's names.
KERNELS = {
    "relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "elu": torch.nn.functional.elu, "leaky_relu": torch.nn.functional.leaky_relu,
    "mish": torch.nn.functional.mish, "relu6": torch.nn.functional.relu6, "exp": torch.exp,
    "gelu_new": partial(torch.nn.functional.gelu, approximate="tanh"), "linear": torch.nn.Identity()}
# The server's options for one model, as deploy/linserve.json explains them.
SERVING = (
    "padding", "buckets", "dtype", "pooling", "normalize", "truncation", "max_text_tokens", "dimensions",
    "max_batch_tokens", "max_batch_sequences", "max_batch_delay_ms", "max_queue_sequences", "max_queue_tokens",
    "max_queue_bytes", "replicas", "threads", "cache_bytes", "max_session_bytes", "session_idle_seconds", "warmup",
    "allow_nonfinite", "add_bos", "add_eos", "prompts", "default_prompt", "pair_template")


def export(model, params, folder, example, *, checkpoint=None, part="", serving=None):
    """Writes the folder and prints the command that compares the server's numbers with the package's.

    model       the trained model, in whatever wraps it: DataParallel, torch.compile, EMA, Padder, a
                LightningModule. With `checkpoint` it may also be its class.
    params      the arguments of the model's constructor, by name
    example     an input to compare by: a tensor (the input `x`), or a dict of the model's arguments
    checkpoint  a file to take the weights from, as load() reads it
    part        which one is meant where there are several, as a part of its path: "ema_model"
    serving     options of the server for this model, such as {"pooling": "mean"}
    """
    if inspect.isclass(model):
        if checkpoint is None:
            raise ValueError(f"{model.__name__} is a class, expected a trained model, or checkpoint=FILE beside it")
        model = model(**copy.deepcopy(params))
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, expected the module itself; weights alone are exported by "
                        "its class, with checkpoint=FILE")
    unknown = sorted(set(serving or {}) - set(SERVING))
    if unknown:
        raise ValueError(f"serving has {unknown[0]!r}, which is no option of a model; those are {', '.join(SERVING)}")
    whole = model
    model, padder = _model_of(model, part if checkpoint is None else "")
    package, cls = _architecture(model)
    inputs, call = _inputs_of(example)
    # A model that is made anew shows what params stand for: its names, its shapes, and its numbers.
    with torch.random.fork_rng():  # training may go on
        fresh = cls(**copy.deepcopy(params)).cpu().float().eval()
    groups = _names_by_tensor(_needed(_tensors(fresh), call))
    every = _tensors(whole) if checkpoint is None else load(checkpoint)
    held = _needed(_tensors(model) if checkpoint is None else _under_own_names(every, groups, part), call)
    tensors = _chosen(held, groups)
    _fill(fresh, tensors, groups, held)
    outputs = _outputs(fresh, padder, inputs, call)
    if checkpoint is None:
        _require_same(_outputs(_in_f32(model), padder, inputs, call), outputs)

    config = _config(f"{package}.{cls.__name__}", _arguments(cls, params), padder, call, serving)
    versions = _versions(fresh)
    if _sees_outside(versions.get("local-attention", "")):
        config["params"]["local_attention"] = versions["local-attention"]
    io = {**{f"input.{name}": tensor for name, tensor in inputs.items()},
          **{f"output.{name}": tensor for name, tensor in outputs.items()}}
    _write(Path(folder), tensors, io, config, versions)
    left = _left_behind(every, held, groups)
    if left:
        more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        print(f"left behind, for what is served has no such tensors: {', '.join(left[:MOST_NAMED])}{more}")
    place, file = shlex.quote(str(folder)), shlex.quote(str(Path(folder, EXAMPLE)))
    print(f"{folder}: {config['architecture']}, {sum(tensor.numel() for tensor in tensors.values()):,} numbers. "
          "To compare the server's results with the package's:\n"
          f"linserve run --model {place} --input {file} --compare {file} --tolerance {_tolerance(outputs)}")


def load(path):
    """The tensors of a checkpoint by name: of a .pt, .pth, .ckpt, .bin or .safetensors file, or of the shards that
    an *.index.json names, or a folder with one. Nothing in it is executed. Where dictionaries hold others, as in
    {"state_dict": {...}}, their keys are joined by dots."""
    path = Path(path)
    if path.is_dir():
        indexes = sorted(path.glob("*.index.json"))
        if not indexes:
            raise ValueError(f"{path} is a folder without an *.index.json; name one of its files")
        path = indexes[0]
    if path.name.endswith(".index.json"):
        shards = sorted(set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))
        return {name: tensor for shard in shards for name, tensor in load(path.parent / shard).items()}
    if path.suffix == ".safetensors":
        return load_file(path)
    try:
        with _with_arguments():
            return dict(_flat(torch.load(path, map_location="cpu", weights_only=True)))
    except OSError:
        raise
    except Exception as error:
        held = re.search(r"GLOBAL (\S+)", str(error))  # what the file wants executed
        raise ValueError(
            f"{path} holds {held[1] if held else 'no tensors that torch can read'}, expected tensors alone. Where you "
            "trust it, loaded = torch.load(path, weights_only=False) has them as loaded['state_dict'], or a whole "
            "model as loaded.state_dict(): torch.save that to a file of its own") from error


def _flat(value, name=""):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))


def _architecture(module):
    """The package and the class that linserve knows the module by; None if it knows none."""
    for cls in type(module).__mro__:
        for package, names in ARCHITECTURES.items():
            if cls.__name__ in names and (package in cls.__module__.split(".") or package == ANYWHERE):
                return package, cls
    return None


def _found(module, path="", padder=None):
    """Yields path, model and padder of each outermost model in a module."""
    if _architecture(module):
        yield path.removesuffix("."), module, padder
        return
    kind = PADDERS.get(type(module).__name__, "")
    if kind.split(".")[0] in type(module).__module__.split("."):
        padder = module
    for name, child in module.named_children():
        yield from _found(child, f"{path}{name}.", padder)


def _model_of(module, part):
    found = {(id(model), id(padder)): (path, model, padder) for path, model, padder in _found(module)}.values()
    chosen = [entry for entry in found if part in entry[0]]
    if len(chosen) == 1:
        return chosen[0][1:]
    if not found:
        known = ", ".join(f"{package}.{name}" for package, names in ARCHITECTURES.items() for name in names)
        raise ValueError(f"{type(module).__name__} holds no model that linserve has; it has {known}")
    raise ValueError(f"{len(chosen)} models of {[path for path, _, _ in found]} are meant by part={part!r}, "
                     "expected one")


def _clean(name):
    for inserted in INSERTED:
        name = name.replace(inserted, "")
    return name


def _loose(model):
    """linformer-pytorch's method no_params keeps E and F as plain attributes, which are in no state_dict."""
    for path, module in model.named_modules():
        if getattr(module, "is_proj_tensor", False):
            for attribute in ("E", "F"):
                yield (path + "." if path else "") + attribute, module, attribute


def _with_arguments():
    """Lets checkpoints hold arguments, as those of Lightning and fairseq do. Old versions of torch refuse them."""
    allow = getattr(torch.serialization, "safe_globals", None)
    return allow([argparse.Namespace]) if allow else nullcontext()


def _tensors(model):
    tensors = {_clean(name): tensor for name, tensor in model.state_dict(keep_vars=True).items()}
    tensors.update((_clean(name), getattr(module, attribute)) for name, module, attribute in _loose(model))
    return tensors


def _needed(tensors, call):
    """Those without which the call is not computed."""
    heads = tuple(head for argument, head in HEADLESS.items() if call.get(argument))
    return {name: tensor for name, tensor in tensors.items()
            if not name.startswith(heads) and name.split(".")[-1] != COUNTER}


def _names_by_tensor(tensors):
    """The names of each tensor: several where the model shares it."""
    groups = {}
    for name, tensor in tensors.items():
        groups.setdefault(id(tensor), []).append(name)
    return list(groups.values())


def _under_own_names(tensors, groups, part):
    """Those tensors of a checkpoint that are the model's, by the model's names."""
    tensors = {_clean(name): tensor for name, tensor in tensors.items()}
    prefixes = sorted({held.removesuffix(name) for name in groups[0] for held in tensors
                       if held == name or held.endswith("." + name)})

    def lacks(prefix):
        return [names[0] for names in groups if not any(prefix + name in tensors for name in names)]

    complete = [prefix for prefix in prefixes if not lacks(prefix)]
    if not complete:
        lacking = min((lacks(prefix) for prefix in prefixes), key=len, default=[names[0] for names in groups])
        hint = ("; of method no_params they are in no state_dict: export in the process that has the model"
                if lacking[0].endswith((".E", ".F")) else "")
        raise ValueError(f"the checkpoint's {len(tensors)} tensors, such as {sorted(tensors)[:3]}, are not the "
                         f"model's: {len(lacking)} lack, such as {lacking[:3]}{hint}")
    chosen = [{name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
              for prefix in complete if part in prefix]
    own = [name for names in groups for name in names]
    if not chosen or any(not torch.equal(other[name], chosen[0][name]) for other in chosen[1:] for name in own
                         if name in other and name in chosen[0]):
        raise ValueError(f"the checkpoint holds models under {complete}, expected part= to mean one of them")
    return chosen[0]


def _left_behind(every, held, groups):
    """The names of those tensors that are not the model's: a head of one's own, a loss, another model. What only goes
    on with the training, as a checkpoint has it, nobody misses."""
    own = {id(held[name]) for names in groups for name in names if name in held}
    return [name for name, tensor in every.items()
            if id(tensor) not in own and not name.startswith(TRAINING) and name.split(".")[-1] != COUNTER]


def _chosen(held, groups):
    """One tensor for each that the model has, alone in its memory."""
    tensors = {}
    for names in groups:
        present = [name for name in names if name in held]
        for name in present[1:]:
            if held[name] is not held[present[0]] and not torch.equal(held[name], held[present[0]]):
                raise ValueError(f"{name} differs from {present[0]}; the package has one tensor for both")
        tensors.update({name: held[name].detach().cpu().contiguous().clone() for name in present[:1]})
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            place = (~tensor.isfinite()).nonzero()[0].tolist()
            raise ValueError(f"{name} holds {tensor[tuple(place)].item()} at {place}: such a model gives no numbers")
    return tensors


def _fill(fresh, tensors, groups, held):
    """Gives the tensors to the model that was made anew, if all that is held fits."""
    wanted = {name: tuple(tensor.shape) for name, tensor in _tensors(fresh).items()}
    faults = [f"{names[0]} {wanted[names[0]]} is missing" for names in groups if not set(names) & set(tensors)]
    faults += [f"{name} is empty, as where DeepSpeed's ZeRO stage 3 splits it over processes: write whole weights "
               "with its zero_to_fp32.py, and export with checkpoint=FILE"
               for name, tensor in tensors.items() if tensor.numel() == 0 and tuple(tensor.shape) != wanted[name]]
    faults += [f"{name} is {tuple(tensor.shape)}, expected {wanted[name]}"
               for name, tensor in tensors.items() if tuple(tensor.shape) != wanted[name]]
    parts = {name.split(".")[0] for name in wanted}  # what stands beside these is somebody else's
    faults += [f"{name} {tuple(tensor.shape)} is not in it" for name, tensor in held.items()
               if name not in wanted and name.split(".")[0] in parts]
    if faults:
        raise ValueError("the weights are not those of a model of these params:\n  " + "\n  ".join(faults))
    every = {name: next(tensors[one] for one in names if one in tensors) for names in groups for name in names}
    for name, module, attribute in list(_loose(fresh)):
        setattr(module, attribute, every.pop(name).float())
    fresh.load_state_dict({**fresh.state_dict(), **every})


def _inputs_of(example):
    """The tensors of an example by name, and the arguments that are none."""
    if isinstance(example, torch.Tensor):
        example = {"x": example}
    if not isinstance(example, Mapping):
        raise TypeError(f"the example is a {type(example).__name__}, expected a tensor, or a dict of arguments")
    # Cloned, since keys and values may be one tensor.
    inputs = {name: torch.as_tensor(value).detach().cpu().contiguous().clone() for name, value in example.items()
              if hasattr(value, "__array__")}
    return inputs, {name: value for name, value in example.items() if name not in inputs}


def _in_f32(model):
    """The model, or a copy: only in f32 do small differences mean something."""
    if next(model.parameters()).dtype in (torch.float32, torch.float64):
        return model
    model = copy.deepcopy(model).float()
    for _, module, attribute in list(_loose(model)):
        setattr(module, attribute, getattr(module, attribute).float())
    return model


@torch.no_grad()
def _outputs(model, padder, inputs, call):
    """What the package returns, in eval mode."""
    weight = next(model.parameters())
    arguments = {name: tensor.to(weight.device, weight.dtype if tensor.is_floating_point() else tensor.dtype)
                 for name, tensor in inputs.items()}
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        net = model if padder is None else type(padder)(model, **_wrapper(padder)[1]).eval()
        first = [arguments.pop("x")] if "x" in arguments else []  # packages have other names for it
        result = net(*first, **arguments, **call)
    finally:
        for module, mode in modes:
            module.training = mode
    results = result if isinstance(result, tuple) else (result,)
    outputs = {name: tensor.float().cpu().contiguous() for name, tensor in zip(("y", "weights"), results)
               if tensor is not None}
    for name, tensor in outputs.items():
        if not tensor.isfinite().all():
            raise ValueError(f"the example's output {name} is not finite")
    return outputs


def _require_same(trained, described):
    """Refuses params that stand for another computation with the same shapes, such as another number of heads."""
    for name, tensor in trained.items():
        off, size = (tensor - described[name]).abs().max().item(), described[name].abs().max().item()
        if off > 1e-3 * size:  # a GPU may round products to ten bits
            raise ValueError(f"a model made of these params, with these weights, gives another {name}: off by "
                             f"{off:.2g} where the largest is {size:.2g}. Are all of them, such as heads, those that "
                             "the model was made with, and is its forward the package's?")


def _tolerance(outputs):
    """1e-5, or as much of the largest output, where that is over 1."""
    return f"{1e-5 * max(1, *(tensor.abs().max().item() for tensor in outputs.values())):.1e}"


def _wrapper(padder):
    """The wrapper's type, and its arguments."""
    arguments = {"pad_left": padder.pad_left} if hasattr(padder, "pad_left") else {}
    return PADDERS[type(padder).__name__], arguments


def _config(architecture, params, padder, call, serving):
    config = {"architecture": architecture, "params": params}
    serving = dict(serving or {})
    if padder is not None:
        kind, arguments = _wrapper(padder)
        config["wrapper"] = {"type": kind, **arguments}
        if kind == "linformer_pytorch.Padder":
            serving.setdefault("padding", "zeros")  # its zeros leak into the results
    if call:
        config["call"] = _plain("the example", call)
    if serving:
        config["serving"] = serving
    return config


def _arguments(cls, params):
    """The constructor's arguments with its defaults, which differ between versions, as JSON has them."""
    bound = inspect.signature(cls).bind(**params)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    for module in ("E_proj", "F_proj"):  # of MHAttention: they are among the weights
        arguments.pop(module, None)
    if "kernel_fn" in arguments:  # of Performer, which has it without need, too
        kernel = arguments.pop("kernel_fn")
        if arguments["generalized_attention"] and not arguments.get("no_projection"):
            arguments["kernel_fn"] = _kernel_name(kernel)
    mask = arguments.pop("causal_mask", None)
    if mask is not None:
        if not torch.equal(mask.bool(), torch.ones_like(mask, dtype=torch.bool).tril()):
            raise ValueError("causal_mask is not what gen_causal_mask makes")
        arguments["causal"] = True
    return _plain("params", arguments)


def _kernel_name(kernel):
    """The server's name of a function, which is known by its values: types say nothing of their arguments."""
    points = torch.linspace(-12, 12, 2401).view(1, 1, 49, 49)
    if isinstance(kernel, torch.nn.Module):
        kernel = copy.deepcopy(kernel).cpu().float().eval()
    with torch.no_grad():
        values = kernel(points.clone())  # it may work in place
    for name, function in KERNELS.items():
        if values.shape == points.shape and torch.allclose(values, function(points), rtol=1e-5, atol=1e-6):
            return name
    raise ValueError(f"kernel_fn is {kernel}, expected one that is served: {', '.join(KERNELS)}, as torch.nn has them "
                     "with their default arguments, or gelu with approximate='tanh'")


def _plain(name, value):
    """The value as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "_asdict"):  # a named tuple
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(f"{name}[{key!r}]", inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(f"{name}[{i}]", inner) for i, inner in enumerate(value)]
    if hasattr(value, "item"):  # a number of numpy or torch
        return value.item()
    raise TypeError(f"{name} is a {type(value).__name__}, expected numbers, texts, and lists and dicts of them")


def _versions(model):
    """The versions of the packages that the model's parts are of."""
    distributions = importlib.metadata.packages_distributions()
    packages = {type(module).__module__.split(".")[0] for module in model.modules()}
    names = {name for package in packages for name in distributions.get(package, ())}
    return {name: importlib.metadata.version(name) for name in sorted(names)}


def _sees_outside(version):
    """In these versions of local-attention the first and last rows also attend to what pads their windows."""
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return [1, 5, 3] <= parts <= [1, 8, 4]


def _write(folder, tensors, io, config, versions):
    """A server may be reading the files of before, so each is replaced at once."""
    texts = {"requirements.txt": "".join(f"{name}=={version}\n" for name, version in versions.items()),
             "config.json": json.dumps(config, indent=2) + "\n"}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors.new", {"format": "pt"})
    save_file(io, folder / f"{EXAMPLE}.new")
    for name, text in texts.items():
        (folder / f"{name}.new").write_text(text, encoding="utf-8")
    for name in ("model.safetensors", EXAMPLE, *texts):
        os.replace(folder / f"{name}.new", folder / name)
