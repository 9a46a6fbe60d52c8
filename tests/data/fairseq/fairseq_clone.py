"""Lets a clone of facebookresearch/fairseq be imported by Python 3.11 with omegaconf and no more than it needs."""
import argparse
import dataclasses
import importlib.abc
import importlib.machinery
import os
import sys
import types
from unittest.mock import MagicMock

# What fairseq imports and these models do not use.
UNUSED = {"bitarray", "editdistance", "fairscale", "hydra", "pandas", "sacrebleu", "sacremoses", "soundfile",
          "torchaudio"}


class Unused(types.ModuleType):
    __path__ = []
    __version__ = "1.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()


class UnusedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in UNUSED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Unused(spec.name)

    def exec_module(self, module):
        pass


def let_defaults_be_mutable():
    """Python 3.11 refuses dataclasses as defaults of dataclasses unless they have a hash, and fairseq has them."""
    process = dataclasses._process_class

    def hashable(cls, *arguments, **named):
        cls = process(cls, *arguments, **named)
        if cls.__hash__ is None:
            cls.__hash__ = object.__hash__
        return cls

    dataclasses._process_class = hashable


def linformer_roberta(clone, params, vocabulary):
    """The model by fairseq's arguments, and its dictionary, of so many tokens."""
    if clone not in sys.path:
        let_defaults_be_mutable()
        sys.meta_path.insert(0, UnusedModules())
        sys.path[:0] = [clone, os.path.join(clone, "examples/linformer")]
    from fairseq.data import Dictionary
    from linformer_src.models.linformer_roberta import LinformerModel
    dictionary = Dictionary()
    while len(dictionary) < vocabulary:
        dictionary.add_symbol(f"token{len(dictionary)}")
    task = types.SimpleNamespace(source_dictionary=dictionary)
    return LinformerModel.build_model(argparse.Namespace(**params), task).eval(), dictionary
