#!/usr/bin/env python3
"""Fails where system/reliability/inputs.md names a test or a source that is not there (any more), or leaves out a field of
a message or a member of JSON."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST = re.compile(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
NAMED = re.compile(r"`([A-Z]\w+)\.([\w…]+)`")
SOURCE = re.compile(r"`((?:\w+/)+\w+\.(?:cc|h|py))`")

MEMBER = re.compile(r'(?:\{|NotHere\(reader, )"(\w+)",\s*(?:\[&\]|read_|"[^"]* )')  # a JsonMember
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.S | re.M)
SENT = re.compile(r"Request|Parameter|Contents|Options|^Sequence|SessionChunk|^Tensor$")  # by callers
UNREAD = re.compile(r"RerankStream")  # of text-embeddings-inference: the answer is UNIMPLEMENTED
FIELD = re.compile(r"^ +(?:optional |repeated )?(?!bool)(?:map<[^>]*>|[\w.]+) (\w+) = \d+", re.M)


def tests():
    """All tests of GoogleTest, as "Suite.Test"."""
    return {".".join(found) for source in (ROOT / "tests").rglob("*_test.cc")
            for found in TEST.findall(source.read_text())}


def missing(page, known):
    for number, line in enumerate(page.splitlines(), 1):
        for source in SOURCE.findall(line):
            if not any((ROOT / place / source).exists() for place in ("server", "tests", "")):
                yield f"{number}: there is no {source}"
        # Fields look like tests; they stand in the first column.
        for suite, test in NAMED.findall(line if not line.startswith("|") else line.rsplit("|", 2)[1]):
            if not any(name.startswith(f"{suite}.{test.rstrip('…')}") for name in known):
                yield f"{number}: there is no test {suite}.{test}"


def left_out(page):
    """Yields what a caller can fill and the page does not name."""
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", page))))
    for source in sorted((ROOT / "server" / "rest").rglob("*.cc")):
        yield from (f"it does not name '{member}' of server/rest/{source.name}"
                    for member in MEMBER.findall(source.read_text()) if member not in named)
    for source in ("linserve/v1/embedding", "inference/grpc_service", "tei/v1/tei"):
        for message, body in MESSAGE.findall((ROOT / "proto" / f"{source}.proto").read_text()):
            if SENT.search(message) and not UNREAD.search(message):
                yield from (f"it does not name {message}.{field}" for field in FIELD.findall(body) if field not in named)


if __name__ == "__main__":
    path = "tests/system/reliability/inputs.md"
    text = (ROOT / path).read_text()
    faults = [f"{path}:{fault}" for fault in missing(text, tests())] + [f"{path}: {fault}" for fault in left_out(text)]
    sys.exit("\n".join(faults) or 0)
