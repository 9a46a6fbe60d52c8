"""Brings into the package what the repository has elsewhere: the protocol's stubs, and how calls are spread."""

import re
import shutil
from pathlib import Path

from grpc_tools import protoc
from setuptools import setup

HERE = Path(__file__).resolve().parent
STUBS = HERE / "linserve/v1"


def make_stubs(protocols):
    STUBS.mkdir(exist_ok=True)
    (STUBS / "__init__.py").touch()
    arguments = [f"-I{protocols}", f"--python_out={HERE}", f"--pyi_out={HERE}", f"--grpc_python_out={HERE}"]
    if protoc.main(["protoc", *arguments, "linserve/v1/embedding.proto"]):
        raise SystemExit(f"the stubs of {protocols}/linserve/v1/embedding.proto cannot be made")


def least(file, pattern, otherwise):
    """The version that a stub says it needs; older tools wrote none, and their stubs work with all since."""
    found = re.search(pattern, (STUBS / file).read_text(encoding="utf-8"))
    return found[1] if found else otherwise


# A source distribution has both, and no repository around it.
ROOT = HERE.parents[1]
if (ROOT / "proto").is_dir():
    make_stubs(ROOT / "proto")
    shutil.copy(ROOT / "deploy/service_config.json", HERE / "linserve")
setup(package_data={"linserve": ["service_config.json"], "linserve.v1": ["*.pyi"]}, install_requires=[
    "numpy", "grpcio>=" + least("embedding_pb2_grpc.py", r"GRPC_GENERATED_VERSION = '([^']+)'", "1.49"),
    "protobuf>=" + least("embedding_pb2.py", r"# Protobuf Python Version: ([5-9]\S+)", "4.21")])
