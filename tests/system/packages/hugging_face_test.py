"""Folders as sentence-transformers saves them, served unchanged: the vectors are those of its encode()."""

import tempfile
import unittest
from pathlib import Path

import llama_folders
import numpy as np
import python_package
import torch
from served import Server
from transformers_folders import CHANGES, FOLDERS, draw_texts, save_folder

linserve = python_package.load("linserve")
FOLDERS = FOLDERS | llama_folders.FOLDERS
ALL = {name: (name, {}) for name in FOLDERS} | CHANGES | llama_folders.CHANGES


class HuggingFaceTest(unittest.TestCase):
    """One test a folder, which the loop below adds."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        cls.seed, texts, cls.texts = draw_texts(60)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        repository = Path(folder.name, "models")
        cls.expected = {}
        for name, (base, changes) in ALL.items():
            model = save_folder(repository / name, FOLDERS[base], texts, changes)
            cls.expected[name] = model.encode(cls.texts, batch_size=8)
        cls.server = Server(repository=repository)
        cls.client = linserve.Client(cls.server.grpc)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def compare(self, name):
        answers = np.stack(self.client.embed(self.texts, model=name))
        expected = self.expected[name]
        self.assertEqual(answers.shape, expected.shape)
        scale = max(1, np.abs(expected).max())
        np.testing.assert_allclose(answers, expected, rtol=0, atol=2e-5 * scale, err_msg=f"seed {self.seed}")


for each in ALL:
    setattr(HuggingFaceTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.compare(name))

if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
