"""The Python client of client/python, as its users call it."""

import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import grpc
import numpy as np
import python_package
from served import DIM, WORDS, Server, init_model

linserve = python_package.load("linserve")
pb = python_package.load("linserve.v1.embedding_pb2")


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(text=True, causal=True, serving={"prompts": {"query": "the "}})
        cls.client = linserve.Client(cls.server.grpc, model="m")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def test_texts_become_an_array(self):
        vectors = self.client.embed(["a first text", "a second one"], pooling="mean", normalize=True)
        self.assertEqual((vectors.shape, vectors.dtype), ((2, DIM), np.float32))
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        self.assertFalse(np.allclose(*vectors))

    def test_rows_that_are_not_pooled_are_a_list(self):
        first, second = self.client.embed([[1, 2, 3], [4]], pooling="none")
        self.assertEqual((first.shape, second.shape), ((3, DIM), (1, DIM)))
        np.testing.assert_allclose(self.client.embed([[1, 2, 3]], pooling="mean")[0], first.mean(0), atol=1e-6)

    def test_sequences_come_in_any_form(self):
        wanted = self.client.embed([[1, 2, 3]], pooling="cls")
        for sequences in (np.array([[1, 2, 3]]), [np.array([1, 2, 3], np.int32)], [{"x": [1, 2, 3]}], [(1, 2, 3)]):
            np.testing.assert_array_equal(self.client.embed(sequences, pooling="cls"), wanted)
        self.assertEqual(self.client.embed([]).shape, (0, 0))
        self.assertEqual(self.client.embed([], pooling="none"), [])

    def test_prompts_by_name(self):
        np.testing.assert_array_equal(self.client.embed(["server answers"], prompt_name="query"),
                                      self.client.embed(["the server answers"]))
        with self.assertRaisesRegex(grpc.RpcError, "has no prompt 'passage'; expected one of 'query'"):
            self.client.embed(["a"], prompt_name="passage")

    def test_outputs_by_name(self):
        logits = self.client.embed([[1, 2, 3]], output="y", pooling="none")
        self.assertEqual(logits[0].shape, (3, WORDS))

    def test_floats_of_any_type(self):
        init_model(self.server.repository / "rows", architecture="linformer.Linformer",
                   params='{"dim": 8, "seq_len": 16, "depth": 1, "heads": 2}')
        with Served("rows", self.server.repository / "rows") as server, linserve.Client(server.grpc) as client:
            rows = np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)
            for one in (rows, rows.astype(np.float64), rows.tolist(), np.asfortranarray(rows), rows.astype(">f4")):
                np.testing.assert_array_equal(client.embed([one], pooling="none")[0],
                                              client.embed([{"x": rows}], pooling="none")[0])
            with self.assertRaisesRegex(TypeError, "array of complex64, expected one of bool"):
                client.embed([rows.astype(np.complex64)])

    def test_many_sequences_go_in_several_requests(self):
        many = [[i % WORDS, i // WORDS] for i in range(2500)]
        vectors = self.client.embed(many, pooling="mean")
        self.assertEqual(vectors.shape, (2500, DIM))
        np.testing.assert_allclose(vectors[2077], self.client.embed([many[2077]], pooling="mean")[0], atol=1e-5)

    def test_calls_are_spread_over_addresses_that_serve(self):
        host, port = self.server.grpc.split(":")
        with linserve.Client(f"ipv4:{host}:{port},{host}:1", model="m", balance=True) as client:
            for _ in range(4):
                self.assertEqual(client.embed([[1, 2]], pooling="mean").shape, (1, DIM))

    def test_long_texts_are_cut_if_asked(self):
        long = "word " * 200
        self.assertEqual(self.client.embed([long], pooling="mean", truncation="right").shape, (1, DIM))
        with self.assertRaisesRegex(linserve.SequenceFaults, "sequence 0: INVALID_ARGUMENT"):
            self.client.embed([long])

    def test_a_faulty_sequence_is_named_and_the_others_have_results(self):
        many = [[1]] * 1500 + [[WORDS]] + [[2]]
        text = f"1 of 1502 .* 1500: INVALID_ARGUMENT: .*{WORDS}"
        with self.assertRaisesRegex(linserve.SequenceFaults, text) as caught:
            self.client.embed(many, pooling="mean")
        self.assertEqual(list(caught.exception.faults), [1500])
        self.assertIsNone(caught.exception.results[1500])
        self.assertEqual(caught.exception.results[1501].shape, (DIM,))

    def test_what_is_no_list_of_sequences(self):
        with self.assertRaisesRegex(TypeError, "a str, expected a list"):
            self.client.embed("a text")
        with self.assertRaisesRegex(ValueError, "'median' is none of none, mean, cls"):
            self.client.embed(["a text"], pooling="median")

    def test_faults_of_a_request_are_grpcs(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.embed([[1]], model="nobody")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_a_session_reads_a_sequence_in_chunks(self):
        ids = [7, 3, 200, 41, 5]
        whole, = self.client.embed([ids], model="causal", pooling="none")
        session = self.client.session(model="causal")
        chunks = [session.read(ids[:2]), session.read(ids[2:3]), session.read(ids[3:], last=True)]
        np.testing.assert_allclose(np.concatenate(chunks), whole, atol=1e-5)
        self.assertEqual(session.position, 5)
        session = self.client.session(model="causal")
        session.read(ids[:2])
        with self.assertRaisesRegex(linserve.SequenceFaults, "INVALID_ARGUMENT"):
            session.read([WORDS])
        np.testing.assert_allclose(session.read(ids[2:]), whole[2:], atol=1e-5)

    def test_the_stubs_have_the_rest(self):
        self.assertEqual([model.name for model in self.client.models()], ["causal", "m"])
        request = pb.GenerateRequest(model="causal", token_ids=[1, 2], options=pb.GenerateOptions(max_tokens=3))
        answers = self.client.stub.Generate(request, **self.client.arguments)
        self.assertEqual(sum(len(answer.token_ids) for answer in answers), 3)


class Served(Server):
    """A server of one model that is there."""

    def __init__(self, name, model, *options):
        self.own = tempfile.TemporaryDirectory()
        Path(model).rename(Path(self.own.name, name))
        super().__init__(*options, repository=self.own.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.close() == 0
        self.own.cleanup()


class LetInTest(unittest.TestCase):
    def test_tls_and_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate, tokens = (Path(folder, name) for name in ("tls.key", "tls.crt", "tokens.json"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "1", "-subj",
                            "/CN=linserve", "-addext", "subjectAltName=DNS:linserve.test", "-keyout", key,
                            "-out", certificate], check=True, capture_output=True)
            token = "a token of this test"
            tokens.write_text(f'{{"tokens": [{{"name": "me", "token": "{token}"}}]}}', encoding="utf-8")
            server = Server("--tls-certificate", certificate, "--tls-private-key", key, "--tokens-file", tokens)
            self.addCleanup(server.close)
            trusted = {"ca": certificate, "server_name": "linserve.test", "timeout": 10}
            with linserve.Client(server.grpc, token=token + "\n", **trusted) as client:
                self.assertEqual(client.embed([[1, 2]], pooling="mean").shape, (1, DIM))
                self.assertEqual(len(client.models()), 1)
            for options, code in (({"token": "another"}, grpc.StatusCode.UNAUTHENTICATED),
                                  ({"server_name": "else.test"}, grpc.StatusCode.UNAVAILABLE),
                                  ({"server_name": None, "ca": None}, grpc.StatusCode.UNAVAILABLE)):
                options = {**trusted, "token": token, **options}
                with linserve.Client(server.grpc, **options) as client, self.assertRaises(grpc.RpcError) as caught:
                    client.embed([[1, 2]])
                self.assertEqual(caught.exception.code(), code)

    def test_a_certificate_without_its_key_is_told(self):
        for files in ({"certificate": "tls.crt"}, {"key": "tls.key"}):
            with self.assertRaisesRegex(ValueError, "give both or neither"):
                linserve.Client("127.0.0.1:1", **files)

    def test_a_server_that_restarts_and_no_proxy_for_this_machine(self):
        first = Server()
        with mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:1"}), linserve.Client(first.grpc) as client:
            wanted = client.embed([[1, 2]], pooling="mean")
            first.close()
            with ThreadPoolExecutor(1) as pool:
                call = pool.submit(client.embed, [[1, 2]], pooling="mean")
                second = Server(grpc_port=first.grpc.split(":")[1])
                self.addCleanup(second.close)
                self.assertEqual(call.result().shape, wanted.shape)

    def test_a_call_whose_server_is_killed_ends(self):
        for balance in (False, True):
            with self.subTest(balance=balance):
                server = Server()
                client = linserve.Client(server.grpc, timeout=5, balance=balance)
                client.embed([[1, 2]])
                errors = []

                def call(client=client, errors=errors):
                    with self.assertRaises(grpc.RpcError) as caught:
                        client.embed([[1, 2]])
                    errors.append(caught.exception.code())

                server.process.send_signal(signal.SIGSTOP)  # so that the call is not answered before
                os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)  # all its threads have stopped
                thread = threading.Thread(target=call, daemon=True)
                thread.start()
                time.sleep(0.5)
                server.process.kill()
                server.close()
                thread.join(30)
                self.assertIn(errors, ([grpc.StatusCode.UNAVAILABLE], [grpc.StatusCode.DEADLINE_EXCEEDED]))

    def test_who_is_refused_comes_back_when_the_server_says(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = Path(folder, "tokens.json")
            tokens.write_text('{"tokens": [{"name": "me", "token": "a token of this test", "requests_per_second": 0.5}]}',
                              encoding="utf-8")
            server = Server("--tokens-file", tokens)
            self.addCleanup(server.close)
            with linserve.Client(server.grpc, token="a token of this test") as client:
                request = pb.EmbedRequest(sequences=[pb.Sequence(token_ids=[1])])
                with self.assertRaisesRegex(grpc.RpcError, "RESOURCE_EXHAUSTED"):
                    for _ in range(100):
                        list(client.stub.Embed(request, **client.arguments))
                self.assertEqual(client.embed([[1, 2]], pooling="mean").shape, (1, DIM))
                client.arguments["timeout"] = 0.2  # which ends before the server has room again
                with self.assertRaisesRegex(grpc.RpcError, "RESOURCE_EXHAUSTED"):
                    client.embed([[1, 2]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
