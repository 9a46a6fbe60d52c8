"""The README.md files of the repository: their lines, links, anchors, blocks, and the files that they name."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What a fenced block may be. `sh` and `python` are run; the others are output, or parts of files.
RUN = {"sh", "python"}
SHOWN = {"text", "json", "yaml", "proto"}
FENCE = re.compile(r"^\s*```(.*)$")
# A page may have so many lines.
LIMITS = {"README.md": 150}
LIMIT = 350


@dataclass
class Block:
    language: str
    text: str
    line: int  # of its first line


class Page:
    def __init__(self, path, text):
        self.path = path  # relative to the root
        self.lines = text.splitlines()
        self.blocks, self.prose = [], []
        block = None
        for number, line in enumerate(self.lines, 1):
            fence = FENCE.match(line)
            if fence and block is None:
                block = Block(fence[1].strip(), "", number + 1)
            elif fence:
                self.blocks.append(block)
                block = None
            elif block is not None:
                block.text += line + "\n"
            else:
                self.prose.append((number, line))
        self.open_block = block

    def anchors(self):
        """What GitHub makes of its headings."""
        found = set()
        for _, line in self.prose:
            heading = re.match(r"#+ (.*)", line)
            if heading:
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
                found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
        return found

    def links(self):
        """Line and target of each link within the repository."""
        for number, line in self.prose:
            for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", line):
                if not re.match(r"[a-z]+:", target):
                    yield number, target


    def files(self):
        """Line and path of each file of the repository that is named as one."""
        for number, line in self.prose:
            for path in re.findall(r"`([\w.-]+(?:/[\w.-]+)*/[\w-]+\.(?:cc|h|py|proto|json|yaml|md))`", line):
                yield number, path


def read(path):
    return Page(path, (ROOT / path).read_text(encoding="utf-8"))


def files_of_repository(*patterns):
    """Those that git knows, or would."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(path for path in set(listed.split("\0")) if path and (ROOT / path).exists())


def all_pages():
    return [read(path) for path in files_of_repository("README.md", "*/README.md")]


def faults(page):
    """What is wrong with a page before anything of it is run."""
    limit = LIMITS.get(page.path, LIMIT)
    if len(page.lines) > limit:
        yield f"{page.path}: {len(page.lines)} lines, at most {limit} are wanted"
    if page.open_block:
        yield f"{page.path}:{page.open_block.line}: the block has no end"
    for block in page.blocks:
        if block.language not in RUN | SHOWN:
            yield f"{page.path}:{block.line}: a block is one of {sorted(RUN | SHOWN)}, not '{block.language}'"
    before = ""
    for number, line in page.prose:
        # Indented text is a block, too, which nobody would run.
        if line.startswith("    ") and not before.strip():
            yield f"{page.path}:{number}: indented text; commands stand in fences"
        before = line
    for number, path in page.files():
        if not any((place / path).exists() for place in (ROOT, (ROOT / page.path).parent)):
            yield f"{page.path}:{number}: there is no file {path}"
    for number, target in page.links():
        name, _, anchor = target.partition("#")
        path = (ROOT / page.path).parent / name
        if not path.exists():
            yield f"{page.path}:{number}: '{target}' leads nowhere"
        elif anchor and anchor not in (Page("", path.read_text(encoding="utf-8")) if name else page).anchors():
            yield f"{page.path}:{number}: there is no heading '#{anchor}' in {name or page.path}"
