"""all-MiniLM-L6-v2 with its true weights, as deploy/run --model serves it: sentence-transformers' vectors and neighbours."""

import random
import unittest

import minilm
import numpy as np
import python_package
from sentence_transformers import SentenceTransformer
from served import Server

linserve = python_package.load("linserve")
NEAREST = 10


def nearest(vectors):
    """The sentences in the order of their nearness to each, itself left out, and their cosines."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    order = np.argsort(-cosines, axis=1)[:, :NEAREST]
    return order, np.take_along_axis(cosines, order, 1)


class MinilmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.demonstration = minilm.fetch()
        cls.seed = random.randrange(1 << 30)
        cls.sentences = minilm.sentences(2000, cls.seed)
        cls.expected = SentenceTransformer(str(minilm.FOLDER), device="cpu").encode(cls.sentences)
        server = Server(repository=minilm.FOLDER.parent)
        client = linserve.Client(server.grpc)
        cls.answers = np.stack(client.embed(cls.sentences))
        client.close()
        assert server.close() == 0

    def test_the_demonstration_embeds_and_searches_with_it(self):
        self.assertIn("all-MiniLM-L6-v2", self.demonstration)
        self.assertIn("the server ended with code 0", self.demonstration)

    def test_each_sentence_has_the_vector_of_the_package(self):
        cosines = (self.answers * self.expected).sum(1) / np.linalg.norm(self.expected, axis=1)
        self.assertGreaterEqual(cosines.min(), 0.99999, f"seed {self.seed}")
        np.testing.assert_allclose(self.answers, self.expected, rtol=0, atol=1e-5, err_msg=f"seed {self.seed}")

    def test_each_sentence_has_the_same_ten_nearest(self):
        """Two that are equally near but for rounding may change places."""
        ours, _ = nearest(self.answers)
        _, theirs = nearest(self.expected)
        cosines = np.take_along_axis(self.expected @ self.expected.T, ours, 1)
        np.testing.assert_allclose(cosines, theirs, rtol=0, atol=2e-6, err_msg=f"seed {self.seed}")


if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
