"""The names of metrics that a text mentions, and those that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def mentioned(text):
    """Of the server's own metrics; not what is in the name of a recording rule."""
    return set(re.findall(r"(?<![\w:])(?:linserve|process)_\w+(?![\w:])", text))


def exposed(page):
    """Names of the metrics of a page of /metrics, and of their series."""
    return set(re.findall(r"^(?:# TYPE )?([a-z]\w*)[{ ]", page, re.MULTILINE))


def listed(pattern):
    """Names in the table of server/telemetry/README.md, which telemetry's tests compare with the code."""
    table = (ROOT / "server/telemetry/README.md").read_text(encoding="utf-8")
    return set(re.findall(rf"^\| `(linserve_{pattern})`", table, re.MULTILINE))


def of_gpus():
    """What only a server with a GPU has."""
    return listed(r"device_memory_\w+")


def of_secured():
    """What only a server with tokens or a certificate has."""
    return listed(r"(?:caller|certificate)_\w+")
