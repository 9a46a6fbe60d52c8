#!/usr/bin/env python3
"""Fails where system/reliability/inputs.md names a test or a source that is not there (any more)."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST = re.compile(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
NAMED = re.compile(r"`([A-Z]\w+)\.([\w…]+)`")
SOURCE = re.compile(r"`((?:\w+/)+\w+\.(?:cc|h|py))`")


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


if __name__ == "__main__":
    path = "tests/system/reliability/inputs.md"
    faults = [f"{path}:{fault}" for fault in missing((ROOT / path).read_text(), tests())]
    sys.exit("\n".join(faults) or 0)
