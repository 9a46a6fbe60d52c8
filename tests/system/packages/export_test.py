"""A model of each package, trained, exported, and served: its numbers are the package's."""

import contextlib
import io
import json
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import python_package
import torch
from linear_multihead_attention import LinearMultiheadAttention
from safetensors.torch import load_file
from served import BIN, Server
from trained import CASES

export = python_package.load("linserve_export").export
linserve = python_package.load("linserve")
GOLDENS = Path(__file__).parents[2] / "data/goldens"


class ExportTest(unittest.TestCase):
    """One test a model, which the loop below adds."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        repository = Path(folder.name, "models")
        cls.expected, cls.printed = {}, {}
        for name, case in CASES.items():
            net = case.trained()
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                export(net, case.params, repository / name, case.example)
            cls.printed[name] = printed.getvalue()
            assert net.training, "the exporter leaves the model as it was"
            with torch.no_grad():
                cls.expected[name] = case.run(net.eval()).movedim(case.batch_axis, 0).numpy()
        cls.server = Server(repository=repository)
        cls.client = linserve.Client(cls.server.grpc)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def compare(self, name):
        answers = self.client.embed(CASES[name].sequences(), model=name, output="y", pooling="none")
        scale = max(1, np.abs(self.expected[name]).max())
        np.testing.assert_allclose(np.stack(answers), self.expected[name], rtol=0, atol=1e-5)
        command = shlex.split(self.printed[name].splitlines()[-1])
        done = subprocess.run([BIN / command[0], *command[1:]], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("output.y: largest difference", done.stdout)


for each in CASES:
    setattr(ExportTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.compare(name))


class ServingTest(unittest.TestCase):
    def test_knows_the_options_that_the_server_has_for_a_model(self):
        options = subprocess.run([BIN / "linserve", "serve", "--print-config"], capture_output=True, text=True,
                                 check=True).stdout
        names = list(json.loads(options))
        self.assertEqual(list(python_package.load("linserve_export").SERVING), names[names.index("padding"):])


class LinearMultiheadAttentionTest(unittest.TestCase):
    def test_the_class_of_this_test_has_the_packages_numbers(self):
        for golden in ("lmha-distinct", "lmha-batch1", "lmha-cross-layerwise"):
            config = json.loads((GOLDENS / golden / "config.json").read_text(encoding="utf-8"))
            model = LinearMultiheadAttention(**config["params"])
            weights = load_file(GOLDENS / golden / "model.safetensors")
            weights.update((alias, weights[name]) for alias, name in config["aliases"].items())
            model.load_state_dict(weights)
            tensors = load_file(GOLDENS / golden / "io.safetensors")
            results = model(*(tensors[f"input.{name}"] for name in ("query", "key", "value")))
            for name, result in zip(("y", "weights"), results):
                torch.testing.assert_close(result, tensors[f"output.{name}"], rtol=0, atol=1e-5)


if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
