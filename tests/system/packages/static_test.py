"""Folders of static models, served unchanged: the vectors are those of SentenceTransformer, or of model2vec."""

import json
import shutil
import tempfile
import unittest
import urllib.request
from pathlib import Path

import numpy as np
import python_package
import tokenizers as tk
import torch
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, Normalize, StaticEmbedding
from served import Server
from transformers_folders import byte_level, draw_texts, unigram, wordpiece

linserve = python_package.load("linserve")
WIDTH = 48


def wordpieces(texts):
    return wordpiece(texts)._tokenizer


def bytes_of_words(texts):
    return byte_level(texts)._tokenizer


def pieces(texts):
    return unigram(texts)._tokenizer


def words(texts):
    """Whole words, of which most are not known."""
    tokenizer = tk.Tokenizer(tk.models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = tk.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts, tk.trainers.WordLevelTrainer(vocab_size=150, special_tokens=["[PAD]", "[UNK]"]))
    return tokenizer


def cut(texts):
    tokenizer = wordpieces(texts)
    tokenizer.enable_truncation(9)
    return tokenizer


def vectors_of(tokenizer, rows=None):
    return torch.randn(rows or tokenizer.get_vocab_size(), WIDTH)


def sentences(tokenizer_of, *modules, dtype=torch.float32, old=False, **config):
    def save(folder, texts):
        tokenizer = tokenizer_of(texts)
        embedding = StaticEmbedding(tokenizer, vectors_of(tokenizer).to(dtype))
        SentenceTransformer(modules=[embedding, *[make() for make in modules]], device="cpu", **config).save(str(folder))
        if not old:
            return
        (folder / "0_StaticEmbedding").mkdir()
        for name in ("model.safetensors", "tokenizer.json"):
            shutil.move(folder / name, folder / "0_StaticEmbedding")
        listed = json.loads((folder / "modules.json").read_text())
        listed[0]["path"] = "0_StaticEmbedding"
        (folder / "modules.json").write_text(json.dumps(listed))
    return save


def model2vec(tokenizer_of, rows=None, weighted=False, dtype=np.float32, serving=None, **arguments):
    def save(folder, texts):
        tokenizer = tokenizer_of(texts)
        tokens = tokenizer.get_vocab_size()
        vectors = vectors_of(tokenizer, rows).numpy()
        vectors = (20 * vectors).clip(-127, 127).astype(dtype) if dtype == np.int8 else vectors.astype(dtype)
        model = StaticModel(vectors, tokenizer, config={"model_type": "model2vec"},
                            weights=np.random.rand(tokens) if weighted else None,
                            token_mapping=np.random.randint(0, rows, tokens) if rows else None, **arguments)
        model.save_pretrained(folder)
        if serving:
            config = json.loads((folder / "config.json").read_text())
            (folder / "config.json").write_text(json.dumps(config | {"serving": serving}))
    return save


AS_SENTENCES = {"texts_as": "sentence-transformers"}
SENTENCES = {
    "plain": sentences(wordpieces),
    "normalized": sentences(bytes_of_words, Normalize),
    "unigram": sentences(pieces, Normalize),
    "words": sentences(words),
    "half": sentences(wordpieces, dtype=torch.float16),
    "cut": sentences(cut),
    "old": sentences(wordpieces, Normalize, old=True),
    "dense": sentences(wordpieces, lambda: Dense(WIDTH, 24), lambda: Dense(24, 16, bias=False), Normalize),
    "prompted": sentences(wordpieces, prompts={"query": "represent it: "}, default_prompt_name="query"),
    "distilled": model2vec(wordpieces, normalize=True, max_length=12, serving=AS_SENTENCES),
    "shared-rows": model2vec(words, rows=40, weighted=True, serving=AS_SENTENCES),
}
MODEL2VEC = {
    "potion": model2vec(wordpieces, normalize=True),
    "potion-words": model2vec(words, normalize=True),
    "potion-pieces": model2vec(pieces),
    "potion-short": model2vec(wordpieces, max_length=7),
    "potion-short-words": model2vec(words, max_length=5, normalize=True),
    "potion-any-length": model2vec(bytes_of_words, max_length=None),
    "potion-weighted": model2vec(wordpieces, weighted=True, normalize=True),
    "potion-shared": model2vec(words, rows=40),
    "potion-shared-weighted": model2vec(wordpieces, rows=40, weighted=True),
    "potion-half": model2vec(wordpieces, dtype=np.float16, normalize=True),
    "potion-int8": model2vec(wordpieces, dtype=np.int8),
}
NO_TOKENS = ["", "🦀🦀", " \n", "漢字"]


class StaticTest(unittest.TestCase):
    """A test a folder, which the loops below add."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        np.random.seed(1)
        cls.seed, texts, drawn = draw_texts(60)
        cls.texts = drawn + NO_TOKENS + ["the unknown zyzzyva 漢字 the"]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.repository = Path(folder.name, "models")
        for name, save in (SENTENCES | MODEL2VEC).items():
            save(cls.repository / name, texts)
        cls.server = Server(repository=cls.repository)
        cls.client = linserve.Client(cls.server.grpc)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def compare(self, answers, expected, tolerance=1e-5):
        self.assertEqual(answers.shape, expected.shape)
        scale = max(1, np.abs(expected).max())
        np.testing.assert_allclose(answers, expected, rtol=0, atol=tolerance * scale, err_msg=f"seed {self.seed}")

    def as_sentence_transformers(self, name):
        expected = SentenceTransformer(str(self.repository / name), device="cpu").encode(self.texts, batch_size=8)
        self.compare(np.stack(self.client.embed(self.texts, model=name)), expected.astype(np.float32),
                     2e-3 if name == "half" else 1e-5)  # there the means are of F16, too

    def as_model2vec(self, name):
        expected = StaticModel.from_pretrained(self.repository / name).encode(self.texts)
        self.compare(np.stack(self.client.embed(self.texts, model=name)), expected.astype(np.float32),
                     2e-3 if name == "potion-half" else 1e-5)

    def test_a_text_without_tokens_is_zeros(self):
        for name in ("plain", "potion-words"):
            for vector in self.client.embed(["", "  "], model=name):
                self.assertFalse(np.any(vector))

    def post(self, model, **fields):
        request = urllib.request.Request(f"http://{self.server.http}/embed", json.dumps(fields).encode(),
                                         {"linserve-model": model})
        with urllib.request.urlopen(request) as answer:
            return np.array(json.load(answer), dtype=np.float32)

    def test_a_text_that_is_cut_at_its_beginning_keeps_its_end(self):
        ends = ["the end of it", "a good word"]
        vectors = self.post("potion-short", inputs=["very " * 80 + end for end in ends], truncate=True,
                            truncation_direction="Left", normalize=False)
        model = StaticModel.from_pretrained(self.repository / "potion-short")
        model.tokenizer.no_truncation()
        tokens = [model.tokenizer.encode("very " * 80 + end, add_special_tokens=False).ids[-7:] for end in ends]
        self.compare(vectors, np.stack([model.embedding[ids].mean(axis=0) for ids in tokens]).astype(np.float32))

    def test_rest(self):
        vectors = self.post("normalized", inputs=self.texts[:4] + [""], truncate=True)
        expected = SentenceTransformer(str(self.repository / "normalized"), device="cpu").encode(self.texts[:4] + [""])
        self.compare(vectors, expected)


for each in SENTENCES:
    setattr(StaticTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.as_sentence_transformers(name))
for each in MODEL2VEC:
    setattr(StaticTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.as_model2vec(name))

if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
