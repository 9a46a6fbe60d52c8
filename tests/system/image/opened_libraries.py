#!/usr/bin/env python3
"""Lists what the libraries of a folder open by name, and fails where the folder lacks it.

usage: tests/system/image/opened_libraries.py FOLDER

The linker knows what a library is linked to; what it opens at run time stands in it as a name alone.
Names that are neither there nor in ABSENT are printed, each with the libraries that hold it.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

NAME = re.compile(rb"lib[A-Za-z0-9_+-]+\.so(?:\.[0-9]+)*")

# What need not be there, and why.
ABSENT = {
    "the system's": r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util|resolv|ssl|crypto)\.so",
    "the driver's": r"lib(cuda|nvidia-ml|nvidia-ptxjitcompiler|cudadebugger)\.so",
    "of networks that one GPU does not need": r"lib(ibverbs|mlx5|rdmacm|fabric|mpi|pmix?|nccl-net|nccl-tuner"
                                              r"|nccl-profiler|gdrapi|cufile_rdma|nvshmem\w*|oshmem|ucp)",
    "of other devices and tools": r"lib(mkl\w*|memkind|neuralnetworks|ittnotify|torch_python|torch|shm|nvToolsExt"
                                  r"|cupti|Injection\w*|nvperf\w*|libaccinj\w*|checkpoint)\.so",
}


def names_in(library):
    """All names of libraries that stand in the file, read piece by piece."""
    found = set()
    rest = b""
    with open(library, "rb") as file:
        while piece := file.read(1 << 24):
            found.update(NAME.findall(rest + piece))
            rest = piece[-64:]
    return {name.decode() for name in found}


def needed_by(library):
    out = subprocess.run(["objdump", "-p", str(library)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED\s+(\S+)", out))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    libraries = sorted(path for path in Path(sys.argv[1]).glob("*.so*") if path.is_file())
    present = [path.name for path in libraries]
    absent = re.compile("|".join(f"^(?:{pattern})" for pattern in ABSENT.values()))
    missing = collections.defaultdict(list)
    for library in libraries:
        if library.is_symlink():
            continue
        for name in names_in(library) - needed_by(library):
            # Some put the version behind the name themselves.
            if not absent.match(name) and not any(there.startswith(name) for there in present):
                missing[name].append(library.name)
    for name, holders in sorted(missing.items()):
        print(f"{name} is not there, which {', '.join(holders)} may open")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
