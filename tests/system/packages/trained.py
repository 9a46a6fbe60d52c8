"""Small models of the packages, each as its users have it: trained, in eval mode or not, with an example of inputs."""

from dataclasses import dataclass
from unittest import mock

import torch
from linear_attention_transformer import (AutoregressiveWrapper, ImageLinearAttention, LinearAttentionTransformer,
                                          LinearAttentionTransformerLM, LinformerContextSettings, LinformerSettings)
from linear_attention_transformer.autopadder import Autopadder
from linear_multihead_attention import LinearMultiheadAttention
from linformer import Linformer, LinformerLM, LinformerSelfAttention
import linformer_pytorch
from linformer_pytorch import MHAttention, Padder, get_EF
from linformer_pytorch.linformer_pytorch import gen_causal_mask
from performer_pytorch import Performer, PerformerLM

torch.set_num_threads(1)  # more take longer for models as small as these, beside other tests
STEPS = 50
CLEAR_CHOICE = 3e-5  # scores of product keys are around 4: some ten times the rounding of their sum
WORDS = 50


def ids(*shape):
    return torch.randint(WORDS, shape)


def narrowest_choice(run):
    """The least distance between a score that a topk in `run` takes and the best that it leaves."""
    topk, gaps = torch.Tensor.topk, [torch.tensor(torch.inf)]

    def watched(scores, k, **options):
        if k < scores.shape[-1]:
            best = topk(scores, k + 1, dim=-1).values
            gaps.append((best[..., -2] - best[..., -1]).min())
        return topk(scores, k, **options)

    with mock.patch.object(torch.Tensor, "topk", watched):
        run()
    return min(gaps).item()


@dataclass
class Case:
    model: type
    params: dict
    example: dict
    wrap: object = None  # what the package puts around the model, if anything
    batch_axis: int = 0

    def trained(self):
        """The model as it is after training, in what is around it."""
        model = self.model(**self.params)
        net = self.wrap(model) if self.wrap else model
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        target = torch.randn_like(self.run(net))
        for _ in range(STEPS):
            optimizer.zero_grad()
            (self.run(net, training=True) - target).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            # A choice that hangs on a rounding is another one on another processor, in the package as in the server.
            while narrowest_choice(lambda: self.run(net.eval())) < CLEAR_CHOICE:
                self.example["x"] = torch.randn_like(self.example["x"])
        return net.train()

    def run(self, net, training=False):
        # Reversible layers have gradients only where what they are given has some.
        example = {name: tensor.clone().requires_grad_(training and tensor.is_floating_point())
                   for name, tensor in self.example.items()}
        result = net(*[example.pop("x")] if "x" in example else [], **example)
        return result[0] if isinstance(result, tuple) else result

    def sequences(self):
        """The example's sequences, each without the axis of the batch."""
        count = next(iter(self.example.values())).shape[self.batch_axis]
        return [{name: tensor.select(self.batch_axis, i).numpy() for name, tensor in self.example.items()}
                for i in range(count)]


def rows(*shape):
    return torch.randn(*shape)


LINFORMER = dict(dim=32, seq_len=40, heads=4, k=8)
PYTORCH = dict(input_size=40, channels=32, dim_k=8, dim_ff=48, nhead=4)
LINEAR = dict(dim=32, depth=2, max_seq_len=64, heads=4, local_attn_window_size=16)
HEADS = dict(input_size=40, dim=8, channels=32, dim_k=8, nhead=4, dropout=0.1, checkpoint_level="C0")
MASK = torch.arange(40) < torch.tensor([[40], [17]])
MASK41 = torch.arange(41) < torch.tensor([[41], [17]])

CASES = {
    "linformer-lm": Case(LinformerLM, dict(num_tokens=WORDS, depth=2, **LINFORMER), dict(x=ids(2, 33))),
    "linformer-stack": Case(Linformer, dict(depth=2, reversible=True, share_kv=True, **LINFORMER),
                            dict(x=rows(2, 40, 32))),
    "linformer-attention": Case(LinformerSelfAttention, dict(one_kv_head=True, **LINFORMER),
                                dict(x=rows(2, 12, 32), context=rows(2, 31, 32))),
    "pytorch-lm": Case(linformer_pytorch.LinformerLM, dict(num_tokens=WORDS, depth=2, **PYTORCH),
                       dict(x=ids(2, 27)), Padder),
    "pytorch-stack": Case(linformer_pytorch.Linformer, dict(depth=2, method="no_params", **PYTORCH),
                          dict(x=rows(2, 40, 32), input_mask=MASK)),
    "pytorch-heads": Case(MHAttention, dict(parameter_sharing="layerwise", E_proj=(shared := get_EF(40, 8)),
                                            F_proj=shared, full_attention=False,
                                            causal_mask=gen_causal_mask(40, 8), **HEADS), dict(x=rows(2, 40, 32))),
    "pytorch-pair": Case(linformer_pytorch.LinformerEncDec, dict(
        enc_num_tokens=WORDS, enc_input_size=40, enc_channels=32, enc_dim_k=8, enc_dim_ff=48, enc_method="no_params",
        dec_num_tokens=WORDS, dec_input_size=40, dec_channels=32, dec_dim_k=8, dec_dim_ff=48,
        dec_parameter_sharing="kv"), dict(x=ids(2, 40), y=ids(2, 40))),
    "linear-lm": Case(LinearAttentionTransformerLM, dict(num_tokens=WORDS, causal=True, n_local_attn_heads=(1, 2),
                                                         dim_head=8, blindspot_size=3, shift_tokens=True, **LINEAR),
                      dict(x=ids(2, 37)), AutoregressiveWrapper),
    "linear-rotary": Case(LinearAttentionTransformerLM, dict(
        num_tokens=WORDS, use_rotary_emb=True, receives_context=True, emb_dim=20, dim_head=8, **LINEAR,
        context_linformer_settings=LinformerContextSettings(24, 6)), dict(x=ids(2, 37), context=rows(2, 24, 32))),
    "linear-stack": Case(LinearAttentionTransformer, dict(n_local_attn_heads=2, attn_layer_dropout=0.1, **LINEAR),
                         dict(x=rows(2, 41, 32)), lambda model: Autopadder(model, pad_left=True)),
    "linear-settings": Case(LinearAttentionTransformer, dict(linformer_settings=LinformerSettings(6), pkm_layers=(1,),
                                                             **LINEAR), dict(x=rows(2, 41, 32))),
    "linear-image": Case(ImageLinearAttention, dict(chan=8, heads=2, key_dim=6, value_dim=4),
                         dict(x=rows(2, 8, 6, 10))),
    "performer-lm": Case(PerformerLM, dict(
        num_tokens=WORDS, max_seq_len=64, dim=32, depth=2, heads=4, dim_head=8, causal=True, shift_tokens=True,
        local_attn_heads=(1, 0), local_window_size=16), dict(x=ids(2, 37))),
    "performer-stack": Case(Performer, dict(dim=32, depth=2, heads=4, dim_head=8, generalized_attention=True,
                                            use_rezero=True), dict(x=rows(2, 41, 32), mask=MASK41)),
    "multihead": Case(LinearMultiheadAttention, dict(embed_dim=32, num_heads=4, seq_len=20, proj_k=7,
                                                     param_sharing="layerwise"),
                      dict(query=rows(9, 3, 32), key=(memory := rows(20, 3, 32)), value=memory), batch_axis=1),
}
