"""Trains the student on the teacher's vectors.

usage: distil.py WORK [MILLIONS]

Reads WORK/train.json, tokenizer.model, pieces.npy and train.npy; writes the model directories
WORK/initial and WORK/student, before and after training, and says every half minute how near the
student is to the teacher on dev. MILLIONS (3) is how many tokens it trains on.
"""

import json
import math
import pathlib
import random
import sys
import time

import numpy as np
import sentencepiece
import torch
from torch.nn import functional

import student as students

SEED = 11
BATCH_TOKENS = 2048
LEARNING_RATE = 1e-3
EMBEDDING_RATE = 2e-3
WARM_UP = 0.05
RELATION = 5.0
RARE = 1e-3  # the share of all pieces at which a piece weighs half at first
SCALE = 4  # of token embeddings at first
LONGEST = students.PARAMS["seq_len"]
PASSAGES = 1500  # of several paragraphs, an epoch


def half_floats():
    """Whether the processor multiplies bf16 itself: elsewhere it is slower than f32."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "amx_bf16" in flags or "avx512_bf16" in flags


def initial(pieces, counts):
    """A student that, before any training, is a weighed mean of the teacher's vectors of a text's pieces.

    Pieces weigh the less the more frequent they are (`counts`). A norm would undo that; it does not
    when the rows have a large constant part, which positions add here and biases of norms take away
    again. Each of the first k positions has a slot of its own, and what is beyond shares them;
    layers add nothing.
    """
    torch.manual_seed(SEED)
    student = students.Student()
    weights = RARE / (RARE + counts / counts.sum())
    vectors = torch.from_numpy((pieces - pieces.mean(0)) * weights[:, None]).float()
    constant = torch.ones(vectors.shape[1])
    constant[::2] = -1
    with torch.no_grad():
        student.token_emb.weight.copy_(vectors * SCALE)
        student.pos_emb.weight.copy_(constant + 0.01 * torch.randn(LONGEST, len(constant)))
        for layer in student.layers:
            for projection in (layer.attn.proj_k, layer.attn.proj_v):
                slots = projection.shape[1]
                projection.normal_(std=0.01)
                projection.add_(torch.eye(slots).repeat(math.ceil(LONGEST / slots), 1)[:LONGEST])
            for norm in (layer.attn_norm, layer.ff_norm):
                norm.weight.fill_(5)
                norm.bias.copy_(-5 * constant)
            for last in (layer.attn.to_out, layer.ff.w2):
                last.weight.zero_()
                last.bias.zero_()
        student.norm.bias.copy_(-constant)
    return student


def passages(texts, ids, rows, chance):
    """Long texts of consecutive paragraphs of a document; their target is the mean, by length."""
    paragraphs = [i for i, text in enumerate(texts) if text["kind"] == "paragraph"]
    for first in chance.sample(range(len(paragraphs)), min(PASSAGES, len(paragraphs))):
        wanted, sequence, target = chance.randint(150, LONGEST), [], 0
        for i in paragraphs[first:]:
            other = texts[i]["document"] != texts[paragraphs[first]]["document"]
            if other or (sequence and len(sequence) + len(ids[i]) > wanted):
                break
            sequence = sequence + ids[i]
            target = target + len(ids[i]) * rows[i].astype(np.float32)
        yield sequence[:LONGEST], target / np.linalg.norm(target)


def batches(items, chance):
    """Batches of BATCH_TOKENS of items of like lengths, in random order."""
    order = list(range(len(items)))
    chance.shuffle(order)
    order.sort(key=lambda i: len(items[i][0]) + chance.random() * 4)
    parts, part = [], []
    for i in order:
        if part and (len(part) + 1) * (len(items[i][0]) + 4) > BATCH_TOKENS:
            parts.append(part)
            part = []
        part.append(i)
    chance.shuffle(parts)
    return parts


def distance(rows, targets):
    """How far vectors are from the teacher's, and their cosines from the teacher's cosines."""
    direct = 1 - (rows * targets).sum(-1).mean()
    relation = functional.mse_loss(rows @ rows.T, targets @ targets.T)
    return direct + RELATION * relation


def rate(done):
    if done < WARM_UP:
        return done / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def optimizer_of(student):
    weights = [p for name, p in student.named_parameters() if p.ndim == 2 and "emb" not in name]
    vectors = [p for p in student.parameters() if p.ndim == 1]
    embeddings = [student.token_emb.weight, student.pos_emb.weight]
    groups = [
        {"params": weights, "lr": LEARNING_RATE, "weight_decay": 0.01},
        {"params": vectors, "lr": LEARNING_RATE, "weight_decay": 0.0},
        {"params": embeddings, "lr": EMBEDDING_RATE, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)


def train(student, texts, ids, rows, total, report):
    chance = random.Random(SEED)
    optimizer = optimizer_of(student)
    rates = [group["lr"] for group in optimizer.param_groups]
    half = half_floats()
    done, start, shown, losses = 0, time.monotonic(), time.monotonic(), []
    while done < total:
        items = [*zip(ids, rows, strict=True), *passages(texts, ids, rows, chance)]
        for part in batches(items, chance):
            for group, base in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = base * rate(min(1, done / total))
            targets = torch.from_numpy(np.stack([items[i][1] for i in part]).astype(np.float32))
            sequences, lengths = students.padded([items[i][0] for i in part])
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                vectors = student(sequences, lengths)
            loss = distance(vectors.float(), functional.normalize(targets, dim=-1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            done += int(lengths.sum())
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                speed = f"{done / (shown - start):.0f} tokens/s"
                print(f"{done / total:4.0%} loss {np.mean(losses):.4f} {report(student)} {speed}", flush=True)
                losses = []
            if done >= total:
                break


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    work = pathlib.Path(sys.argv[1])
    total = 1e6 * float(sys.argv[2] if len(sys.argv) == 3 else 3)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(work / "tokenizer.model"))
    texts = json.loads((work / "train.json").read_text())
    ids = [sequence[:LONGEST] for sequence in tokenizer.encode([text["text"] for text in texts])]
    rows = np.load(work / "train.npy")
    print(f"{len(texts)} texts, {sum(map(len, ids))} tokens")

    dev_texts = json.loads((work / "dev.json").read_text())
    chosen = random.Random(SEED).sample(range(len(dev_texts)), 400)
    dev_ids = tokenizer.encode([dev_texts[i]["text"] for i in chosen])
    dev_rows = np.load(work / "dev.npy")[chosen].astype(np.float32)

    def report(student):
        rows = students.embed(student, dev_ids)
        student.train()
        return f"dev cosine {(rows * dev_rows).sum(-1).mean():.4f}"

    counts = np.bincount(np.concatenate(ids), minlength=students.PARAMS["num_tokens"])
    student = initial(np.load(work / "pieces.npy").astype(np.float32), counts)
    students.save(student, work / "initial")
    print(f"{sum(p.numel() for p in student.parameters())} parameters, at first {report(student)}", flush=True)
    start = time.monotonic()
    train(student, texts, ids, rows, total, report)
    students.save(student, work / "student")
    print(f"trained in {time.monotonic() - start:.0f} s, {report(student)}")


if __name__ == "__main__":
    main()
