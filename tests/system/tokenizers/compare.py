#!/usr/bin/env python3
"""Compares the token ids of texts with those of the package `tokenizers`, for a tokenizer of each kind.

usage: compare.py ENCODE_LINES [--lines N] [--vocabulary N] [--pairs N] [--places] [--only NAME] [--tokenizer FILE…]

ENCODE_LINES is the program of this folder. The tokenizers are trained here; those of --tokenizer are tried as well.
A text whose ids differ is shown, and so are two texts that are read together and cut to some length; then the exit
code is 1. --places compares where the tokens stand, too, and says how
many of those differ, which they may: the package moves some that it composes or puts before a text.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.dont_write_bytecode = True
try:
    from tokenizers import Tokenizer
except ImportError:
    print("compare: the package tokenizers is not installed (tests/system/tokenizers/install)")
    sys.exit(77)
import texts  # noqa: E402
import trained  # noqa: E402

SHOWN = 5
CUTS = [("none", 0)] + [(side, longest) for side in ("left", "right") for longest in (4, 5, 6, 7, 12, 25, 200, 1001)]
LONG = 200  # of more characters are texts that are not cut to a few tokens: the package keeps all that it cuts off


def run(program, path, inputs, *options):
    lines = "\n".join(json.dumps(one) for one in inputs) + "\n"
    done = subprocess.run([program, path, *options], input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare: {program} {path}: {done.stderr.strip()}")
    return done.stdout.split("\n")[:-1]  # and not at what else Unicode has for the end of a line


def byte_places(text, offsets):
    """Offsets of characters as those of bytes."""
    at, places = 0, [0]
    for character in text:
        at += len(character.encode())
        places.append(at)
    return [(places[begin], places[end]) for begin, end in offsets]


def compare_places(tokenizer, inputs, found):
    """How many tokens stand elsewhere, and how many there are."""
    differ = count = 0
    for text, line in zip(inputs, found):
        encoding = tokenizer.encode(text)
        ours = [part.split(":")[1:] for part in line.split()]
        theirs = byte_places(text, encoding.offsets)
        for own, place, mark in zip(ours, theirs, encoding.special_tokens_mask):
            if own and not mark:
                count += 1
                differ += (int(own[0]), int(own[1])) != place
    return differ, count


def encode_pairs(tokenizer, pairs, side, longest):
    """What the package makes of pairs, as the program prints it."""
    if longest:
        tokenizer.enable_truncation(longest, strategy="longest_first", direction=side)
    encodings = tokenizer.encode_batch(pairs)
    tokenizer.no_truncation()
    for encoding in encodings:
        typed = any(encoding.type_ids)
        yield "".join(f"{one}:{kind} " if typed else f"{one} " for one, kind in zip(encoding.ids, encoding.type_ids))


def compare_pairs(program, name, tokenizer, path, inputs, count, chance):
    """Says how many of so many pairs differ, with their types if the files beside the tokenizer ask for them."""
    asked, expected = [], []
    short = [text for text in inputs if len(text) <= LONG]
    for side, longest in CUTS:
        some = short if 0 < longest <= LONG else inputs
        pairs = [(chance.choice(some), chance.choice(some)) for _ in range(count // len(CUTS))]
        asked += [[*pair, side, longest] for pair in pairs]
        expected += encode_pairs(tokenizer, pairs, side, longest)
    found = run(program, path, asked, "--pairs")
    if not Path(path).with_name("tokenizer_config.json").exists():
        expected = ["".join(f"{one.split(':')[0]} " for one in line.split()) for line in expected]
    wrong = [each for each in zip(asked, expected, found) if each[1] != each[2]]
    for pair, want, got in wrong[:SHOWN]:
        print(f"  {name}: {str(pair)[:300]}\n    package {want[:300]}\n    here    {got[:300]}")
    print(f"{name}: {len(asked)} pairs, {len(wrong)} differ", flush=True)
    return len(wrong) + abs(len(asked) - len(found))


def compare(program, name, tokenizer, path, inputs, with_places):
    expected = [encoding.ids for encoding in tokenizer.encode_batch(inputs)]
    found = run(program, path, inputs)
    wrong = [(text, want, got) for text, want, got in zip(inputs, expected, found)
             if got != "".join(f"{one} " for one in want)]
    if len(found) != len(inputs):
        sys.exit(f"compare: {name}: {len(found)} answers to {len(inputs)} lines")
    for text, want, got in wrong[:SHOWN]:
        print(f"  {name}: {text[:300]!r}\n    package {want[:60]}\n    here    {got[:300]}")
    some = [ids for ids in expected if ids][:20000]
    decoded = tokenizer.decode_batch(some)
    undecoded = [(ids, want, got) for ids, want, got in zip(some, decoded, run(program, path, some, "--decode"))
                 if json.loads(got) != want]
    for ids, want, got in undecoded[:SHOWN]:
        print(f"  {name}: decode {ids[:40]}\n    package {want[:200]!r}\n    here    {got[:200]}")
    line = f"{name}: {len(inputs)} lines, {len(wrong)} differ; {len(some)} decoded, {len(undecoded)} differ"
    if with_places:
        sample = inputs[:20000]
        differ, count = compare_places(tokenizer, sample, run(program, path, sample, "--places"))
        line += f"; {count} places, {differ} differ"
    print(line, flush=True)
    return len(wrong) + len(undecoded)


def configure(path, tokenizer):
    """Lets the model take types of tokens, unless one text has some other than 0, which is not served."""
    beside = Path(path).with_name("tokenizer_config.json")
    if any(tokenizer.encode("a").type_ids):
        beside.unlink(missing_ok=True)
    else:
        beside.write_text(json.dumps({"model_input_names": ["input_ids", "token_type_ids"]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=6000, help="of documentation and translations")
    parser.add_argument("--sample", type=int, default=5000,
                        help="how many of them and of Unicode's examples to try, others each time; 0: all")
    parser.add_argument("--learned", type=int, default=2000, help="texts that the tokenizers are trained with")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--vocabulary", type=int, default=3000)
    parser.add_argument("--pairs", type=int, default=1700, help="of texts that are read together")
    parser.add_argument("--places", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--tokenizer", action="append", default=[])
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    chance = random.Random(arguments.seed)
    inputs = list(texts.corpus(arguments.lines))
    if 0 < arguments.sample < len(inputs):
        inputs = chance.sample(inputs, arguments.sample)
    learned = [text for text in texts.corpus(20000, seed=2) if len(text) < 400][-20000:]
    learned = chance.sample(learned, min(len(learned), arguments.learned))
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.only or trained.KINDS:
            if name not in trained.KINDS:
                continue
            tokenizer = trained.train(name, learned, arguments.vocabulary)
            path = str(Path(directory) / "tokenizer.json")
            tokenizer.save(path)
            configure(path, tokenizer)
            failed += compare(arguments.program, name, tokenizer, path, inputs, arguments.places)
            failed += compare_pairs(arguments.program, name, tokenizer, path, inputs, arguments.pairs, chance)
        for path in arguments.tokenizer:
            tokenizer = Tokenizer.from_file(path)
            tokenizer.no_padding()
            tokenizer.no_truncation()
            failed += compare(arguments.program, path, tokenizer, path, inputs, arguments.places)
            failed += compare_pairs(arguments.program, path, tokenizer, path, inputs, arguments.pairs, chance)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
