"""PyPI's tritonclient over gRPC, as its users call it."""

import queue
import unittest

import numpy as np
import tritonclient.grpc as grpcclient
from served import DIM, SEQ_LEN, WORDS, Server, init_causal_model, init_model
from tritonclient.utils import InferenceServerException


def tokens(ids, name="x", datatype=None):
    array = np.asarray(ids)
    array = array if datatype else array.astype(np.int64)
    tensor = grpcclient.InferInput(name, list(array.shape), datatype or "INT64")
    tensor.set_data_from_numpy(array)
    return tensor


class TritonGrpcTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--allow-model-control")
        cls.client = grpcclient.InferenceServerClient(cls.server.grpc)
        cls.expected = cls.client.infer("m", [tokens([[1, 2, 3]])]).as_numpy("embeddings")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def refused(self, status, part, call):
        with self.assertRaises(InferenceServerException) as caught:
            call()
        self.assertEqual(caught.exception.status(), "StatusCode." + status)
        self.assertIn(part, caught.exception.message())

    def test_tells_what_it_is_and_has(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("m"))
        self.assertFalse(self.client.is_model_ready("nobody"))
        self.assertEqual(self.client.get_server_metadata().name, "linserve")
        metadata = self.client.get_model_metadata("m")
        self.assertEqual([(i.name, i.datatype, list(i.shape)) for i in metadata.inputs],
                         [("x", "INT64", [-1, -1])])
        config = self.client.get_model_config("m").config
        self.assertEqual(config.name, "m")
        self.assertGreater(config.max_batch_size, 0)

    def test_infers(self):
        result = self.client.infer("m", [tokens([[1, 2, 3], [4, 5, 6]])], request_id="7")
        self.assertEqual(result.get_response().id, "7")
        embeddings = result.as_numpy("embeddings")
        self.assertEqual(embeddings.shape, (2, 3, DIM))
        np.testing.assert_allclose(embeddings[:1], self.expected, rtol=1e-5, atol=1e-5)

    def test_gives_int8_with_a_scale_for_each_row(self):
        for pooling in ("none", "mean"):
            exact = self.client.infer("m", [tokens([[1, 2, 3]])],
                                      parameters={"pooling": pooling}).as_numpy("embeddings")
            result = self.client.infer("m", [tokens([[1, 2, 3]])], priority=1, parameters={
                "pooling": pooling, "dtype": "INT8"})
            rows, scale = result.as_numpy("embeddings"), result.as_numpy("embeddings_scale")
            self.assertEqual(rows.dtype, np.int8)
            np.testing.assert_allclose(rows * scale, exact, atol=0.51 * scale.max())

    def test_pools_and_takes_lengths(self):
        ragged = [tokens([[1, 2, 3], [4, 5, 0]]), tokens([[3], [2]], "lengths")]
        wanted = [grpcclient.InferRequestedOutput("embeddings")]
        pooled = self.client.infer("m", ragged, outputs=wanted,
                                   parameters={"pooling": "mean", "normalize": True}).as_numpy("embeddings")
        self.assertEqual(pooled.shape, (2, DIM))
        np.testing.assert_allclose(np.linalg.norm(pooled, axis=1), 1, rtol=1e-5)
        alone = self.client.infer("m", [tokens([[4, 5]])], outputs=wanted,
                                  parameters={"pooling": "mean", "normalize": True}).as_numpy("embeddings")
        np.testing.assert_allclose(pooled[1:], alone, rtol=1e-5, atol=1e-6)

    def test_infers_asynchronously(self):
        answers = queue.Queue()
        for _ in range(50):
            self.client.async_infer("m", [tokens([[1, 2, 3]])], callback=lambda result, error: answers.put((result, error)))
        for _ in range(50):
            result, error = answers.get(timeout=60)
            self.assertIsNone(error)
            np.testing.assert_allclose(result.as_numpy("embeddings"), self.expected, rtol=1e-5, atol=1e-5)

    def test_streams(self):
        answers = queue.Queue()
        client = grpcclient.InferenceServerClient(self.server.grpc)
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i in range(50):
            client.async_stream_infer("m", [tokens([[1, 2, 3]])], request_id=str(i))
        client.async_stream_infer("m", [tokens([[WORDS]])], request_id="faulty")
        ids, faults = set(), []
        for _ in range(51):
            result, error = answers.get(timeout=60)
            if error:
                faults.append(error.message())
            else:
                ids.add(result.get_response().id)
        self.assertEqual(ids, {str(i) for i in range(50)})
        self.assertEqual(len(faults), 1)
        self.assertIn("[request id: faulty]", faults[0])
        # A long answer comes in parts.
        client.async_stream_infer("m", [tokens([[1] * 10])], parameters={"chunk_rows": 4})
        parts = [answers.get(timeout=60)[0] for _ in range(3)]
        self.assertEqual([part.as_numpy("embeddings").shape[1] for part in parts], [4, 4, 2])
        self.assertEqual([part.get_response().parameters["triton_final_response"].bool_param for part in parts],
                         [False, False, True])
        client.stop_stream()
        client.close()

    def test_counts(self):
        before = self.client.get_inference_statistics("m").model_stats[0]
        self.client.infer("m", [tokens([[1, 2], [3, 4]])])
        after = self.client.get_inference_statistics("m").model_stats[0]
        self.assertEqual(after.inference_count - before.inference_count, 2)
        self.assertEqual(after.inference_stats.success.count - before.inference_stats.success.count, 1)
        self.assertGreater(after.inference_stats.success.ns, before.inference_stats.success.ns)

    def test_controls_the_repository(self):
        init_model(self.server.repository / "other", seed=4)
        self.client.load_model("other")
        self.assertTrue(self.client.is_model_ready("other"))
        index = self.client.get_model_repository_index().models
        self.assertEqual([(m.name, m.version, m.state) for m in index],
                         [("m", "1", "READY"), ("other", "1", "READY")])
        self.assertFalse(np.allclose(self.client.infer("other", [tokens([[1, 2, 3]])]).as_numpy("embeddings"),
                                     self.expected))
        self.client.unload_model("other")
        self.assertFalse(self.client.is_model_ready("other"))
        self.refused("UNAVAILABLE", "'other' is not served: unloaded",
                     lambda: self.client.infer("other", [tokens([[1]])]))
        self.refused("NOT_FOUND", "failed to load 'nobody'", lambda: self.client.load_model("nobody"))

    def test_sends_sequences_with_a_state(self):
        init_causal_model(self.server.repository / "causal")
        self.client.load_model("causal")
        ids = [[7, 3, 200, 41, 5, 9]]
        whole = self.client.infer("causal", [tokens(ids)]).as_numpy("embeddings")
        for sequence in (12, "a name"):
            parts = []
            for begin in (0, 2, 4):
                result = self.client.infer("causal", [tokens([ids[0][begin:begin + 2]])], sequence_id=sequence,
                                           sequence_start=begin == 0, sequence_end=begin == 4)
                self.assertEqual(result.get_response().parameters["sequence_position"].int64_param, begin + 2)
                parts.append(result.as_numpy("embeddings"))
            np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-5, atol=1e-5)
        self.refused("FAILED_PRECONDITION", "session '12' has ended, after 6 rows",
                     lambda: self.client.infer("causal", [tokens([[1]])], sequence_id=12))
        self.client.unload_model("causal")

    def test_refuses_wrong_inputs(self):
        infer = self.client.infer
        self.refused("NOT_FOUND", "model 'nobody' is not found", lambda: infer("nobody", [tokens([[1]])]))
        self.refused("NOT_FOUND", "version 9", lambda: infer("m", [tokens([[1]])], model_version="9"))
        self.refused("INVALID_ARGUMENT", "but missing required input(s) ['x']", lambda: infer("m", [tokens([[1]], "y")]))
        self.refused("INVALID_ARGUMENT", "expected 1 inputs but got 0 inputs", lambda: infer("m", []))
        self.refused("INVALID_ARGUMENT", "data-type is 'FP32', but model 'm' expects 'INT64'",
                     lambda: infer("m", [tokens(np.ones((1, 2), np.float32), datatype="FP32")]))
        self.refused("INVALID_ARGUMENT", "", lambda: infer("m", [tokens([1, 2])]))
        self.refused("INVALID_ARGUMENT", str(SEQ_LEN), lambda: infer("m", [tokens([[1] * (SEQ_LEN + 1)])]))
        self.refused("INVALID_ARGUMENT", str(WORDS), lambda: infer("m", [tokens([[WORDS]])]))
        self.refused("INVALID_ARGUMENT", "nothing",
                     lambda: infer("m", [tokens([[1]])], outputs=[grpcclient.InferRequestedOutput("nothing")]))
        self.refused("UNIMPLEMENTED", "classification",
                     lambda: infer("m", [tokens([[1]])],
                                   outputs=[grpcclient.InferRequestedOutput("embeddings", class_count=3)]))
        self.refused("UNIMPLEMENTED", "has no sessions", lambda: infer("m", [tokens([[1]])], sequence_id=5,
                                                                    sequence_start=True))
        self.refused("INVALID_ARGUMENT", "pooling", lambda: infer("m", [tokens([[1]])], parameters={"pooling": "sum"}))
        self.refused("UNIMPLEMENTED", "", lambda: self.client.get_system_shared_memory_status())


if __name__ == "__main__":
    unittest.main(verbosity=2)
