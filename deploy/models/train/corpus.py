"""Makes the corpus: sentences, paragraphs and headings of English prose, split by package.

usage: corpus.py WORK

Reads WORK/root/PACKAGE (what the packages of packages.txt hold), writes WORK/train.json, dev.json
and test.json, each a list of {kind, text, document}. Nothing occurs twice, and what shares eight
words in a row with dev or test is not in train.
"""

import json
import pathlib
import random
import re
import sys
from collections import Counter

import extract

SEED = 11
SHINGLE = 8
# Words of each kind that a package of share 1 gives at most, so that none dominates.
TRAIN_WORDS = {"sentence": 80_000, "paragraph": 25_000, "heading": 3_000}
HELD_OUT_WORDS = {"sentence": 80_000, "paragraph": 80_000, "heading": 0}
COMMON = frozenset(
    "a an and are as at be been but by can do for from has have if in into is it its may more must no not of on "
    "or should such than that the their there these they this to was were when which who will with would you".split()
)
SENTENCE_END = re.compile(r"(?<=[.?!])[\"')\]”]*\s+(?=[\"'(\[“]?[A-Z])")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|Mr|Mrs|Dr|St|No|Fig|p|pp|v|[A-Z])\.$")


def sentences_of(text):
    parts = []
    for part in SENTENCE_END.split(text):
        if parts and ABBREVIATION.search(parts[-1]):
            parts[-1] += " " + part
        else:
            parts.append(part)
    return parts


def words_of(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def is_prose(text):
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in text)
    words = words_of(text)
    return letters >= 0.88 * len(text) and sum(word in COMMON for word in words) >= 0.2 * len(words)


def is_sentence(text):
    return 5 <= len(text.split()) <= 60 and text[-1] in ".?!" and is_prose(text)


def is_paragraph(text):
    return 40 <= len(text.split()) <= 180 and text[-1] in ".?!:" and len(sentences_of(text)) >= 3 and is_prose(text)


def is_heading(text):
    return 2 <= len(text.split()) <= 9 and all(c.isascii() for c in text) and text[0].isalpha()


def texts_of(path):
    """(kind, text) of a document; a sentence of a paragraph is one by itself, too."""
    short = []  # blocks too short for a paragraph, one after the other
    for heading, block in extract.blocks_of(path):
        if heading:
            if is_heading(block):
                yield "heading", block
            continue
        if is_paragraph(block):
            yield "paragraph", block
        elif path.suffix != ".dz" and is_prose(block) and len(block.split()) < 120:
            short.append(block)
            if is_paragraph(" ".join(short)):
                yield "paragraph", " ".join(short)
                short = []
        else:
            short = []
        for sentence in sentences_of(block):
            if is_sentence(sentence):
                yield "sentence", sentence


def read(package, paths, limits):
    """The texts of a package, a random part of it where there are more words than `limits`."""
    found = []
    for path in sorted(paths):
        for kind, text in texts_of(path):
            found.append({"kind": kind, "text": text, "document": f"{package}/{path.name}"})
    order = list(range(len(found)))
    random.Random(SEED).shuffle(order)
    used, chosen = Counter(), []
    for index in order:
        kind = found[index]["kind"]
        if used[kind] < limits[kind]:
            used[kind] += len(found[index]["text"].split())
            chosen.append(index)
    return [found[index] for index in sorted(chosen)]


def unique(texts):
    seen, kept = set(), []
    for text in texts:
        key = (text["kind"], " ".join(words_of(text["text"])))
        if key not in seen:
            seen.add(key)
            kept.append(text)
    return kept


def shingles(text):
    words = words_of(text)
    return {" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1))}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    work = pathlib.Path(sys.argv[1])
    splits = {"train": [], "dev": [], "test": []}
    for line in (pathlib.Path(__file__).parent / "packages.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        split, share, package, _, pattern = line.split()
        words = TRAIN_WORDS if split == "train" else HELD_OUT_WORDS
        limits = {kind: int(share) * count for kind, count in words.items()}
        texts = read(package, (work / "root" / package).glob(pattern), limits)
        splits[split] += texts
        counts = Counter(text["kind"] for text in texts)
        print(f"{split:5} {package:24} {dict(counts)}", flush=True)
    splits = {name: unique(texts) for name, texts in splits.items()}
    held_out = set()
    for name in ("dev", "test"):
        for text in splits[name]:
            held_out |= shingles(text["text"])
    before = len(splits["train"])
    splits["train"] = [text for text in splits["train"] if not shingles(text["text"]) & held_out]
    print(f"{before - len(splits['train'])} texts of train overlap dev or test and are left out")
    for name, texts in reversed(splits.items()):
        words = sum(len(text["text"].split()) for text in texts)
        print(f"{name}: {dict(Counter(text['kind'] for text in texts))}, {words} words")
        (work / f"{name}.json").write_text(json.dumps(texts, ensure_ascii=False, indent=0))


if __name__ == "__main__":
    main()
