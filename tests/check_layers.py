#!/usr/bin/env python3
"""Proves from the #include lines that every layer keeps to its border.

usage: tests/check_layers.py [ROOT]

Prints one line for every include that crosses a border and exits with 1 if there is any. A class that is
declared without its header counts as an include of it. What a layer may include stands in ALLOWED and
LIBRARIES, in which order its folders build on each other in FOLDERS; a new one starts with a line there.
No two headers may define classes of one name in one namespace, and no two sources of a layer functions of
their own that take the same count of numbers. Some functions of LibTorch may be called in the files alone
that stand in CALLERS. No folder may have more files than MOST_FILES, and no comment begin as HALF_SENTENCE.
"""

import functools
import os
import re
import sys
from collections import deque
from pathlib import Path

# Which layers a layer may include, besides itself.
ALLOWED = {
    "core": set(),
    "telemetry": {"core"},
    "batching": {"core", "telemetry"},
    "access": {"core", "telemetry"},
    "engine": {"core", "telemetry", "batching"},
    "attention": {"core"},
    "models": {"core", "telemetry", "engine", "attention"},
    "cuda": {"core", "attention"},
    "http": {"core", "telemetry", "access"},
    "text": {"core"},
    "repository": {"core", "telemetry", "engine", "text"},
    "serving": {"core", "telemetry", "batching", "engine", "text", "access", "repository"},
    "rpc": {"core", "telemetry", "engine", "text", "access", "repository", "serving"},
    "rest": {"core", "access", "repository", "serving", "rpc", "http"},
    "program": {"core", "telemetry", "engine", "text", "access", "repository", "serving", "rpc", "rest", "http",
                "models"},
    "client": {"core"},
}
ALLOWED["tests"] = set(ALLOWED) | {"tests"}

# The folders of a layer: each may include those before it, and "" is the layer's own.
FOLDERS = {
    "telemetry": ["", "trace"],
    "engine": ["sessions", "", "generation"],
    "core": ["strings", "status", "json", "system", "threads", "options", "tensor", "files", "sequence", "workload"],
    "text": ["", "sentencepiece", "huggingface/characters", "huggingface/members", "huggingface/patterns",
             "huggingface/normalize", "huggingface/split", "huggingface/models", "huggingface/file",
             "huggingface/settings", "huggingface"],
    "cuda": ["kernels", ""],
    "attention": ["rows", "device", "products", "positions", "linear", "linformer", "local", "landmarks", "blocks",
                  "favor"],
    "models": ["config", "placement", "sessions", "network", "tokens", "sentences", "checkpoint", "linformer",
               "linformer_pytorch", "linear_attention_transformer", "linear_attention_transformer/images",
               "performer_pytorch", "linear_multihead_attention", "transformers/positions",
               "transformers/global_tokens", "transformers/experts", "transformers/options", "transformers", "llama", "t5", "sparse",
               "static", "fairseq", "fast_transformers", "molformer", "encoder", "math", "forward", ""],
    "serving": ["", "requests"],
    "rpc": ["messages", "calls", "guards", "embedding", "oip", "tei", "otlp", ""],
    "http": ["framing", ""],
    "rest": ["json", "calls", "oip", "openai", "", "tei"],
    "program": ["", "serve", "offline"],
    "client": ["library", "terminal", "files", "commands", "load/null_server", "load/report", "load"],
}

# Which layers may include LibTorch's and protobuf's headers. No file may reach both: the wheel of
# LibTorch brings protobuf 3.13 headers, which the system's protobuf does not go together with.
LIBRARIES = {
    "LibTorch": {"attention", "models", "cuda", "tests"},
    "protobuf": {"rpc", "rest", "client", "tests"},
}
# These must not even reach a library through the layers below.
FREE_OF_LIBRARIES = {"program"}

# The products of matrices, which are slow for some sizes, are asked for where that is known.
CALLERS = {
    r"at::(?:matmul|mm|bmm|mv|dot|addmm|baddbmm|einsum|tensordot|inner)(?:_out)?\(": {
        "server/attention/rows/product.cc", "server/attention/products/block_product.cc"},
}

# A folder has at most so many files: one with more is of several subjects. Corpora are data, which nobody reads.
MOST_FILES = 25
DATA = {"corpus", "__pycache__"}

COMMENT = re.compile(r"\s*(?://|#)")
HALF_SENTENCE = re.compile(r"\s*(?://|#) (?:Of|And|Likewise|The same)\b")

SOURCES = {".cc", ".cu"}
HEADERS = {".h", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
DECLARED = re.compile(r"^(?:class|struct)\s+(\w+);")
DEFINED = re.compile(r"^(?:class|struct)\s+(?:[A-Z_]+\s+)?(\w+)\b(?!::)[^;{]*\{", re.MULTILINE)
# A function of a source's own whose parameters are numbers.
OF_NUMBERS = re.compile(r"^[A-Za-z][\w:<>,&* ]* [&*]?(\w+)\(((?:(?:const |std::)*(?:bool|float|double|size_t|u?int(?:\d+_t)?) \w+"
                        r"(?:, |(?=\))))+)\) \{", re.MULTILINE)
OWN = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)


def library_of(include):
    """The library that an include that is no file of ours belongs to, or None."""
    first = include.split("/")[0]
    if first in {"ATen", "c10", "caffe2", "torch"}:
        return "LibTorch"
    if (include.endswith(".pb.h") or include.startswith("google/protobuf/")
            or first.startswith("grpc")):
        return "protobuf"
    return None


def matches_of(pattern, text):
    """All (line number, what the pattern holds) of lines that match."""
    numbered = ((number, pattern.match(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, match.group(1)) for number, match in numbered if match]


class Tree:
    """The sources of a checkout and what they include. Paths are relative to the root."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.files = sorted(
            path.relative_to(self.root)
            for folder in ("server", "client", "tests")
            for path in (self.root / folder).rglob("*")
            if path.suffix in SOURCES | HEADERS)
        self.includes, self.declared, self.defined, self.namespaces = {}, {}, {}, {}
        self.calls, self.of_numbers = {}, {}
        for path in self.files:
            text = (self.root / path).read_text(encoding="utf-8", errors="replace")
            self.includes[path] = matches_of(INCLUDE, text)
            self.declared[path] = matches_of(DECLARED, text)
            self.calls[path] = [(function, callers) for function, callers in CALLERS.items()
                                if path.parts[0] == "server" and re.search(function, text)]
            namespace = (NAMESPACE.findall(text) or [""])[0]
            for function, parameters in OF_NUMBERS.findall("".join(OWN.findall(text))):
                key = path.parts[:2], namespace, function, parameters.count(",")
                self.of_numbers.setdefault(key, set()).add(path)
            if path.suffix in HEADERS and path.parts[0] != "tests":
                self.namespaces[path] = namespace
                for name in DEFINED.findall(text):
                    self.defined.setdefault(name, []).append(path)

    @functools.cache
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
    return path.parts[1] if path.parts[0] == "server" else path.parts[0]


def folder_of(path):
    """The folder within its layer that a file of ours lies in."""
    return "/".join(path.parts[2 if path.parts[0] == "server" else 1:-1])


def layer_included(tree, path, include):
    """The layer that an include means, or None if it is none of ours. Files may be missing."""
    if target := tree.resolve(path, include):
        return layer_of(target)
    parts = [part for part in Path(include).parts if part not in {"..", "server"}]
    return parts[0] if len(parts) > 1 and parts[0] in ALLOWED else None


def may_use(path, target):
    """Whether the folder of a file may know that of another in the same layer."""
    own, other = folder_of(path), folder_of(target)
    order = FOLDERS.get(layer_of(path), [""])
    if own == other or layer_of(path) == "tests":
        return True
    return own in order and other in order and order.index(other) < order.index(own)


def check_includes(tree, path):
    """Yields what is wrong with the include lines of one file."""
    layer = layer_of(path)
    for number, include in tree.includes[path]:
        target = layer_included(tree, path, include)
        library = None if target else library_of(include)
        file = tree.resolve(path, include)
        if target and target != layer and target not in ALLOWED[layer]:
            yield f"{path}:{number}: {layer} may not include {target} ({include})"
        elif file and target == layer and not may_use(path, file):
            yield f"{path}:{number}: {path.parent} may not include {file.parent} ({include})"
        if library and layer not in LIBRARIES[library]:
            yield f"{path}:{number}: {layer} may not include {library} ({include})"


def check_declarations(tree, path):
    """Yields classes that one file declares whose headers it may not include."""
    layer = layer_of(path)
    for number, name in tree.declared[path]:
        headers = tree.defined.get(name, [])
        allowed = any(layer_of(header) in ALLOWED[layer] or
                      layer_of(header) == layer and may_use(path, header) for header in headers)
        if headers and not allowed:
            yield f"{path}:{number}: {path.parent} may not declare {name} of {headers[0].parent}"


def check_calls(tree, path):
    """Yields functions that one file calls and may not."""
    for function, callers in tree.calls[path]:
        if str(path) not in callers:
            yield f"{path}: only {', '.join(sorted(callers))} may call {function}"


def check_names(tree):
    """Yields classes of one name: where a program knew both headers, one would stand for the other."""
    for name, headers in tree.defined.items():
        places = {}
        for header in headers:
            places.setdefault(tree.namespaces[header], []).append(header)
        for namespace, twins in places.items():
            if len(twins) > 1:
                yield f"{twins[1]}: {namespace}::{name} is defined in {twins[0]}, too"


def check_overloads(tree):
    """Yields functions that numbers alone tell apart: compiled as one unit, either source may call the other's."""
    for (*_, function, _), paths in tree.of_numbers.items():
        if len(paths) > 1:
            yield f"{max(paths)}: {function}() of numbers stands in {min(paths)}, too"


def check_reach(tree, path):
    """Yields what is wrong with what one file reaches through others."""
    libraries = tree.libraries_reached_by(path)
    chains = "; ".join(" > ".join(steps) for steps in libraries.values())
    if layer_of(path) in FREE_OF_LIBRARIES and any(len(steps) > 2 for steps in libraries.values()):
        yield f"{path}: {layer_of(path)} may not reach {' or '.join(sorted(libraries))}: {chains}"
    if path.suffix in SOURCES and len(libraries) > 1:
        yield f"{path}: reaches both LibTorch and protobuf: {chains}"


def check_folders(root):
    """Yields folders with too many files."""
    for top in ("client", "deploy", "proto", "server", "tests"):
        for folder, folders, names in os.walk(Path(root, top)):
            folders[:] = [name for name in folders if name not in DATA and not name.startswith(".")]
            if len(names) > MOST_FILES:
                yield f"{Path(folder).relative_to(root)}: {len(names)} files, expected at most {MOST_FILES}"


def check_comments(root):
    """Yields comments that begin as no sentence does that can be understood alone."""
    for top in ("client", "server", "tests"):
        for path in sorted(Path(root, top).rglob("*")):
            if path.suffix not in SOURCES | HEADERS | {".py"} or DATA & set(path.parts):
                continue
            before = ""
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if HALF_SENTENCE.match(line) and not COMMENT.match(before):
                    yield f"{path.relative_to(root)}:{number}: the comment is to be understood alone: {line.strip()}"
                before = line


def check(root):
    """All violations under a root, and the number of files read."""
    tree = Tree(root)
    violations = []
    for path in tree.files:
        if layer_of(path) not in ALLOWED:
            violations.append(f"{path}: the layer {layer_of(path)} has no line in ALLOWED")
            continue
        order = FOLDERS.get(layer_of(path), [""])
        if layer_of(path) != "tests" and folder_of(path) not in order:
            violations.append(f"{path}: its folder has no place in FOLDERS")
        violations += check_includes(tree, path)
        violations += check_declarations(tree, path)
        violations += check_calls(tree, path)
        violations += check_reach(tree, path)
    violations += check_names(tree)
    violations += check_overloads(tree)
    violations += check_folders(root)
    violations += check_comments(root)
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
