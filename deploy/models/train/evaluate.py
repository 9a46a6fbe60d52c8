"""Compares the student with its teacher on text that it was not trained on.

usage: evaluate.py WORK MODEL [dev | test]

Reads WORK/test.json (or dev.json) with its .npy and the model directory MODEL, writes
WORK/figures-test.json and prints the table of the model card:
pairs      5,000 pairs of sentences, half of them random, half near neighbours by the teacher:
           Spearman's correlation of the cosine with the teacher's
retrieval  2,000 paragraphs, a sentence of each: how often its paragraph is among the 10 nearest of
           all; the paragraph as it stands, and with that sentence taken out of it
Beside the student stand the teacher, a hashed bag of words, the student before training (a weighed
mean of the teacher's vectors of the pieces) and the same network with random weights.
"""

import json
import pathlib
import random
import sys
import zlib

import numpy as np
import sentencepiece
import torch

import corpus
import student as students
from teacher import Teacher

SEED = 5
PAIRS = 5000
PARAGRAPHS = 2000
NEIGHBOURS = 10
BUCKETS = 4096


def bag_of_words(texts):
    rows = np.zeros((len(texts), BUCKETS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in corpus.words_of(text):
            row[zlib.crc32(word.encode()) % BUCKETS] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def with_teacher(texts, rows):
    """What was embedded before is not embedded again."""
    known = {text["text"]: row for text, row in zip(texts, rows, strict=True)}

    def embed(wanted):
        missing = [text for text in dict.fromkeys(wanted) if text not in known]
        if missing:
            known.update(zip(missing, Teacher().embed(missing), strict=True))
        return np.stack([known[text] for text in wanted])

    return embed


def with_student(student, tokenizer):
    longest = students.PARAMS["seq_len"]
    return lambda texts: students.embed(student, [ids[:longest] for ids in tokenizer.encode(texts)])


def methods_of(work, model, texts, rows):
    """Name -> a function from texts to rows of length one."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
    torch.manual_seed(SEED)
    untrained = students.Student()
    return {
        "teacher": with_teacher(texts, rows),
        "student": with_student(students.load(model), tokenizer),
        "hashed bag of words": bag_of_words,
        "before training": with_student(students.load(work / "initial"), tokenizer),
        "random weights": with_student(untrained, tokenizer),
    }


def ranks(values):
    """Ranks from 0 on, equal values sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2)[inverse]


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def pairs_of(rows, chance):
    """Index pairs: a random half, and a half in which the second is near the first by `rows`."""
    chosen = [chance.sample(range(len(rows)), 2) for _ in range(PAIRS // 2)]
    for i in chance.sample(range(len(rows)), PAIRS // 2):
        cosines = rows @ rows[i]
        cosines[i] = -2
        chosen.append([i, int(chance.choice(np.argsort(-cosines)[:NEIGHBOURS]))])
    return np.array(chosen)


def questions_of(paragraphs, chance):
    """For each paragraph a sentence of it, and the paragraph without that."""
    questions, rests = [], []
    for text in paragraphs:
        sentences = corpus.sentences_of(text)
        drawn = chance.choice([i for i, s in enumerate(sentences) if len(s.split()) >= 5])
        questions.append(sentences[drawn])
        rests.append(" ".join(sentences[:drawn] + sentences[drawn + 1 :]))
    return questions, rests


def recall(questions, paragraphs, count):
    cosines = questions @ paragraphs.T
    better = (cosines > np.diag(cosines)[:, None]).sum(1)
    return float((better < count).mean())


def figures_of(embed, pairs, teacher, paragraphs, questions, rests):
    """`pairs` is a pair of lists of texts, `teacher` their cosines by the teacher."""
    cosines = (embed(pairs[0]) * embed(pairs[1])).sum(1)
    half = PAIRS // 2
    asked, whole, rest = embed(questions), embed(paragraphs), embed(rests)
    return {
        "spearman": spearman(cosines, teacher),
        "spearman, random half": spearman(cosines[:half], teacher[:half]),
        "spearman, near half": spearman(cosines[half:], teacher[half:]),
        "recall@10": recall(asked, whole, 10),
        "recall@1": recall(asked, whole, 1),
        "recall@10, taken out": recall(asked, rest, 10),
        "recall@1, taken out": recall(asked, rest, 1),
    }


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    work, model = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    split = sys.argv[3] if len(sys.argv) == 4 else "test"
    chance = random.Random(SEED)
    texts = json.loads((work / f"{split}.json").read_text())
    rows = np.load(work / f"{split}.npy").astype(np.float32)
    sentences = [i for i, text in enumerate(texts) if text["kind"] == "sentence"]
    paragraphs = [text["text"] for text in texts if text["kind"] == "paragraph"]
    vectors = rows[sentences]
    chosen = pairs_of(vectors, chance)
    pairs = [[texts[sentences[i]]["text"] for i in side] for side in chosen.T]
    teacher = (vectors[chosen[:, 0]] * vectors[chosen[:, 1]]).sum(1)
    paragraphs = chance.sample(paragraphs, min(PARAGRAPHS, len(paragraphs)))
    questions, rests = questions_of(paragraphs, chance)

    figures = {}
    for name, embed in methods_of(work, model, texts, rows).items():
        figures[name] = figures_of(embed, pairs, teacher, paragraphs, questions, rests)
        print(name, {key: round(value, 4) for key, value in figures[name].items()}, flush=True)
    (work / f"figures-{split}.json").write_text(json.dumps(figures, indent=2) + "\n")
    print("\n| | " + " | ".join(figures["teacher"]) + " |\n|" + " --- |" * (1 + len(figures["teacher"])))
    for name, values in figures.items():
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in values.values()) + " |")


if __name__ == "__main__":
    main()
