"""Writes the fixture of tests/data/sentence_encoder, and shows that linserve gives the student's numbers.

usage: fixture.py WORK MODEL LINSERVE DIRECTORY

Takes 64 texts: sentences and paragraphs of the Jargon File (public domain, of the split `test`) and
EDGES. Writes DIRECTORY/texts.txt, a text a line; ids.jsonl, a list of token ids a line, as
SentencePiece makes them; embeddings.safetensors, `embeddings` [64, 384] in f32: the means of the
rows, of length one, by PyTorch. LINSERVE is the program; `linserve run` must agree to 1e-5.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import sentencepiece
from safetensors.numpy import load_file, save_file

import student as students

SEED = 3
SOURCE = "jargon-text/"
PARAGRAPHS = 6
TEXTS = 64
TOLERANCE = 1e-5
EDGES = [
    "kernel",
    "KERNEL",
    "What is a kernel?",
    "  white   space  is squeezed  ",
    "naïve café, 10 µs, ½ of it",
    "bytes for what has no piece: 漢字 🙂",
    "f(x) = {x | x != 0} && ~mask << 3;",
    "https://www.debian.org/doc/",
    "1234567890",
    ".",
]


def by_linserve(linserve, model, ids):
    """Means of the rows that the server's engine gives, of length one."""
    with tempfile.TemporaryDirectory() as folder:
        given, taken = f"{folder}/in.safetensors", f"{folder}/out.safetensors"
        padded, lengths = students.padded(ids)
        save_file({"input.x": padded.numpy(), "input.lengths": lengths.numpy()}, given)
        command = [linserve, "run", "--model", str(model), "--input", given, "--output", taken, "--outputs", "y"]
        subprocess.run(command, check=True)
        rows = load_file(taken)["output.y"]
    means = np.stack([row[: len(sequence)].mean(0) for row, sequence in zip(rows, ids, strict=True)])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def main():
    if len(sys.argv) != 5 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    work, model, linserve, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(SEED)
    found = [text for text in json.loads((work / "test.json").read_text()) if text["document"].startswith(SOURCE)]
    paragraphs = [text["text"] for text in found if text["kind"] == "paragraph"]
    sentences = [text["text"] for text in found if text["kind"] == "sentence"]
    texts = chance.sample(sentences, TEXTS - PARAGRAPHS - len(EDGES)) + chance.sample(paragraphs, PARAGRAPHS) + EDGES

    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
    ids = tokenizer.encode(texts)
    expected = students.embed(students.load(model), ids)
    error = np.abs(expected - by_linserve(linserve, model, ids)).max()
    print(f"{len(texts)} texts, {sum(map(len, ids))} tokens, linserve is off by {error:.1e} at most")
    if error > TOLERANCE:
        sys.exit(f"fixture.py: more than {TOLERANCE}")
    (folder / "texts.txt").write_text("".join(text + "\n" for text in texts))
    (folder / "ids.jsonl").write_text("".join(json.dumps(sequence) + "\n" for sequence in ids))
    save_file({"embeddings": expected}, folder / "embeddings.safetensors")


if __name__ == "__main__":
    main()
