"""Clients of the REST APIs beside those of rest_test.py, each by the few lines of its own documentation."""

import asyncio
import os
import time
import unittest
import unittest.mock

import aiohttp
import numpy as np
import openai
import tiktoken
import tritonclient.http.aio as triton
from langchain_openai import OpenAIEmbeddings
from served import DIM, Server, init_model
from tritonclient.utils import InferenceServerException

LONG_PAUSE = 1.5  # longer than the second after which connections were closed once


def tokens(ids):
    array = np.asarray(ids, np.int64)
    tensor = triton.InferInput("x", list(array.shape), "INT64")
    tensor.set_data_from_numpy(array)
    return tensor


class Served(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--pooling", "mean", *cls.options, text=True)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0


class TritonAioTest(Served):
    options = ("--allow-model-control",)

    def test_has_all_that_it_asks_for(self):
        asyncio.run(self.ask())

    async def ask(self):
        async with triton.InferenceServerClient(self.server.http) as client:
            self.assertTrue(await client.is_server_live())
            self.assertTrue(await client.is_server_ready())
            self.assertTrue(await client.is_model_ready("m"))
            self.assertFalse(await client.is_model_ready("nobody"))
            self.assertEqual((await client.get_server_metadata())["name"], "linserve")
            metadata = await client.get_model_metadata("m")
            self.assertEqual([i["name"] for i in metadata["inputs"]], ["x", "text"])
            self.assertEqual([o["name"] for o in metadata["outputs"]], ["embeddings", "y", "tokens"])
            self.assertEqual((await client.get_model_config("m"))["name"], "m")
            self.assertEqual((await client.get_inference_statistics("m"))["model_stats"][0]["name"], "m")
            self.assertEqual([m["name"] for m in await client.get_model_repository_index()], ["m"])
            init_model(self.server.repository / "other", seed=4)
            await client.load_model("other")
            await client.unload_model("other")
            for refused in (client.get_system_shared_memory_status(), client.get_cuda_shared_memory_status(),
                            client.get_trace_settings(), client.get_log_settings()):
                with self.assertRaises(InferenceServerException):
                    await refused

    def test_infers_packed_and_not(self):
        asyncio.run(self.infer())

    async def infer(self):
        ids = [[(7 * i + j) % 200 for j in range(60)] for i in range(60)]
        expected = None
        async with triton.InferenceServerClient(self.server.http) as client:
            for binary in (True, False):
                for packed in (None, "gzip", "deflate"):
                    for wanted in (None, "gzip", "deflate"):
                        outputs = [triton.InferRequestedOutput("embeddings", binary_data=binary)]
                        result = await client.infer("m", [tokens(ids)], outputs=outputs, parameters={"pooling": "none"},
                                                    request_compression_algorithm=packed,
                                                    response_compression_algorithm=wanted)
                        self.assertEqual(result.as_numpy("embeddings").shape, (60, 60, DIM))
                        expected = result.as_numpy("embeddings") if expected is None else expected
                        np.testing.assert_allclose(result.as_numpy("embeddings"), expected, rtol=1e-5, atol=1e-6)


class ConnectionTest(Served):
    options = ("--http-keep-alive-seconds", "60", "--http-cors-origins", "https://app.example")

    def test_a_page_of_another_origin_may_call_where_it_is_named(self):
        asyncio.run(self.ask())

    async def ask(self):
        async with aiohttp.ClientSession() as session:
            for origin, allowed in (("https://app.example", "https://app.example"), ("https://other.example", None)):
                wanted = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                async with session.options(f"http://{self.server.http}/v1/embeddings", headers=wanted) as answer:
                    self.assertEqual((answer.status, answer.headers.get("Access-Control-Allow-Origin")), (200, allowed))

    def test_a_connection_serves_calls_with_pauses(self):
        asyncio.run(self.call())

    async def call(self):
        opened = 0

        async def count(*_):
            nonlocal opened
            opened += 1

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(count)
        async with aiohttp.ClientSession(trace_configs=[trace]) as session:
            for pause in (0, 0, 0, LONG_PAUSE, LONG_PAUSE):
                await asyncio.sleep(pause)
                async with session.post(f"http://{self.server.http}/embed", json={"inputs": "a text"}) as answer:
                    self.assertEqual(answer.status, 200)
                    self.assertRegex(answer.headers["Keep-Alive"], r"^timeout=60, max=\d+$")
                    self.assertEqual(len((await answer.json())[0]), DIM)
        self.assertEqual(opened, 1)

    def test_idle_connections_take_no_threads(self):
        asyncio.run(self.idle())

    async def idle(self):
        def threads():
            return len(os.listdir(f"/proc/{self.server.process.pid}/task"))

        before = threads()
        host, port = self.server.http.split(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(200)]
        for reader, writer in held:
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        for reader, _ in held:
            self.assertIn(b"200 OK", await reader.readline())
        deadline = time.monotonic() + 60  # threads that have nothing to do end after ten seconds
        while threads() > before + 20 and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        self.assertLessEqual(threads(), before + 20)
        for _, writer in held:
            writer.close()


class LangChainTest(Served):
    def embeddings(self, **options):
        return OpenAIEmbeddings(base_url=f"http://{self.server.http}/v1", api_key="none", model="m", max_retries=0,
                                **options)

    def test_sends_texts_where_it_is_told_to(self):
        vectors = self.embeddings(check_embedding_ctx_length=False).embed_documents(["a text", "another one"])
        self.assertEqual([len(vector) for vector in vectors], [DIM, DIM])
        short = self.embeddings(check_embedding_ctx_length=False, dimensions=DIM)
        np.testing.assert_allclose(short.embed_query("a text"), vectors[0], rtol=1e-5, atol=1e-6)

    def test_is_told_the_cause_where_it_sends_the_ids_of_another_tokenizer(self):
        # In place of cl100k, whose file would have to be fetched: a tokenizer whose ids are as high.
        other = tiktoken.Encoding("other", pat_str=r"\S+|\s+", mergeable_ranks={bytes([i]): 100_000 + i for i in range(256)},
                                  special_tokens={})
        with unittest.mock.patch("tiktoken.encoding_for_model", return_value=other), \
             unittest.mock.patch("tiktoken.get_encoding", return_value=other):
            with self.assertRaisesRegex(openai.BadRequestError, "check_embedding_ctx_length=False"):
                self.embeddings().embed_documents(["a text"])


class OpenAiErrorsTest(Served):
    def setUp(self):
        self.client = openai.OpenAI(base_url=f"http://{self.server.http}/v1", api_key="none", max_retries=0)

    def refused(self, error, code, param, call):
        with self.assertRaises(error) as caught:
            call()
        self.assertEqual((caught.exception.code, caught.exception.param), (code, param), caught.exception)
        self.assertTrue(caught.exception.request_id)
        self.assertTrue(caught.exception.body["message"])

    def test_errors_are_of_its_classes(self):
        create = self.client.embeddings.create
        self.refused(openai.NotFoundError, "model_not_found", "model", lambda: create(model="nobody", input="a"))
        self.refused(openai.NotFoundError, "model_not_found", "model", lambda: self.client.models.retrieve("nobody"))
        self.refused(openai.BadRequestError, "invalid_value", "dimensions",
                     lambda: create(model="m", input="a", dimensions=DIM - 1))
        self.refused(openai.BadRequestError, "invalid_value", "input", lambda: create(model="m", input=[100_257]))
        self.refused(openai.NotFoundError, "unknown_url", None,
                     lambda: self.client.chat.completions.create(model="m", messages=[]))
        self.refused(openai.APIStatusError, "method_not_supported", None,
                     lambda: self.client.get("/embeddings", cast_to=object))

    def test_takes_dimensions_that_are_the_models(self):
        answer = self.client.embeddings.create(model="m", input="a text", dimensions=DIM)
        self.assertEqual(len(answer.data[0].embedding), DIM)


if __name__ == "__main__":
    unittest.main(verbosity=2)
