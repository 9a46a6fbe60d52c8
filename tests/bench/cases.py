"""The models and sequences that compare.py measures.

Three packages are in no index. FAIRSEQ is a clone of facebookresearch/fairseq (which needs omegaconf), FAST_TRANSFORMERS
one of idiap/fast-transformers, whose extensions linear attention does not need, and MOLFORMER a folder with
modeling_molformer.py, as MoLFormer-XL's has it, which needs transformers 4. Their cases are left out where there is none.
"""

import importlib.util
import math
import os
import random
import sys
from pathlib import Path

import torch


def lognormal(count, median, sigma, least, most, seed=1):
    draw = random.Random(seed)
    return [min(max(round(median * math.exp(sigma * draw.gauss(0, 1))), least), most)
            for _ in range(count)]


class Case:
    """Token ids of these lengths, padded with 0 to `longest` where they are padded."""

    exact = True       # the package gives linserve's rows for sequences that are not padded
    runs_alone = True  # the package takes a sequence at its own length
    mask = None        # the input by which the package is told the lengths
    output = "embeddings"
    vocabulary = 0     # of models that do not name it
    unasked_flops = 0  # a token, of outputs that are not computed here

    def __init__(self, lengths):
        self.lengths = lengths
        self.tokens = sum(lengths)
        generator = torch.Generator().manual_seed(1)
        vocabulary = self.params.get("num_tokens") or self.params.get("vocab_size") or self.vocabulary
        self.ids = torch.randint(1, vocabulary, (len(lengths), self.longest), generator=generator)
        for row, length in zip(self.ids, lengths):
            row[length:] = 0

    def file(self):
        return {"input.x": self.ids[:, :max(self.lengths)].contiguous(),
                "input.lengths": torch.tensor(self.lengths)}

    def batches(self, size, alone=False):
        for begin in range(0, len(self.lengths), size):
            ids = self.ids[begin:begin + size]
            if alone:
                ids = ids[:, :self.lengths[begin]]
            inputs = {"x": ids}
            if self.mask and not alone:
                lengths = torch.tensor(self.lengths[begin:begin + size])
                inputs[self.mask] = torch.arange(self.longest)[None] < lengths[:, None]
            yield inputs

    def module(self, weights):
        module = self.build().eval()
        # fairseq's own reads versions, which are not there.
        missing, unexpected = torch.nn.Module.load_state_dict(module, weights, strict=False)
        # Buffers that every module has anew, such as frequencies.
        if unexpected or any(name in dict(module.named_parameters()) for name in missing):
            raise SystemExit(f"{self.name}: missing {missing}, unexpected {unexpected}")
        return self.without_logits(module)

    def without_logits(self, module):
        return module


class W1(Case):
    name = "w1"
    title = "linformer.LinformerLM without its logits, log-normal lengths of median 96"
    architecture = "linformer.LinformerLM"
    params = {"num_tokens": 20000, "dim": 256, "seq_len": 512, "depth": 6, "heads": 8, "k": 128}
    longest = 512
    unasked_flops = 2 * 256 * 20000  # the logits

    def __init__(self, lengths=None):
        super().__init__(lengths or lognormal(64, 96, 0.8, 8, 512))

    def build(self):
        from linformer import LinformerLM
        return LinformerLM(**self.params)

    def without_logits(self, module):
        module.to_logits = torch.nn.Identity()
        return module


class W1Full(W1):
    name = "w1-full"
    title = "the same at full length"

    def __init__(self):
        super().__init__([512] * 16)


class Lat(Case):
    name = "lat"
    title = "LinearAttentionTransformerLM, return_embeddings, 4,096 tokens"
    architecture = "linear_attention_transformer.LinearAttentionTransformerLM"
    params = {"num_tokens": 20000, "dim": 256, "heads": 8, "depth": 6, "max_seq_len": 4096,
              "return_embeddings": True}
    longest = 4096
    output = "y"

    def __init__(self, lengths=None):
        super().__init__(lengths or [4096] * 4)

    def build(self):
        from linear_attention_transformer import LinearAttentionTransformerLM
        return LinearAttentionTransformerLM(**self.params)


class LatCausal(Lat):
    name = "lat-causal"
    title = "the same, causal"
    params = {**Lat.params, "causal": True}


class LatRagged(Lat):
    name = "lat-ragged"
    title = "the same, not causal, log-normal lengths of median 900, with input_mask"
    mask = "input_mask"

    def __init__(self):
        super().__init__(lognormal(24, 900, 0.8, 64, 4096))


class Lpt(Case):
    name = "lpt"
    title = "linformer_pytorch.LinformerLM in its Padder, log-normal lengths of median 96"
    architecture = "linformer_pytorch.LinformerLM"
    params = {"num_tokens": 20000, "input_size": 512, "channels": 256, "dim_k": 128, "depth": 6,
              "nhead": 8, "return_emb": True}
    longest = 512
    exact = False  # the Padder lets its zeros leak in
    runs_alone = False
    output = "y"

    def __init__(self):
        super().__init__(lognormal(64, 96, 0.8, 8, 512))

    def build(self):
        from linformer_pytorch import LinformerLM, Padder
        self.inner = LinformerLM(**self.params)
        return self.inner

    def without_logits(self, module):
        from linformer_pytorch import Padder
        padder = Padder(module)
        return lambda x: padder(x)


class Performer(Case):
    name = "performer"
    title = "PerformerLM without its logits, 4,096 tokens"
    architecture = "performer_pytorch.PerformerLM"
    params = {"num_tokens": 20000, "dim": 256, "heads": 8, "dim_head": 32, "depth": 6, "max_seq_len": 4096}
    longest = 4096
    unasked_flops = 2 * 256 * 20000  # the logits

    def __init__(self, lengths=None):
        super().__init__(lengths or [4096] * 4)

    def build(self):
        from performer_pytorch import PerformerLM
        return PerformerLM(**self.params)

    def without_logits(self, module):
        return lambda x, **masks: module(x, return_encodings=True, **masks)


class PerformerRagged(Performer):
    name = "performer-ragged"
    title = "the same, log-normal lengths of median 900, with mask"
    mask = "mask"

    def __init__(self):
        super().__init__(lognormal(24, 900, 0.8, 64, 4096))


class ScBert(Performer):
    name = "scbert"
    title = "PerformerLM of scBERT's size without its logits, 16,906 genes"
    params = {"num_tokens": 7, "dim": 200, "depth": 6, "heads": 10, "max_seq_len": 16907,
              "rotary_position_emb": False}
    longest = 16907
    unasked_flops = 2 * 200 * 7

    def __init__(self):
        super().__init__([16906] * 2)


class Nystromformer(Case):
    name = "nystromformer"
    title = "NystromformerModel, softmax attention and a convolution, log-normal lengths of median 96"
    architecture = "transformers.NystromformerModel"
    params = {"vocab_size": 20000, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8,
              "intermediate_size": 1024, "max_position_embeddings": 512}
    longest = 512
    mask = "attention_mask"
    output = "last_hidden_state"

    def __init__(self, lengths=None):
        super().__init__(lengths or lognormal(64, 96, 0.8, 8, 512))

    def build(self):
        from transformers import NystromformerConfig, NystromformerModel
        return NystromformerModel(NystromformerConfig(**self.params))

    def without_logits(self, module):
        return lambda x, **mask: module(input_ids=x, **mask).last_hidden_state


class NystromformerFull(Nystromformer):
    name = "nystromformer-full"
    title = "the same at full length"

    def __init__(self):
        super().__init__([512] * 16)


class NystromformerLandmarks(Nystromformer):
    name = "nystromformer-landmarks"
    title = "NystromformerModel, 64 landmarks of 1,024 tokens"
    params = {**Nystromformer.params, "segment_means_seq_len": 1024, "max_position_embeddings": 1024}
    longest = 1024
    mask = None  # it is an error here

    def __init__(self):
        super().__init__([1024] * 8)


class LinformerRoberta(Case):
    name = "linformer-roberta"
    title = "fairseq's linformer_roberta, its features, log-normal lengths of median 96"
    architecture = "fairseq.LinformerRoberta"
    params = {"vocab_size": 20000, "encoder_embed_dim": 256, "encoder_layers": 6, "encoder_attention_heads": 8,
              "encoder_ffn_embed_dim": 1024, "max_positions": 512, "compressed": 4}
    longest = 512
    unasked_flops = 2 * 256 * (20000 + 256)  # the logits
    padding = 1

    def __init__(self, lengths=None):
        super().__init__(lengths or lognormal(64, 96, 0.8, 8, 512))
        self.ids[self.ids == self.padding] = 2
        for row, length in zip(self.ids, self.lengths):
            row[length:] = self.padding

    def build(self):
        sys.path.append(str(Path(__file__).resolve().parent.parent / "data/fairseq"))
        from fairseq_clone import linformer_roberta
        params = {name: value for name, value in self.params.items() if name != "vocab_size"}
        return linformer_roberta(os.environ["FAIRSEQ"], params, self.params["vocab_size"])[0]

    def without_logits(self, module):
        return lambda x: module(x, features_only=True)[0]


class LinformerRobertaFull(LinformerRoberta):
    name = "linformer-roberta-full"
    title = "the same at full length"

    def __init__(self):
        super().__init__([512] * 16)


class Fast(Case):
    name = "fast"
    title = "fast_transformers.TransformerEncoder, linear, 6 x 256, log-normal lengths of median 96, with length_mask"
    architecture = "fast_transformers.TransformerEncoder"
    params = {"n_layers": 6, "n_heads": 8, "query_dimensions": 32, "value_dimensions": 32, "attention_type": "linear"}
    longest = 512
    output = "y"

    def __init__(self, lengths=None):
        self.lengths = lengths or lognormal(64, 96, 0.8, 8, 512)
        self.tokens = sum(self.lengths)
        self.rows = torch.randn(len(self.lengths), self.longest, 256, generator=torch.Generator().manual_seed(1))
        for row, length in zip(self.rows, self.lengths):
            row[length:] = 0

    def file(self):
        return {"input.x": self.rows[:, :max(self.lengths)].contiguous(), "input.lengths": torch.tensor(self.lengths)}

    def batches(self, size, alone=False):
        from fast_transformers.masking import LengthMask
        for begin in range(0, len(self.lengths), size):
            lengths = self.lengths[begin:begin + size]
            longest = lengths[0] if alone else self.longest
            yield {"x": self.rows[begin:begin + size, :longest],
                   "length_mask": LengthMask(torch.tensor(lengths), longest)}

    def build(self):
        from fast_transformers.builders import TransformerEncoderBuilder
        return TransformerEncoderBuilder.from_kwargs(**self.params).get()


class FastFull(Fast):
    name = "fast-full"
    title = "the same at full length"

    def __init__(self):
        super().__init__([512] * 16)


class Molecules(Case):
    name = "molformer"
    title = "MoLFormer-XL (12 x 768), log-normal lengths of median 44, with attention_mask"
    architecture = "molformer.MolformerModel"
    params = {"deterministic_eval": True}
    vocabulary = 2362
    longest = 202
    output = "last_hidden_state"

    def __init__(self, lengths=None):
        super().__init__(lengths or lognormal(64, 44, 0.4, 8, 202))

    def batches(self, size, alone=False):
        for begin in range(0, len(self.lengths), size):
            lengths = torch.tensor(self.lengths[begin:begin + size])
            longest = int(lengths[0]) if alone else self.longest
            yield {"input_ids": self.ids[begin:begin + size, :longest],
                   "attention_mask": (torch.arange(longest)[None] < lengths[:, None]).float()}

    def build(self):
        from configuration_molformer import MolformerConfig
        from modeling_molformer import MolformerModel
        return MolformerModel(MolformerConfig(**self.params))

    def without_logits(self, module):
        return lambda **inputs: module(**inputs).last_hidden_state


class MoleculesFull(Molecules):
    name = "molformer-full"
    title = "the same at full length"

    def __init__(self):
        super().__init__([202] * 16)


def imported_from(path):
    """Which cases have their package, of those that are in no index; then it can be imported."""
    found = {LinformerRoberta, LinformerRobertaFull} if "FAIRSEQ" in os.environ else set()
    if clone := os.environ.get("FAST_TRANSFORMERS"):
        spec = importlib.util.spec_from_file_location("make", path / "fast_transformers/make.py")
        make = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(make)
        make.import_package(clone)
        found |= {Fast, FastFull}
    if folder := os.environ.get("MOLFORMER"):
        sys.path.append(folder)
        found |= {Molecules, MoleculesFull}
    return found


OF_CLONES = (LinformerRoberta, LinformerRobertaFull, Fast, FastFull, Molecules, MoleculesFull)
FOUND = imported_from(Path(__file__).resolve().parents[1] / "data")
CASES = {case.name: case for case in (W1, W1Full, Lat, LatCausal, LatRagged, Lpt, Performer, PerformerRagged, ScBert,
                                      Nystromformer, NystromformerFull, NystromformerLandmarks,
                                      *(case for case in OF_CLONES if case in FOUND))}
