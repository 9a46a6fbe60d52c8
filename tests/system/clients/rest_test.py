"""The REST API, as tritonclient, openai and curl call it."""

import json
import subprocess
import unittest

import numpy as np
import openai
import tritonclient.http as httpclient
from served import DIM, WORDS, Server, init_model
from tritonclient.utils import InferenceServerException


def tokens(ids, binary=True, name="x"):
    array = np.asarray(ids, np.int64)
    tensor = httpclient.InferInput(name, list(array.shape), "INT64")
    tensor.set_data_from_numpy(array, binary_data=binary)
    return tensor


class RestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--allow-model-control", "--pooling", "mean")
        cls.client = httpclient.InferenceServerClient(cls.server.http, concurrency=8)
        cls.expected = cls.client.infer("m", [tokens([[1, 2, 3]])], parameters={"pooling": "none"}).as_numpy("embeddings")
        cls.vector = cls.expected[0].mean(0) / np.linalg.norm(cls.expected[0].mean(0))

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def curl(self, path, *options):
        """The status and the parsed answer."""
        run = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", f"http://{self.server.http}{path}", *options],
                             capture_output=True, text=True, check=True, timeout=60)
        body, code = run.stdout.rsplit("\n", 1)
        return int(code), json.loads(body)

    def refused(self, status, part, call):
        with self.assertRaises(InferenceServerException) as caught:
            call()
        self.assertEqual(caught.exception.status(), status)
        self.assertIn(part, caught.exception.message())

    def test_tritonclient_asks_what_there_is(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("m", "1"))
        self.assertFalse(self.client.is_model_ready("nobody"))
        self.assertIn("binary_tensor_data", self.client.get_server_metadata()["extensions"])
        self.assertEqual(self.client.get_model_metadata("m")["inputs"],
                         [{"name": "x", "datatype": "INT64", "shape": [-1, -1]}])
        self.assertGreater(self.client.get_model_config("m")["max_batch_size"], 0)
        before = self.client.get_inference_statistics("m")["model_stats"][0]
        self.client.infer("m", [tokens([[1]])])
        after = self.client.get_inference_statistics()["model_stats"][0]
        self.assertEqual(after["inference_count"] - before["inference_count"], 1)

    def test_tritonclient_infers_in_json_and_bytes(self):
        for binary_in in (True, False):
            for binary_out in (True, False):
                wanted = [httpclient.InferRequestedOutput("embeddings", binary_data=binary_out)]
                result = self.client.infer("m", [tokens([[1, 2, 3]], binary_in)], outputs=wanted, request_id="7",
                                           parameters={"pooling": "none"})
                self.assertEqual(result.get_response()["id"], "7")
                np.testing.assert_allclose(result.as_numpy("embeddings"), self.expected, rtol=1e-5, atol=1e-5)

    def test_tritonclient_infers_asynchronously(self):
        pending = [self.client.async_infer("m", [tokens([[1, 2, 3]])]) for _ in range(30)]
        for one in pending:
            self.assertEqual(one.get_result().as_numpy("embeddings").shape, (1, DIM))

    def test_tritonclient_controls_the_repository(self):
        init_model(self.server.repository / "other", seed=4)
        self.client.load_model("other")
        self.assertTrue(self.client.is_model_ready("other"))
        self.assertEqual([m["name"] for m in self.client.get_model_repository_index()], ["m", "other"])
        self.client.unload_model("other")
        self.assertFalse(self.client.is_model_ready("other"))
        self.refused("404", "failed to load", lambda: self.client.load_model("nobody"))

    def test_errors_are_http_codes(self):
        self.refused("404", "model 'nobody' is not found", lambda: self.client.infer("nobody", [tokens([[1]])]))
        self.refused("400", "missing required input(s)", lambda: self.client.infer("m", [tokens([[1]], name="y")]))
        self.refused("400", str(WORDS), lambda: self.client.infer("m", [tokens([[WORDS]])]))
        for body, part in (("", "the body is empty"), ("[1]", "not a JSON object"), ("{}", '"inputs"'),
                           ('{"inputs": [{"name": "x"}]}', '"datatype"'),
                           ('{"inputs": [{"name": "x", "datatype": "INT64", "shape": [1, 2]}]}', '"data"'),
                           ('{"inputs": [{"name": "x", "datatype": "INT64", "shape": [1, 1], "data": ["a"]}]}',
                            "no such element"),
                           ('{"inputs": [{"name": "x", "datatype": "UINT8", "shape": [1, 1], "data": [256]}]}',
                            "no such element"),
                           ('{"inputs": [{"name": "x", "datatype": "INT64", "shape": [1, 1], '
                            '"parameters": {"binary_data_size": 8}}]}', "0 bytes are left")):
            code, answer = self.curl("/v2/models/m/infer", "-d", body)
            self.assertEqual((code, part in answer["error"]), (400, True), answer)

    def test_curl_needs_no_body_for_the_repository(self):
        code, answer = self.curl("/v2/repository/index", "-X", "POST")
        self.assertEqual((code, answer[0]["name"], answer[0]["state"]), (200, "m", "READY"))

    def test_curl_sends_long_bodies(self):
        body = json.dumps({"inputs": [[i % WORDS for i in range(60)] for _ in range(100)]})
        self.assertGreater(len(body), 8192)
        code, answer = self.curl("/embed", "-d", body)
        self.assertEqual((code, len(answer), len(answer[0])), (200, 100, DIM))

    def test_openai_embeds_token_ids(self):
        client = openai.OpenAI(base_url=f"http://{self.server.http}/v1", api_key="none", max_retries=0)
        self.assertEqual([model.id for model in client.models.list()][0], "m")
        for options in ({}, {"encoding_format": "float"}):
            answer = client.embeddings.create(model="m", input=[[1, 2, 3], [4]], **options)
            np.testing.assert_allclose(answer.data[0].embedding, self.vector, rtol=1e-4, atol=1e-5)
            self.assertEqual((len(answer.data), answer.data[1].index, answer.usage.prompt_tokens), (2, 1, 4))
        with self.assertRaisesRegex(openai.BadRequestError, "no tokenizer"):
            client.embeddings.create(model="m", input="text")
        with self.assertRaises(openai.NotFoundError):
            client.embeddings.create(model="nobody", input=[1])

    def test_embeds_as_text_embeddings_inference_does(self):
        code, answer = self.curl("/embed", "-d", '{"inputs": [[1, 2, 3]]}')
        self.assertEqual(code, 200)
        np.testing.assert_allclose(answer[0], self.vector, rtol=1e-4, atol=1e-5)
        code, answer = self.curl("/embed", "-d", '{"inputs": [1, 2, 3], "normalize": false}')
        np.testing.assert_allclose(answer[0], self.expected[0].mean(0), rtol=1e-4, atol=1e-5)
        code, answer = self.curl("/embed", "-d", '{"inputs": "text"}')
        self.assertEqual((code, answer["error_type"]), (422, "Validation"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
