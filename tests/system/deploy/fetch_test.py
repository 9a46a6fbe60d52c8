"""deploy/fetch: a model's folder as it comes from the Hugging Face Hub, by the Hub's own library.

The hub is one of this test's own, since nothing else can be reached from everywhere.
"""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from manifests import DEPLOY
from served import BIN

COMMIT, PULL_REQUEST = "a" * 40, "b" * 40
SAMPLE = DEPLOY / "models" / "sentence-encoder" / "1"
WEIGHTS = {name: (SAMPLE / name).read_bytes() for name in ("config.json", "model.safetensors", "tokenizer.model")}


class Hub(BaseHTTPRequestHandler):
    """Answers what huggingface_hub asks of a hub, of a few models."""

    repositories = {
        "org/words": {COMMIT: {
            **WEIGHTS, "README.md": b"words", "onnx/model.onnx": b"onnx", "onnx/config.json": b"{}",
            "pytorch_model.bin": b"pickle", "1_Pooling/config.json": b"{}", "2_Dense/pytorch_model.bin": b"dense"}},
        "other/words": {COMMIT: {name: WEIGHTS[name] for name in ("config.json", "model.safetensors")}},
        "org/old": {COMMIT: {"config.json": b"{}", "pytorch_model.bin": b"pickle"},
                    PULL_REQUEST: {"config.json": b"{}", "model.safetensors": b"converted"}},
    }
    cut_off = set()  # names of files whose answers end in their midst
    asked = []

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        self.asked.append((self.command, path, dict(self.headers)))
        listed = re.fullmatch(r"api/models/([^/]+/[^/]+?)(?:/(?:revision|tree)/(.+))?", path)
        named = re.fullmatch(r"([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        model = self.repositories.get((listed or named)[1]) if listed or named else None
        if model is None:
            return self.answer(404, X_Error_Code="RepoNotFound")
        revision = {None: COMMIT, "main": COMMIT, "refs%2Fpr%2F1": PULL_REQUEST}.get(
            (listed or named)[2], (listed or named)[2])
        files = model.get(revision)
        if files is None:
            return self.answer(404, X_Error_Code="RevisionNotFound")
        if named:
            return self.give(files[named[3]], named[3])
        if "/tree/" in path:
            entries = [{"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                       for name, content in files.items()]
        else:
            entries = {"id": listed[1], "sha": revision, "siblings": [{"rfilename": name} for name in files]}
        return self.answer(200, json.dumps(entries).encode(), Content_Type="application/json")

    do_HEAD = do_GET

    def give(self, content, name):
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        begin = int(re.match(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
        if self.command == "GET" and name in self.cut_off:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        self.answer(206 if begin else 200, content[begin:], **headers)

    def log_message(self, *_):
        pass


class FetchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.endpoint = f"http://127.0.0.1:{server.server_port}"

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.models = Path(place.name, "models")
        self.home = place.name
        Hub.asked.clear()
        Hub.cut_off.clear()

    def fetch(self, *arguments, **variables):
        # A home of its own, so that neither a token nor a cache of the user's takes part.
        environment = {**os.environ, "HF_ENDPOINT": self.endpoint, "HF_HOME": self.home, "no_proxy": "127.0.0.1",
                       **variables}
        return subprocess.run([DEPLOY / "fetch", *arguments, "--to", self.models], env=environment, text=True,
                              capture_output=True, timeout=120, check=False)

    def fetched(self, name):
        folder = self.models / name
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def test_a_folder_comes_without_what_other_programs_read_and_is_served(self):
        done = self.fetch("org/words")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"org/words at {COMMIT} is in {self.models}/words", done.stderr)
        fetched = self.fetched("words")
        origin = {"model": "org/words", "revision": None, "commit": COMMIT}
        self.assertEqual(json.loads(fetched.pop(".fetched.json")), origin)
        self.assertEqual(fetched, {**WEIGHTS, "1_Pooling/config.json": b"{}", "2_Dense/pytorch_model.bin": b"dense"})
        self.assertEqual(os.listdir(self.models), ["words"])
        done = subprocess.run([BIN / "linserve", "serve", "--model-repository", self.models, "--check-config",
                               "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("words", done.stdout)

    def test_what_is_there_stays_as_it_is_and_needs_no_hub(self):
        self.assertEqual(self.fetch("org/words").returncode, 0)
        done = self.fetch("org/words", HF_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is there already; remove it to have it anew", done.stderr)

    def test_no_half_of_a_folder_is_ever_served_and_the_other_half_comes_later(self):
        Hub.cut_off.add("model.safetensors")
        done = self.fetch("org/words")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((self.models / "words").exists())
        Hub.cut_off.clear()
        Hub.asked.clear()
        self.assertEqual(self.fetch("org/words").returncode, 0)
        self.assertEqual(self.fetched("words")["model.safetensors"], WEIGHTS["model.safetensors"])
        self.assertEqual({Path(path).name for method, path, _ in Hub.asked if method == "GET" and "/resolve/" in path},
                         {"model.safetensors"})

    def test_files_of_another_model_or_commit_are_never_among_those_that_were_asked_for(self):
        Hub.cut_off.add("model.safetensors")
        self.assertEqual(self.fetch("org/words").returncode, 1)
        Hub.cut_off.clear()
        self.assertEqual(self.fetch("other/words").returncode, 0)
        self.assertEqual(set(self.fetched("words")), {"config.json", "model.safetensors", ".fetched.json"})

    def test_another_model_or_revision_is_not_taken_for_the_one_that_was_asked_for(self):
        self.assertEqual(self.fetch("other/words").returncode, 0)
        for other in (("org/words",), ("other/words", "--revision", "refs/pr/1")):
            done = self.fetch(*other)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"is there, and is other/words at {COMMIT}; remove it", done.stderr)
        self.assertEqual(self.fetch("other/words", "--revision", COMMIT).returncode, 0)
        (self.models / "old").mkdir()
        done = self.fetch("org/old")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not come by deploy/fetch", done.stderr)

    def test_a_model_without_safetensors_is_refused_with_what_it_has(self):
        done = self.fetch("org/old")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no .safetensors but pytorch_model.bin", done.stderr)
        self.assertIn("--revision refs/pr/N", done.stderr)
        done = self.fetch("org/old", "--revision", "refs/pr/1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.fetched("old")["model.safetensors"], b"converted")

    def test_a_token_goes_along(self):
        self.fetch("org/words", HF_TOKEN="hf_secret")
        self.assertEqual({headers.get("authorization", headers.get("Authorization")) for _, path, headers in Hub.asked
                          if "org/words" in path}, {"Bearer hf_secret"})

    def test_what_the_hub_does_not_know_or_nobody_answers_is_told_in_a_line_or_two(self):
        for model, variables, message in (("org/none", {}, "org/none cannot be had: "),
                                          ("org/words", {"HF_ENDPOINT": "http://127.0.0.1:9"}, "Connection refused")):
            with self.subTest(model):
                done = self.fetch(model, **variables)
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
        for name in ("a/b/c", "org/", "words", "../words"):
            self.assertIn(f"'{name}' is not ORG/NAME", self.fetch(name).stderr)
        done = self.fetch("org/words", "--revision", "none")
        self.assertIn("cannot be had", done.stderr)


if __name__ == "__main__":
    unittest.main()
