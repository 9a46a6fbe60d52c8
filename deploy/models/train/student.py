"""The student: linserve.Encoder with attention `linformer` in PyTorch, name by name and number by number."""

import json

import torch
import torch.nn.functional as functional
from safetensors.torch import load_file, save_file
from torch import nn

PARAMS = {
    "attention": "linformer",
    "num_tokens": 8000,
    "dim": 384,
    "depth": 2,
    "heads": 6,
    "ff_mult": 2,
    "k": 64,
    "seq_len": 512,
    "positions": "learned",
    "max_seq_len": 512,
}
SERVING = {"pooling": "mean"}


class Attention(nn.Module):
    """Each query attends to k slots; a slot is a learned sum of the keys (values) of all positions."""

    def __init__(self, dim, heads, k, seq_len):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.to_out = nn.Linear(dim, dim)
        self.proj_k = nn.Parameter(torch.randn(seq_len, k) * k**-0.5)
        self.proj_v = nn.Parameter(torch.randn(seq_len, k) * k**-0.5)

    def split(self, rows):
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def slots(self, rows, projection):
        return self.split(projection[: rows.shape[1]].t() @ rows)

    def forward(self, x, mask):
        keys = self.slots(self.to_k(x) * mask, self.proj_k)
        values = self.slots(self.to_v(x) * mask, self.proj_v)
        rows = functional.scaled_dot_product_attention(self.split(self.to_q(x)), keys, values)
        return self.to_out(rows.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.w1 = nn.Linear(dim, inner)
        self.w2 = nn.Linear(inner, dim)

    def forward(self, x):
        return self.w2(functional.gelu(self.w1(x)))


class Layer(nn.Module):
    def __init__(self, params):
        super().__init__()
        dim = params["dim"]
        self.attn_norm = nn.LayerNorm(dim)
        self.attn = Attention(dim, params["heads"], params["k"], params["seq_len"])
        self.ff_norm = nn.LayerNorm(dim)
        self.ff = FeedForward(dim, params["ff_mult"] * dim)

    def forward(self, x, mask):
        x = x + self.attn(self.attn_norm(x), mask)
        return x + self.ff(self.ff_norm(x))


class Student(nn.Module):
    def __init__(self, params=PARAMS):
        super().__init__()
        self.token_emb = nn.Embedding(params["num_tokens"], params["dim"])
        self.pos_emb = nn.Embedding(params["max_seq_len"], params["dim"])
        self.layers = nn.ModuleList(Layer(params) for _ in range(params["depth"]))
        self.norm = nn.LayerNorm(params["dim"])

    def forward(self, ids, lengths):
        """ids [b, n], padded with anything, and lengths [b] -> the means of their rows, of length one."""
        mask = (torch.arange(ids.shape[1]) < lengths[:, None])[..., None].float()
        x = self.token_emb(ids) + self.pos_emb.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        return functional.normalize((self.norm(x).float() * mask).sum(1), dim=-1)


def padded(sequences):
    """Lists of ids as the two tensors that Student takes."""
    lengths = torch.tensor([len(ids) for ids in sequences])
    ids = torch.zeros(len(sequences), int(lengths.max()), dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
    return ids, lengths


@torch.inference_mode()
def embed(student, sequences, batch=64):
    """[sequences, dim] for lists of ids of any length, computed in order of length."""
    student.eval()
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    rows = torch.empty(len(sequences), student.norm.weight.shape[0])
    for first in range(0, len(order), batch):
        part = order[first : first + batch]
        rows[part] = student(*padded([sequences[i] for i in part]))
    return rows.numpy()


def save(student, folder):
    """A model directory of linserve, in f16."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.half().contiguous() for name, tensor in student.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    config = {"architecture": "linserve.Encoder", "params": PARAMS, "serving": SERVING}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder):
    student = Student(json.loads((folder / "config.json").read_text())["params"])
    student.load_state_dict({name: t.float() for name, t in load_file(folder / "model.safetensors").items()})
    return student.eval()
