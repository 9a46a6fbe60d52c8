"""Runs the blocks of one page, in their order, as a reader would who has a clone and a shell.

A block of `sh` runs in bash as it is written, from where the one before it left off: the working directory and
exported variables go on. A block of `python` is a program of its own. A block that serves runs beside those after
it, as in another terminal, until the next one that serves or the end of the page; then it must end well.
REPLACED is all that is not run as it is written, and why.
"""

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from pages import ROOT, files_of_repository

BIN = Path(os.environ.get("LINSERVE_TEST_BIN", ROOT / "build/release/bin"))
STAND_INS = Path(__file__).parent / "stand_ins"
# Where models are exported, the block is run with the packages that the models are of.
EXPORTS = re.compile(r"^from linserve_export import", re.MULTILINE)
PACKAGES = ROOT / ".venv-packages/bin/python"
# Programs that are not there, or do what a test must not: stand_ins/programs.py says what is checked in their place.
PROGRAMS = ["docker", "helm", "kubectl", "perf_analyzer", "pip", "prometheus"]
SECONDS = 60  # for one block
SERVES = re.compile(r"^(\S*/)?linserve serve\b(?!.*--(?:print|check)-config)", re.MULTILINE)
READY = re.compile(r" ready grpc_port=")

# Pattern, what stands in its place, and why.
REPLACED = [
    (r"^\./deploy/run$",
     "build/release/bin/linserve serve --config deploy/linserve.json --model-repository deploy/models",
     "it installs, builds and shows a sample, and then serves so"),
    (r"^((\./)?(deploy|tests)/(\w+/)*(run|build|install|package|gpu_pack|check_\w+)\b.*)$", r"described \1",
     "they build, or take minutes: each is asked for --help, which must know its arguments"),
    (r"^python3 -m venv .*$", ":", "what pip would put into it is installed already"),
    (r"^(build/dev/bin/.*)$", r"described \1", "the preset dev is not built for this test"),
    (r"^(cmake --install|buildah) .*$", ":", "they need a whole build and root: tests/system/image/run does the same"),
    (r"127\.0\.0\.1|\b10\.0\.0\.[12]\b|0\.0\.0\.0", "{host}", "an address of this test's own meets no other server"),
    (r"dns:///linserve-headless\.linserve\.svc:", "ipv4:{host}:", "there is no cluster"),
    (r"pkill -HUP -x linserve", 'kill -HUP "{server}"', "others may have servers on this machine"),
    (r"--device cuda\S*( --dtype bf16)?", "--device cpu", "there may be no GPU, and no bf16 on the CPU"),
    (r"\b262144\b", "8192", "the rows of the example take six seconds"),
    (r"^(\S*linserve-client\b.* load\b(?!.*--trace).*)$",
     r"\1 --requests 20 --warmup 0", "a load takes ten seconds"),
    (r"p99=20ms", "p99=20s", "a machine that tests is busy"),
    (r"^(linserve bench .*)$", r"\1 --rounds 1 --sequences 16", "it takes a minute"),
]


class Failure(Exception):
    pass


def replaced(text, host, server):
    for pattern, by, _ in REPLACED:
        text = re.sub(pattern, by.replace("{host}", host).replace("{server}", str(server)), text, flags=re.MULTILINE)
    return text


def make_clone(folder):
    """What a clone with a release build looks like, made of links."""
    clone = Path(folder, "linserve")
    (clone / "build/release").mkdir(parents=True)
    (clone / "build/release/bin").symlink_to(BIN)
    # The clone has the repository's files alone, so that nothing that a block writes lands in the checkout.
    for name in {".git", *(path.split("/")[0] for path in files_of_repository())}:
        if (ROOT / name).exists():
            (clone / name).symlink_to(ROOT / name)
    programs = Path(folder, "programs")
    programs.mkdir()
    for name in [*PROGRAMS, "described"]:
        (programs / name).symlink_to(STAND_INS / "programs.py")
    return clone, programs


class Session:
    def __init__(self, page):
        self.page = page
        self.server = None
        # Every address of 127.0.0.0/8 is this machine's, and the ports are those of the page.
        self.host = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.directory, programs = make_clone(self.folder.name)
        self.state = Path(self.folder.name, "state")
        installed = Path(self.folder.name, "installed")
        # What a server refuses over HTTP is a failure, too.
        Path(self.folder.name, ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n", encoding="utf-8")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LINSERVE_")},
            "PATH": ":".join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": self.folder.name, "PYTHONPATH": f"{installed}:{ROOT / 'tests/system/packages'}",
            "PYTHONDONTWRITEBYTECODE": "1", "DOCS_INSTALLED": str(installed),
            "LINSERVE_GRPC_ADDRESS": f"{self.host}:8500", "LINSERVE_HTTP_ADDRESS": f"{self.host}:8080",
            "DOCS_ROOT": str(ROOT), "DOCS_BIN": str(BIN), "DOCS_STATE": str(self.state) + ".json"}
        return self

    def __exit__(self, kind, *_):
        try:
            self.end_server()
        except Failure:
            if kind is None:
                raise
        finally:
            self.folder.cleanup()

    def run(self):
        if any(EXPORTS.search(block.text) for block in self.page.blocks) and not PACKAGES.exists():
            raise unittest.SkipTest("the packages are not installed (tests/system/packages/install)")
        for block in self.page.blocks:
            if block.language == "sh" and SERVES.search(replaced(block.text, self.host, "")):
                self.serve(block)
            elif block.language == "sh":
                self.sh(block)
            elif block.language == "python":
                python = PACKAGES if EXPORTS.search(block.text) else sys.executable
                self.finish(block, [python, "-c", self.text_of(block)])

    def text_of(self, block):
        server = self.server_pid() if "pkill" in block.text else ""
        return replaced(block.text, self.host, server)

    def fail(self, block, why):
        raise Failure(f"{self.page.path}:{block.line}: {why}\n{block.text}")

    def script(self, block, last=""):
        """The block, and what carries over from the one before it."""
        before = f". {shlex.quote(str(self.state))}\n" if self.state.exists() else ""
        return f"set -euo pipefail\n{before}{last}\n{self.text_of(block)}"

    def sh(self, block):
        state = shlex.quote(str(self.state))
        keep = f"trap '{{ declare -px; echo cd \"${{PWD@Q}}\"; }} >{state}' EXIT"
        self.finish(block, ["bash", "-c", self.script(block, keep)])

    def finish(self, block, command):
        try:
            done = subprocess.run(command, cwd=self.place(), env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.fail(block, f"not done after {SECONDS} s")
        if done.returncode:
            self.fail(block, f"exit code {done.returncode}\n{done.stdout[-4000:]}")

    def place(self):
        """Where a program runs that is not told by the state."""
        if self.state.exists():
            return shlex.split(self.state.read_text(encoding="utf-8").rsplit("\ncd ", 1)[1])[0]
        return self.directory

    def serve(self, block):
        self.end_server()
        log = Path(self.folder.name, "log")
        with open(log, "wb") as output:
            # bash waits for the server before it heeds the signal that both of them get.
            self.server = subprocess.Popen(["bash", "-c", self.script(block, "trap : TERM")], cwd=self.directory,
                                           env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=output, start_new_session=True)
        self.block, self.log = block, log
        end = time.monotonic() + SECONDS
        while not READY.search(log.read_text(encoding="utf-8")):
            if self.server.poll() is not None or time.monotonic() > end:
                self.fail(block, "the server did not start\n" + log.read_text(encoding="utf-8"))
            time.sleep(0.02)

    def server_pid(self):
        """Of linserve, whose parent is the block's bash."""
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text(encoding="utf-8")
        return int(children.split()[0])

    def end_server(self):
        if self.server is None:
            return
        server, self.server = self.server, None
        try:
            os.killpg(server.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        try:
            code = server.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            self.fail(self.block, "the server did not end")
        if code:
            self.fail(self.block, f"the server ended with code {code}\n{self.log.read_text(encoding='utf-8')}")


def run(page):
    with Session(page) as session:
        session.run()
