"""The Python package of client/python, built and installed as pip does it."""

import atexit
import functools
import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "client/python"


def install(folder):
    """Installs it into the folder. Nothing is left in the checkout, nor is anything downloaded."""
    with tempfile.TemporaryDirectory() as copy:
        for part in (SOURCE, "proto", "deploy/service_config.json"):
            place = Path(copy, part)
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, place, ignore=shutil.ignore_patterns("build", "*.egg-info"))
            else:
                shutil.copy(ROOT / part, place)
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                               "--no-index", "--no-deps", "--no-build-isolation", "--upgrade", "--target", folder,
                               Path(copy, SOURCE)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout)


@functools.cache
def _site():
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    install(folder.name)
    sys.path.insert(0, folder.name)


def load(module):
    """A module of the package, which is installed for this process."""
    _site()
    return importlib.import_module(module)
