#!/usr/bin/env python3
"""Proves from the #include lines that every layer keeps to its border.

usage: tests/check_layers.py [ROOT]

Prints one line for every include that crosses a border and exits with 1 if there is any. What a
layer may include stands in ALLOWED and LIBRARIES; a new layer starts with a line in each.
"""

import os
import re
import sys
from collections import deque
from pathlib import Path

# Which layers a layer may include, besides itself. `main` is server/*.{h,cc}: main, config, commands.
ALLOWED = {
    "core": set(),
    "telemetry": {"core"},
    "batching": {"core", "telemetry"},
    "access": {"core", "telemetry", "batching"},
    "engine": {"core", "telemetry", "batching"},
    "attention": {"core"},
    "models": {"core", "telemetry", "batching", "engine", "attention"},
    "cuda": {"core", "attention"},
    "http": {"core", "telemetry", "batching", "access"},
    "text": {"core", "telemetry"},
    "rpc": {"core", "telemetry", "batching", "engine", "access", "text"},
    "rest": {"core", "telemetry", "batching", "engine", "access", "text", "rpc", "http"},
    "client": {"core"},
}
ALLOWED["main"] = set(ALLOWED) - {"client", "cuda"}
ALLOWED["tests"] = set(ALLOWED) | {"tests"}

# Which layers may include LibTorch's and protobuf's headers. No file may reach both: the wheel of
# LibTorch brings protobuf 3.13 headers, which the system's protobuf does not go together with.
LIBRARIES = {
    "LibTorch": {"attention", "models", "cuda", "tests"},
    "protobuf": {"rpc", "rest", "client", "tests"},
}
# These must not even reach a library through the layers below.
FREE_OF_LIBRARIES = {"main"}

SOURCES = {".cc", ".cu"}
HEADERS = {".h", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def library_of(include):
    """The library that an include that is no file of ours belongs to, or None."""
    first = include.split("/")[0]
    if first in {"ATen", "c10", "caffe2", "torch"}:
        return "LibTorch"
    if (include.endswith(".pb.h") or include.startswith("google/protobuf/")
            or first.startswith("grpc")):
        return "protobuf"
    return None


def includes_of(path):
    """Yields (line number, what is included) of a file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


class Tree:
    """The sources of a checkout and what they include. Paths are relative to the root."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.files = sorted(
            path.relative_to(self.root)
            for folder in ("server", "client", "tests")
            for path in (self.root / folder).rglob("*")
            if path.suffix in SOURCES | HEADERS)
        self.includes = {path: list(includes_of(self.root / path)) for path in self.files}

    def resolve(self, path, include):
        """The file of ours that an include means, or None. Follows the build's include folders."""
        for folder in (path.parent, Path("server"), Path("."), Path("client"), Path("tests")):
            candidate = Path(os.path.normpath(folder / include))
            if candidate in self.includes:
                return candidate
        return None

    def reached_by(self, path):
        """Maps every file of ours that a file reaches, itself included, to the one including it."""
        parents = {path: None}
        queue = deque([path])
        while queue:
            current = queue.popleft()
            for _, include in self.includes[current]:
                target = self.resolve(current, include)
                if target and target not in parents:
                    parents[target] = current
                    queue.append(target)
        return parents

    def libraries_reached_by(self, path):
        """Maps each library that a file reaches to the chain of includes that leads there."""
        found = {}
        parents = self.reached_by(path)
        for current in parents:
            for _, include in self.includes[current]:
                library = None if self.resolve(current, include) else library_of(include)
                if library and library not in found:
                    found[library] = chain(parents, current) + [include]
        return found


def chain(parents, path):
    """The includes that lead to a file, from where parents starts."""
    steps = []
    while path:
        steps.insert(0, str(path))
        path = parents[path]
    return steps


def layer_of(path):
    """The layer that a file of ours belongs to."""
    parts = path.parts
    if parts[0] == "server":
        return parts[1] if len(parts) > 2 else "main"
    return parts[0]


def layer_included(tree, path, include):
    """The layer that an include means, or None if it is none of ours. Files may be missing."""
    if target := tree.resolve(path, include):
        return layer_of(target)
    parts = [part for part in Path(include).parts if part not in {"..", "server"}]
    return parts[0] if len(parts) > 1 and parts[0] in ALLOWED else None


def check_includes(tree, path):
    """Yields what is wrong with the include lines of one file."""
    layer = layer_of(path)
    for number, include in tree.includes[path]:
        target = layer_included(tree, path, include)
        library = None if target else library_of(include)
        if target and target != layer and target not in ALLOWED[layer]:
            yield f"{path}:{number}: {layer} may not include {target} ({include})"
        if library and layer not in LIBRARIES[library]:
            yield f"{path}:{number}: {layer} may not include {library} ({include})"


def check_reach(tree, path):
    """Yields what is wrong with what one file reaches through others."""
    libraries = tree.libraries_reached_by(path)
    chains = "; ".join(" > ".join(steps) for steps in libraries.values())
    if layer_of(path) in FREE_OF_LIBRARIES and any(len(steps) > 2 for steps in libraries.values()):
        yield f"{path}: {layer_of(path)} may not reach {' or '.join(sorted(libraries))}: {chains}"
    if path.suffix in SOURCES and len(libraries) > 1:
        yield f"{path}: reaches both LibTorch and protobuf: {chains}"


def check(root):
    """All violations under a root, and the number of files read."""
    tree = Tree(root)
    violations = []
    for path in tree.files:
        if layer_of(path) not in ALLOWED:
            violations.append(f"{path}: the layer {layer_of(path)} has no line in ALLOWED")
            continue
        violations += check_includes(tree, path)
        violations += check_reach(tree, path)
    return violations, len(tree.files)


def main(arguments):
    if arguments and arguments[0] in {"-h", "--help"}:
        print(__doc__)
        return 0
    violations, files = check(arguments[0] if arguments else Path(__file__).parent.parent)
    for violation in violations:
        print(violation)
    print(f"check_layers: {files} files, {len(violations)} violations")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
