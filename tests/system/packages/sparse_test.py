"""Folders of sparse encoders, served unchanged: the weights are those of SparseEncoder."""

import json
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import numpy as np
import torch
import transformers as tf
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sparse_encoder.modules import SpladePooling
from served import Server
from transformers_folders import SIZES, byte_level, draw_texts, unigram, wordpiece

sys.path.append(str(Path(__file__).parents[3] / "proto"))
pb2, stubs = grpc.protos_and_services("tei/v1/tei.proto")

LONGEST = 48  # tokens; some texts have more
PLACES = dict(max_position_embeddings=130, pad_token_id=1, type_vocab_size=1)
MODERN = dict(max_position_embeddings=128, local_attention=16, pad_token_id=1, bos_token_id=0, eos_token_id=2,
              cls_token_id=0, sep_token_id=2)
DISTIL = dict(max_position_embeddings=128, dim=32, n_layers=2, n_heads=4, hidden_dim=64)

# Each folder has: the tokenizer, the class of the model, the arguments of its configuration, and those of SpladePooling.
FOLDERS = {
    "bert": (wordpiece, "Bert", dict(SIZES, max_position_embeddings=128), {}),
    "bert-sum": (wordpiece, "Bert", dict(SIZES, max_position_embeddings=128), dict(pooling_strategy="sum")),
    "bert-untied": (wordpiece, "Bert", dict(SIZES, max_position_embeddings=128, tie_word_embeddings=False), {}),
    "distilbert": (wordpiece, "DistilBert", DISTIL, dict(activation_function="log1p_relu")),
    "roberta": (byte_level, "Roberta", dict(SIZES, **PLACES), {}),
    "xlm-roberta": (unigram, "XLMRoberta", dict(SIZES, **PLACES), dict(pooling_strategy="sum",
                                                                      activation_function="log1p_relu")),
    "modernbert": (byte_level, "ModernBert", dict(SIZES, **MODERN), {}),
}


def save_folder(folder, make, texts):
    """Saves such a model as sentence-transformers does."""
    tokenizer_of, kind, arguments, pooling = make
    tokenizer = tokenizer_of(texts)
    tokenizer.model_max_length = LONGEST
    config = getattr(tf, kind + "Config")(vocab_size=len(tokenizer), **arguments)
    model = getattr(tf, kind + "ForMaskedLM")(config)
    with torch.no_grad():
        for name, tensor in model.named_parameters():  # biases and norms of their own; more words than not weigh nothing
            tensor.add_(torch.randn_like(tensor) * 0.2)
            if tensor.shape == (len(tokenizer),):
                tensor.sub_(1.5)
    plain = folder.parent.parent / "plain" / folder.name
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    modules = [Transformer(str(plain), transformer_task="fill-mask"), SpladePooling(**pooling)]
    SparseEncoder(modules=modules, device="cpu").save(str(folder))
    return plain


class SparseTest(unittest.TestCase):
    """A test a family of models, which the loop below adds, and one of each protocol."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        cls.seed, texts, cls.texts = draw_texts(24)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.repository = Path(folder.name, "models")
        for name, make in FOLDERS.items():
            plain = save_folder(cls.repository / name, make, texts)
            if name == "bert":
                # As many lie on the hub: without modules.json, and asked for by text-embeddings-inference's word.
                config = json.loads((plain / "config.json").read_text())
                (plain / "config.json").write_text(json.dumps(config | {"serving": {"pooling": "splade"}}))
                plain.rename(cls.repository / "plain-bert")
        cls.server = Server(repository=cls.repository)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0

    def ask(self, path, model, body):
        request = urllib.request.Request(f"http://{self.server.http}{path}", json.dumps(body).encode(),
                                         {"linserve-model": model})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def expected(self, name):
        return SparseEncoder(str(self.repository / name), device="cpu").encode(
            self.texts, convert_to_sparse_tensor=False).numpy()

    def compare(self, answers, expected):
        """Compares lists of indices and values with vectors: of these, what is nearly zero may be missing."""
        self.assertEqual(len(answers), len(expected))
        for answer, vector in zip(answers, expected):
            indices = [one["index"] for one in answer]
            self.assertEqual(indices, sorted(set(indices)))
            self.assertTrue(all(one["value"] > 0 for one in answer))
            found = np.zeros_like(vector)
            found[indices] = [one["value"] for one in answer]
            np.testing.assert_allclose(found, vector, rtol=0, atol=2e-5 * max(1, np.abs(vector).max()),
                                       err_msg=f"seed {self.seed}")
            self.assertLess(len(set(np.flatnonzero(vector)) ^ set(indices)), 3)

    def weights(self, name):
        expected = self.expected(name)
        self.assertTrue(0.01 < (expected > 0).mean() < 0.99)
        self.compare(self.ask("/embed_sparse", name, {"inputs": self.texts, "truncate": True}), expected)
        for text, vector in list(zip(self.texts, expected))[-3:]:
            self.compare(self.ask("/", name, {"inputs": text, "truncate": True}), [vector])

    def test_a_folder_without_modules_is_as_sentence_transformers_has_it(self):
        self.weights("plain-bert")

    def test_the_open_inference_protocol_has_whole_vectors(self):
        text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [self.texts[0]]}
        [output] = self.ask("/v2/models/bert/infer", "bert", {"inputs": [text]})["outputs"]
        expected = self.expected("bert")[0]
        self.assertEqual((output["name"], output["shape"]), ("sparse_embedding", [1, len(expected)]))
        np.testing.assert_allclose(output["data"], expected, rtol=0, atol=2e-5 * max(1, expected.max()))

    def test_dense_vectors_are_refused(self):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            self.ask("/embed", "bert", {"inputs": "x"})
        with raised.exception as refused:
            self.assertEqual(refused.code, 424)
            self.assertIn("/embed_sparse", refused.read().decode())

    def test_grpc(self):
        expected = self.expected("bert")
        with grpc.insecure_channel(self.server.grpc) as channel:
            embed = stubs.EmbedStub(channel)
            requests = [pb2.EmbedSparseRequest(inputs=text, truncate=True) for text in self.texts]
            metadata = [("linserve-model", "bert")]
            answers = [embed.EmbedSparse(request, metadata=metadata) for request in requests]
            answers += embed.EmbedSparseStream(iter(requests), metadata=metadata)
        self.compare([[{"index": one.index, "value": one.value} for one in answer.sparse_embeddings]
                      for answer in answers], np.concatenate([expected, expected]))


for each in FOLDERS:
    setattr(SparseTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.weights(name))

if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
