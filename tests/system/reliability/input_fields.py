"""Every field that a caller fills, with what makes a request in which it has a given size; inputs.md has the same rows."""

import json
from dataclasses import dataclass, field
from typing import Callable

from messages import message_classes

ID_BYTES = 128
ENTRIES = 64  # of a list that has no bound of its own
SEQUENCES = 16384
TEXT_BYTES = 1 << 20
LENGTH = 4096  # the longest sequence of both models
OK = {"OK"}
WRONG = {"INVALID_ARGUMENT"}
MANY = {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
NOBODY = {"NOT_FOUND", "INVALID_ARGUMENT"}
FORBIDDEN = {"PERMISSION_DENIED", "INVALID_ARGUMENT"}  # callers may not load models

MESSAGES = message_classes()
EMBED = "/linserve.v1.EmbeddingService/Embed"
EMBED_STREAM = "/linserve.v1.EmbeddingService/EmbedStream"
GENERATE = "/linserve.v1.EmbeddingService/Generate"
GET_MODEL = "/linserve.v1.EmbeddingService/GetModel"
OIP = "/inference.GRPCInferenceService/"
INFER = OIP + "ModelInfer"
INFER_STREAM = OIP + "ModelStreamInfer"


@dataclass
class Field:
    name: str
    method: str  # of gRPC, or "POST /path"
    request: Callable[[int], bytes]  # the request in which the field has this size
    bound: int  # the largest size that is taken
    taken: set = field(default_factory=lambda: OK)  # codes at sizes from 1 to the bound
    refused: set = field(default_factory=lambda: WRONG)  # codes past it

    def codes(self, size):
        """The codes of which one must answer a request of this size; none at all may stand for a default."""
        if size == 0:
            return OK | self.taken | self.refused
        return self.taken if size <= self.bound else self.refused


def native(kind, **values):
    return MESSAGES["linserve.v1." + kind](**values)


def embed(sequence=None, **values):
    sequences = values.pop("sequences", None) or [sequence or native("Sequence", token_ids=[1, 2, 3])]
    return native("EmbedRequest", model=values.pop("model", "lm"), sequences=sequences, **values).SerializeToString()


def embed_sequence(**values):
    values.setdefault("token_ids", [] if "text" in values or "x" in values or "inputs" in values else [1, 2, 3])
    model = "words" if "text" in values else "lm"
    return embed(native("Sequence", **values), model=model)


def options(**values):
    return embed(options=native("EmbedOptions", **values))


def session(**values):
    return embed_sequence(session=native("SessionChunk", **values))


def tensor(**values):
    return native("Tensor", dtype=6, **values)


def generate(**values):
    made = {"max_tokens": 1, **values.pop("options", {})}
    values.setdefault("model", "lm")
    values.setdefault("token_ids", [1, 2, 3])
    return native("GenerateRequest", options=native("GenerateOptions", **made), **values).SerializeToString()


def oip(kind, **values):
    return MESSAGES["inference." + kind](**values).SerializeToString()


def infer_input(**values):
    made = {"name": "x", "datatype": "INT64", "shape": [1, 3],
            "contents": MESSAGES["inference.InferTensorContents"](int64_contents=[1, 2, 3]), **values}
    return MESSAGES["inference.ModelInferRequest"].InferInputTensor(**made)


def infer(**values):
    values.setdefault("inputs", [infer_input()])
    return oip("ModelInferRequest", model_name=values.pop("model_name", "lm"), **values)


def infer_output(name):
    return MESSAGES["inference.ModelInferRequest"].InferRequestedOutputTensor(name=name)


def parameter(value):
    return MESSAGES["inference.InferParameter"](string_param=value)


def native_fields():
    def sequences(n):
        return embed(sequences=[native("Sequence", token_ids=[1]) for _ in range(n)] or [native("Sequence")])

    yield Field("EmbedRequest.request_id", EMBED, lambda n: embed(request_id="i" * n), ID_BYTES)
    yield Field("EmbedRequest.request_id, on a stream", EMBED_STREAM, lambda n: embed(request_id="i" * n), ID_BYTES)
    yield Field("EmbedRequest.model", EMBED, lambda n: embed(model="m" * n), 0, refused=NOBODY)
    yield Field("EmbedRequest.version", EMBED, lambda n: embed(version=n), 1, refused=NOBODY)
    yield Field("EmbedRequest.priority", EMBED, lambda n: embed(priority=min(n, 2**32 - 1)), 2**32 - 1)
    yield Field("EmbedRequest.sequences", EMBED, sequences, SEQUENCES, refused=MANY)
    yield Field("EmbedRequest.sequences, all empty", EMBED,
                lambda n: embed(sequences=[native("Sequence")] * n), 0, refused=MANY)
    yield Field("EmbedOptions.outputs", EMBED, lambda n: options(outputs=["y"] * n), 1)
    yield Field("EmbedOptions.outputs, a name", EMBED, lambda n: options(outputs=["y" * n]), 1)
    yield Field("EmbedOptions.outputs of many sequences", EMBED, lambda n: native(
        "EmbedRequest", model="lm", options=native("EmbedOptions", outputs=["y"] * 8000),
        sequences=[native("Sequence")] * n).SerializeToString(), 0, refused=MANY)
    yield Field("EmbedOptions.pooling", EMBED, lambda n: options(pooling=n), 5)
    yield Field("EmbedOptions.dtype", EMBED, lambda n: options(dtype=n), 9, taken=OK | WRONG)
    yield Field("EmbedOptions.rows_per_chunk", EMBED, lambda n: options(rows_per_chunk=n), 2**32 - 1)
    yield Field("Sequence.id", EMBED, lambda n: embed_sequence(id="i" * n), ID_BYTES)
    yield Field("Sequence.token_ids", EMBED, lambda n: embed_sequence(token_ids=[1] * n), LENGTH, refused=MANY)
    yield Field("Sequence.text", EMBED, lambda n: embed_sequence(text="a" * n), TEXT_BYTES, taken=OK | WRONG)
    yield Field("Sequence.text, of U+FDFA", EMBED, lambda n: embed_sequence(text="\ufdfa" * n), TEXT_BYTES // 3, taken=OK | WRONG)
    yield Field("Sequence.inputs", EMBED, lambda n: embed_sequence(inputs={f"x{i}": tensor(shape=[0]) for i in range(n)}), 0)
    yield Field("Sequence.inputs, a name", EMBED, lambda n: embed_sequence(inputs={"n" * n: tensor(shape=[0])}), 0)
    yield Field("Tensor.shape, its axes", EMBED, lambda n: embed_sequence(x=tensor(shape=[1] * n, data=bytes(8))), 1)
    yield Field("Tensor.shape, one axis", EMBED, lambda n: embed_sequence(x=tensor(shape=[min(n, 2**63 - 1)], data=bytes(8))), 1)
    yield Field("Tensor.shape, beside an empty axis", EMBED, lambda n: embed_sequence(x=tensor(shape=[min(n, 2**62), 0])), 0)
    yield Field("Tensor.data", EMBED, lambda n: embed_sequence(x=tensor(shape=[1], data=bytes(n))), 0, refused=OK | WRONG)
    yield Field("SessionChunk.id", EMBED, lambda n: session(id="i" * n, start=True, end=True), ID_BYTES)
    yield Field("SessionChunk.position", EMBED, lambda n: session(id="p", start=True, end=True, position=n), 0,
                refused={"FAILED_PRECONDITION"})
    yield Field("SessionChunk.state", EMBED, lambda n: session(id="s", start=True, end=True, state=bytes(n)), 0)
    yield Field("Sequence.total_rows", EMBED_STREAM, lambda n: embed_sequence(total_rows=min(n, 2**63)), 3,
                taken=OK | WRONG, refused=MANY)
    yield Field("Sequence.first_row", EMBED_STREAM, lambda n: embed_sequence(total_rows=2**63, first_row=min(n, 2**63)), 0, refused=MANY)
    yield Field("GenerateRequest.request_id", GENERATE, lambda n: generate(request_id="i" * n), ID_BYTES)
    yield Field("GenerateRequest.model", GENERATE, lambda n: generate(model="m" * n), 0, refused=NOBODY)
    yield Field("GenerateRequest.token_ids", GENERATE, lambda n: generate(token_ids=[1] * n), LENGTH, refused=MANY)
    yield Field("GenerateOptions.top_k", GENERATE, lambda n: generate(options={"top_k": min(n, 2**32 - 1)}), 2**32 - 1)
    yield Field("GenerateOptions.stop_tokens", GENERATE, lambda n: generate(options={"stop_tokens": [1] * n}), 1, taken=OK,
                refused=OK | WRONG)
    yield Field("GenerateRequest.inputs", GENERATE,
                lambda n: generate(inputs={f"x{i}": tensor(shape=[0]) for i in range(n)}), 0)
    yield Field("GetModelRequest.model", GET_MODEL,
                lambda n: native("GetModelRequest", model="m" * n).SerializeToString(), 0, refused=NOBODY)


def oip_fields():
    def contents(n):
        return infer(inputs=[infer_input(shape=[1, n], contents=MESSAGES["inference.InferTensorContents"](int64_contents=[1] * n))])

    yield Field("ModelInferRequest.id", INFER, lambda n: infer(id="i" * n), ID_BYTES)
    yield Field("ModelInferRequest.id, on a stream", INFER_STREAM, lambda n: infer(id="i" * n), ID_BYTES)
    yield Field("ModelInferRequest.model_name", INFER, lambda n: infer(model_name="m" * n), 0, refused=NOBODY)
    yield Field("ModelInferRequest.model_version", INFER, lambda n: infer(model_version="1" * n), 1, refused=NOBODY)
    yield Field("ModelInferRequest.parameters", INFER,
                lambda n: infer(parameters={f"p{i}": parameter("v") for i in range(n)}), ENTRIES)
    yield Field("ModelInferRequest.parameters, a name", INFER, lambda n: infer(parameters={"p" * n: parameter("v")}), ID_BYTES)
    yield Field("ModelInferRequest.parameters, a value", INFER, lambda n: infer(parameters={"pooling": parameter("v" * n)}), 0)
    yield Field("ModelInferRequest.inputs", INFER, lambda n: infer(inputs=[infer_input()] * n), 1)
    yield Field("ModelInferRequest.inputs, other names", INFER,
                lambda n: infer(inputs=[infer_input(name=f"x{i}") for i in range(n)]), 0)
    yield Field("InferInputTensor.name", INFER, lambda n: infer(inputs=[infer_input(name="x" * n)]), 1)
    yield Field("InferInputTensor.datatype", INFER, lambda n: infer(inputs=[infer_input(datatype="I" * n)]), 0)
    yield Field("InferInputTensor.shape, its axes", INFER, lambda n: infer(inputs=[infer_input(shape=[1] * n)]), 0)
    yield Field("InferInputTensor.shape, one axis", INFER, lambda n: infer(inputs=[infer_input(shape=[1, min(n, 2**63 - 1)])]), 0,
                refused=OK | WRONG)
    yield Field("InferInputTensor.shape, beside an empty axis", INFER, lambda n: infer(
        inputs=[infer_input(shape=[min(n, 2**62), 0], contents=None)]), 0, refused=MANY)
    yield Field("InferTensorContents.int64_contents", INFER, contents, LENGTH, refused=MANY)
    yield Field("ModelInferRequest.outputs", INFER, lambda n: infer(outputs=[infer_output("y")] * n), 1)
    yield Field("InferRequestedOutputTensor.name", INFER, lambda n: infer(outputs=[infer_output("y" * n)]), 1)
    yield Field("ModelInferRequest.raw_input_contents", INFER, lambda n: infer(
        inputs=[infer_input(contents=None)], raw_input_contents=[bytes([1] + [0] * 7) * 3] * n), 1)
    for kind in ("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"):
        yield Field(f"{kind}Request.name", OIP + kind, lambda n, kind=kind: oip(kind + "Request", name="m" * n), 0,
                    taken=OK | NOBODY, refused=OK | NOBODY if kind == "ModelReady" else NOBODY)
        yield Field(f"{kind}Request.version", OIP + kind,
                    lambda n, kind=kind: oip(kind + "Request", name="lm", version="1" * n), 1,
                    refused=OK | NOBODY if kind == "ModelReady" else NOBODY)
    for kind in ("RepositoryModelLoad", "RepositoryModelUnload"):
        yield Field(f"{kind}Request.model_name", OIP + kind, lambda n, kind=kind: oip(kind + "Request", model_name="m" * n), 0,
                    taken=FORBIDDEN, refused=FORBIDDEN)
    yield Field("RepositoryIndexRequest.repository_name", OIP + "RepositoryIndex",
                lambda n: oip("RepositoryIndexRequest", repository_name="r" * n), 0, refused=OK | WRONG)
    yield Field("HealthCheckRequest.service", "/grpc.health.v1.Health/Check", lambda n: native_string(n), 0, refused=NOBODY)


def native_string(n):
    """A message whose first field is a text, as that of the health service."""
    return native("GetModelRequest", model="s" * n).SerializeToString()


def rest_fields():
    taken, wrong = {"200"}, {"400", "413", "422", "429"}

    def rest(name, path, body, bound, refused=wrong, **more):
        return Field(f"{path} {name}", "POST " + path, lambda n: json.dumps(body(n)).encode(), bound, refused=refused,
                     **{"taken": taken, **more})

    def v2(**values):
        made = {"inputs": [{"name": "x", "datatype": "INT64", "shape": [1, 3], "data": [1, 2, 3]}], **values}
        return {name: value for name, value in made.items() if value is not None}

    def v2_input(**values):
        return v2(inputs=[{"name": "x", "datatype": "INT64", "shape": [1, 3], "data": [1, 2, 3], **values}])

    path = "/v2/models/lm/infer"
    yield rest("id", path, lambda n: v2(id="i" * n), ID_BYTES)
    yield rest("parameters", path, lambda n: v2(parameters={f"p{i}": i for i in range(n)}), ENTRIES)
    yield rest("inputs", path, lambda n: v2(inputs=[{}] * n), 0)
    yield rest("inputs.shape", path, lambda n: v2_input(shape=[1] * n), 0)
    yield rest("inputs.shape beside an empty axis", path, lambda n: v2_input(shape=[min(n, 2**62), 0], data=[]), 0)
    yield rest("inputs.data", path, lambda n: v2_input(shape=[1, n], data=[1] * n), LENGTH)
    yield rest("outputs", path, lambda n: v2(outputs=[{"name": "y"}] * n), 1)
    path = "/v1/embeddings"
    yield rest("input", path, lambda n: {"model": "lm", "input": [[1]] * n}, SEQUENCES)
    yield rest("input, a list", path, lambda n: {"model": "lm", "input": [1] * n}, LENGTH)
    yield rest("input, a text", path, lambda n: {"model": "words", "input": "a" * n}, TEXT_BYTES, taken=taken | wrong)
    yield rest("input, lists in lists", path, lambda n: {"model": "lm", "input": nested(n)}, 2, taken=taken | wrong)
    yield rest("model", path, lambda n: {"model": "m" * n, "input": [1]}, 0, refused={"404", "400"})
    yield rest("another key", path, lambda n: {"model": "lm", "input": [1], "k" * n: 1}, 128, refused=taken | wrong)
    yield rest("other keys", path, lambda n: {"model": "lm", "input": [1], **{f"k{i}": {} for i in range(n)}}, 16,
               refused=taken | wrong)
    yield rest("inputs", "/embed", lambda n: {"model": "lm", "inputs": [[1]] * n}, SEQUENCES)
    yield rest("truncate_prompt_tokens", path, lambda n: {"model": "lm", "input": [1], "truncate_prompt_tokens": n}, 2**62)
    yield rest("dimensions", path, lambda n: {"model": "lm", "input": [1], "dimensions": n}, 0)
    # TEI answers with codes of its own.
    wrong = wrong | {"424"}
    yield rest("truncation_direction", "/embed", lambda n: {"model": "lm", "inputs": [1], "truncation_direction": "d" * n}, 0)
    yield rest("prompt_name", "/embed", lambda n: {"model": "words", "inputs": "a", "prompt_name": "p" * n}, 0)
    yield rest("inputs", "/embed_all", lambda n: {"model": "lm", "inputs": [[1]] * n}, SEQUENCES, refused=wrong)
    yield rest("inputs", "/tokenize", lambda n: {"model": "words", "inputs": ["a"] * n}, SEQUENCES, refused=wrong)
    yield rest("ids", "/decode", lambda n: {"model": "words", "ids": [[1]] * n}, SEQUENCES, refused=wrong)
    yield rest("ids, a list", "/decode", lambda n: {"model": "words", "ids": [1] * n}, TEXT_BYTES, taken=taken | wrong,
               refused=wrong)
    yield rest("sentences", "/similarity", lambda n: {
        "model": "words", "inputs": {"source_sentence": "a", "sentences": ["b"] * n}}, SEQUENCES - 1, refused=wrong)


def nested(depth):
    """A list in a list in a list; Python's own JSON ends at a depth of some hundreds."""
    made = 1
    for _ in range(min(depth, 500)):
        made = [made]
    return made


def fields():
    return [*native_fields(), *oip_fields(), *rest_fields()]
