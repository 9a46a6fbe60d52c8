"""The folder all-MiniLM-L6-v2 with its true weights, as deploy/run --model serves it, and sentences to embed with it."""

import os
import random
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build/models/all-MiniLM-L6-v2"


def fetch():
    """Runs the demonstration, which leaves the folder behind, and returns what it printed."""
    # Every address of 127.0.0.0/8 is this machine's.
    host = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
    environment = os.environ | {"LINSERVE_GRPC_ADDRESS": f"{host}:8500", "LINSERVE_HTTP_ADDRESS": f"{host}:8080"}
    done = subprocess.run([ROOT / "deploy/run", "--model", "all-MiniLM-L6-v2", "--exit"], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"deploy/run ended with code {done.returncode}:\n{done.stdout}")
    return done.stdout


def sentences(number, seed):
    """Different sentences of the descriptions of Debian's packages."""
    text = subprocess.run(["dpkg-query", "-W", "-f", "${Description}\n.\n"], check=True, capture_output=True,
                          text=True).stdout
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n *\.\n|\n(?! )", text))
    found = {one for paragraph in paragraphs for one in re.split(r"(?<=[.!?]) ", paragraph) if len(one.split()) >= 8}
    return random.Random(seed).sample(sorted(found), number)
