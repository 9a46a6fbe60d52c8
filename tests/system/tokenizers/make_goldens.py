#!/usr/bin/env python3
"""Writes tests/data/tokenizers: a small tokenizer of each kind, texts, and what the package makes of them.

usage: make_goldens.py, in an environment with requirements.txt

The rules of NFKC are left out of the tokenizers, for they are large: @charsmap stands for those of the bundled
sentence encoder.
"""

import base64
import json
import random
import sys

sys.dont_write_bytecode = True
import texts  # noqa: E402
import trained  # noqa: E402

PLACE = trained.ROOT / "tests/data/tokenizers"
LONG = "The server of texts answers 12 times, café [MASK] and, in 3.5 s, 你好。It's e\u0301! " * 120
VOCABULARY = {"unigram-bytes": 500, "llama": 500}
COMPARED_ALONE = {"gemma"}  # its parts are those of llama and words-next


def digest(ids):
    """One number for many."""
    value = 0
    for one in ids:
        value = (value * 31 + one + 1) % (1 << 64)
    return value


def main():
    chance = random.Random(7)
    inputs = texts.HARD + [texts.random_text(chance, 12) for _ in range(30)]
    inputs += [texts.random_points(chance, 12) for _ in range(10)]
    learned = (trained.ROOT / "tests/data/sentence_encoder/texts.txt").read_text().splitlines()
    learned += texts.HARD * 3
    PLACE.mkdir(exist_ok=True)
    rules = base64.b64encode(trained.charsmap()).decode()
    goldens = {"texts": inputs, "long": LONG, "tokenizers": {}}
    for name in trained.KINDS:
        if name in COMPARED_ALONE:
            continue
        tokenizer = trained.train(name, learned, VOCABULARY.get(name, 330))
        saved = tokenizer.to_str().replace(rules, "@charsmap")
        (PLACE / f"{name}.json").write_text(saved + "\n")
        encodings = tokenizer.encode_batch(inputs)
        goldens["tokenizers"][name] = {
            "ids": [encoding.ids for encoding in encodings],
            "long": digest(tokenizer.encode(LONG).ids),
            "decoded": tokenizer.decode_batch([encoding.ids or [0] for encoding in encodings]),
            "with_marks": tokenizer.decode(encodings[9].ids, skip_special_tokens=False)}
    (PLACE / "goldens.json").write_text(json.dumps(goldens, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
