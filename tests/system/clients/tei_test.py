"""Clients of text-embeddings-inference, by the lines of their own documentation, and curl on every route."""

import asyncio
import json
import logging
import shutil
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np
import requests
from served import DIM, SEQ_LEN, Server, init_model

logging.disable()
warnings.simplefilter("ignore")
TEXTS = ["the server answers", "a text"]
PAIRS = Path(__file__).parents[2] / "data/text/pairs"


class TeiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(text=True, serving={"pooling": "mean", "prompts": {"query": "the "}})
        cls.url = f"http://{cls.server.http}"
        cls.expected = cls.curl("/embed", {"inputs": TEXTS})[1]

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0

    @classmethod
    def curl(cls, path, body=None):
        """The status and the JSON of the answer."""
        data = [] if body is None else ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        out = subprocess.run(["curl", "-s", "-w", "\n%{http_code}", f"{cls.url}{path}", *data],
                             check=True, capture_output=True, text=True).stdout
        answer, code = out.rsplit("\n", 1)
        try:
            return int(code), json.loads(answer)
        except ValueError:
            return int(code), answer

    def same(self, vectors, expected=None):
        np.testing.assert_allclose(np.array(vectors), self.expected if expected is None else expected,
                                   rtol=1e-5, atol=1e-6)

    def test_curl_on_every_route(self):
        for path in ("/", "/embed", "/invocations"):
            code, answer = self.curl(path, {"inputs": TEXTS})
            self.assertEqual(code, 200)
            self.same(answer)
        self.assertEqual([self.curl(path)[0] for path in ("/", "/health", "/ping", "/metrics")], [200] * 4)
        code, info = self.curl("/info")
        self.assertRegex(info["model_sha"], "^[0-9a-f]+$")
        self.assertEqual((code, info["model_id"], info["max_input_length"], info["model_type"], info["auto_truncate"]),
                         (200, "m", SEQ_LEN, {"embedding": {"pooling": "mean"}}, False))
        code, rows = self.curl("/embed_all", {"inputs": TEXTS})
        self.assertEqual((code, len(rows), len(rows[0][0])), (200, 2, DIM))
        code, tokens = self.curl("/tokenize", {"inputs": TEXTS})
        self.assertEqual((code, [len(row) for row in rows]), (200, [len(text) for text in tokens]))
        ids = [[token["id"] for token in text] for text in tokens]
        self.assertEqual(self.curl("/decode", {"ids": ids}), (200, TEXTS))
        code, near = self.curl("/similarity", {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}})
        self.assertEqual(code, 200)
        self.same(near, [1, np.dot(*self.expected)])
        code, answer = self.curl("/embeddings", {"input": TEXTS})
        self.assertEqual(code, 200)
        self.same([one["embedding"] for one in answer["data"]])
        for path in ("/rerank", "/predict", "/embed_sparse"):
            code, answer = self.curl(path, {"inputs": TEXTS[0], "query": "a", "texts": TEXTS})
            self.assertEqual((code, answer["error_type"]), (424, "Backend"))

    def test_huggingface_hub(self):
        from huggingface_hub import AsyncInferenceClient, InferenceClient
        from huggingface_hub.errors import HfHubHTTPError

        client = InferenceClient(model=self.url)
        self.same(client.feature_extraction(TEXTS[0]), self.expected[:1])
        self.same(client.feature_extraction("server answers", prompt_name="query"), self.expected[:1])
        long = "a " * 1000
        with self.assertRaises(HfHubHTTPError):
            client.feature_extraction(long)
        right = client.feature_extraction(long + "server " * 1000, truncate=True, truncation_direction="right")
        left = client.feature_extraction("server " * 1000 + long, truncate=True, truncation_direction="left")
        self.same(right[:, :4], left[:, :4])
        raw = client.feature_extraction(TEXTS[0], normalize=False)
        self.same(raw / np.linalg.norm(raw), self.expected[:1])
        self.same(asyncio.run(AsyncInferenceClient(model=self.url).feature_extraction(TEXTS[0])), self.expected[:1])
        cosines = InferenceClient(model=f"{self.url}/similarity").sentence_similarity(TEXTS[0], other_sentences=TEXTS)
        self.same(cosines, np.array(self.expected) @ self.expected[0])

    def test_haystack(self):
        from haystack import Document
        from haystack_integrations.components.embedders.huggingface_api import (HuggingFaceAPIDocumentEmbedder,
                                                                                HuggingFaceAPITextEmbedder)

        place = {"api_type": "text_embeddings_inference", "api_params": {"url": self.url}, "normalize": True}
        embedder = HuggingFaceAPITextEmbedder(**place)
        self.same([embedder.run(text)["embedding"] for text in TEXTS])
        documents = [Document(content=text) for text in TEXTS]
        answer = HuggingFaceAPIDocumentEmbedder(**place).run(documents)
        self.same([document.embedding for document in answer["documents"]])

    def test_llama_index(self):
        from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

        embedder = TextEmbeddingsInference(model_name="m", base_url=self.url, text_instruction=" ",
                                           query_instruction=" ")
        self.same(embedder.get_text_embedding_batch(TEXTS))
        self.same([embedder.get_query_embedding(TEXTS[0])], self.expected[:1])
        self.same([asyncio.run(embedder.aget_text_embedding(TEXTS[0]))], self.expected[:1])


class RerankTest(unittest.TestCase):
    """A re-ranker and a classifier, each behind a server of its own, as these clients name no model."""

    def serve(self, labels):
        repository = tempfile.TemporaryDirectory()
        self.addCleanup(repository.cleanup)
        folder = Path(repository.name, "scores")
        init_model(folder, architecture="transformers.BertForSequenceClassification", params=json.dumps(
            {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
             "intermediate_size": 48, "id2label": dict(enumerate(labels))}))
        shutil.copytree(PAIRS, folder, dirs_exist_ok=True)
        server = Server(repository=repository.name)
        self.addCleanup(server.close)
        return server

    def test_haystack_ranks(self):
        from haystack import Document
        from haystack_integrations.components.rankers.huggingface_api import HuggingFaceTEIRanker

        url = f"http://{self.serve(['fits']).http}"
        texts = ["ten", "twenty", "thirty", "ten twenty", "thirty ten ten"]
        ranks = requests.post(f"{url}/rerank", json={"query": "thirty", "texts": texts}, timeout=60).json()
        documents = [Document(content=text) for text in texts]
        found = HuggingFaceTEIRanker(url=url).run(query="thirty", documents=documents)["documents"]
        self.assertEqual([document.content for document in found], [texts[rank["index"]] for rank in ranks])
        np.testing.assert_allclose([document.score for document in found], [rank["score"] for rank in ranks])

    def test_haystacks_jina_ranks(self):
        from haystack import Document
        from haystack.utils import Secret
        from haystack_integrations.components.rankers.jina import JinaRanker

        url = f"http://{self.serve(['fits']).http}"
        texts = ["ten", "twenty", "thirty", "ten twenty"]
        ranks = requests.post(f"{url}/rerank", json={"query": "thirty", "texts": texts}, timeout=60).json()[:3]
        ranker = JinaRanker(api_key=Secret.from_token("none"), model="scores", base_url=f"{url}/v1/rerank")
        documents = [Document(content=text) for text in texts]
        found = ranker.run(query="thirty", documents=documents, top_k=3)["documents"]
        self.assertEqual([document.content for document in found], [texts[rank["index"]] for rank in ranks])
        np.testing.assert_allclose([document.score for document in found], [rank["score"] for rank in ranks])

    def test_huggingface_hub_classifies(self):
        from huggingface_hub import InferenceClient

        url = f"http://{self.serve(['no', 'yes']).http}"
        best = requests.post(f"{url}/predict", json={"inputs": "ten twenty"}, timeout=60).json()[0]
        found = InferenceClient(model=url).text_classification("ten twenty")
        self.assertEqual((found.label, found.score), (best["label"], best["score"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
