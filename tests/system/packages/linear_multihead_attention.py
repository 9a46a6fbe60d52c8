"""Linear-Multihead-Attention's class, which is on no package index: its names, and its numbers. That it has them is
shown by tests/data/goldens, which the class itself computed."""

import torch
from torch import nn


class LinearMultiheadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.1, seq_len=512, proj_k=128, param_sharing="none"):
        super().__init__()
        self.heads = num_heads
        self.in_proj_weight = nn.Parameter(torch.randn(3 * embed_dim, embed_dim) * embed_dim ** -0.5)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.e_proj_weight = nn.Parameter(torch.randn(proj_k, seq_len) * seq_len ** -0.5)
        self.f_proj_weight = self.e_proj_weight if param_sharing == "layerwise" else nn.Parameter(
            torch.randn(proj_k, seq_len) * seq_len ** -0.5)
        self.bias_e, self.bias_f = (nn.Parameter(torch.randn(1, 1, proj_k)) for _ in range(2))
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key, value):
        length, batch, width = query.shape
        per_head = width // self.heads
        weights, biases = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        q, k, v = (nn.functional.linear(rows, *own) for rows, *own in zip((query, key, value), weights, biases))

        def slots(rows, projection, bias):
            """The package reads [batch, width, slots] as if it were [slots, batch * heads, per_head]."""
            return (torch.einsum("nbe,kn->bek", rows, projection) + bias).reshape(-1, batch * self.heads, per_head)

        k, v = slots(k, self.e_proj_weight, self.bias_e), slots(v, self.f_proj_weight, self.bias_f)
        q = q.reshape(length, batch * self.heads, per_head) * per_head ** -0.5
        scores = torch.einsum("nhd,khd->hnk", q, k).softmax(-1)
        rows = torch.einsum("hnk,khd->nhd", scores, v).reshape(length, batch, width)
        return self.out_proj(rows), scores.reshape(batch, self.heads, length, -1).mean(1)
