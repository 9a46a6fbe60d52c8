"""A client of linserve: texts, token ids and arrays in, NumPy arrays out.

    client = linserve.Client("127.0.0.1:8500")
    vectors = client.embed(["a first text", "a second one"], pooling="mean", normalize=True)

What this does not have is in linserve.v1, the protocol's own stubs: client.stub.Generate(request, **client.arguments).
"""

import os
import random
import re
import time
import uuid
from importlib import resources
from pathlib import Path

import grpc
import numpy as np

from linserve.v1 import embedding_pb2 as pb
from linserve.v1.embedding_pb2_grpc import EmbeddingServiceStub

__all__ = ["Client", "SequenceFaults", "Session"]

# The protocol's types by NumPy's names of theirs.
_TYPES = {"bool": pb.DATA_TYPE_BOOL, "uint8": pb.DATA_TYPE_U8, "int8": pb.DATA_TYPE_I8, "int16": pb.DATA_TYPE_I16,
          "int32": pb.DATA_TYPE_I32, "int64": pb.DATA_TYPE_I64, "float16": pb.DATA_TYPE_F16,
          "float32": pb.DATA_TYPE_F32}
_MOST_SEQUENCES, _MOST_BYTES = 1024, 16 << 20  # of one request


class SequenceFaults(Exception):
    """Some sequences of a call cannot be computed: `faults` has a text for each by its index, and `results` what all
    others gave, and None for these."""

    def __init__(self, faults, results):
        self.faults, self.results = faults, results
        index, text = next(iter(faults.items()))
        super().__init__(f"{len(faults)} of {len(results)} sequences failed; sequence {index}: {text}")


class Client:
    """Calls one server. Threads may share it.

    target       HOST:PORT, dns:///NAME:PORT or unix:PATH; by default LINSERVE_GRPC_ADDRESS, or 127.0.0.1:8500
    model        of the calls that name none; needed where the server has several
    token        what the server asks callers for; by default LINSERVE_TOKEN
    tls          speak TLS; so does whoever gives one of the following
    ca           PEM file of the authority that signed the server's certificate; without it, the machine's
    certificate  PEM file of the certificate to show, and `key` that of its private key
    server_name  the name that the server's certificate is for, if it is not the target's
    balance      spread calls over all addresses of the target that say they serve
    timeout      seconds for a request, which is sent again where the server is full or restarts; None: no end
    """

    def __init__(self, target=None, *, model="", token=None, tls=False, ca=None, certificate=None, key=None,
                 server_name=None, balance=False, timeout=60.0):
        target = target or os.environ.get("LINSERVE_GRPC_ADDRESS") or "127.0.0.1:8500"
        if bool(certificate) != bool(key):
            raise ValueError("certificate and key belong together: give both or neither")
        token = token or os.environ.get("LINSERVE_TOKEN")
        # This retries by itself: with gRPC's own retries, a call whose server is killed would never end in Python.
        options = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1),
                   ("grpc.max_send_message_length", -1)]
        if balance:
            config = resources.files("linserve").joinpath("service_config.json").read_text(encoding="utf-8")
            options.append(("grpc.service_config", config))
        if re.match(r"((dns|ipv4|ipv6):/*)?(127\.|localhost\b|\[::1?\]|0\.0\.0\.0)", target):
            options.append(("grpc.enable_http_proxy", 0))  # gRPC would ask http_proxy's even for this machine
        if server_name:
            options.append(("grpc.ssl_target_name_override", server_name))
        if tls or ca or certificate or server_name:
            ca, key, certificate = (Path(file).read_bytes() if file else None for file in (ca, key, certificate))
            self._channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(ca, key, certificate), options)
        else:
            self._channel = grpc.insecure_channel(target, options)
        self.stub, self._model = EmbeddingServiceStub(self._channel), model
        # gRPC's own credentials of calls are for TLS only; on one machine there may be none.
        metadata = [("authorization", f"Bearer {token.strip()}")] if token else []
        self.arguments = {"timeout": timeout, "metadata": metadata}
        self._answered = False  # whether the server was ever there

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._channel.close()

    def models(self):
        """What the server has: pb.Model, with its inputs, outputs and limits."""
        return list(self.stub.ListModels(pb.ListModelsRequest(), **self.arguments).models)

    def embed(self, inputs, *, model=None, version=0, output=None, pooling=None, normalize=None, truncation=None,
              prompt_name="", priority=0):
        """Embeds sequences: one array [sequences, width] ([0, 0] of none), or where rows are not pooled a list of arrays
        [rows, width].

        inputs      a list of sequences, each a text, token ids, an array of floats [rows, width], or a dict of the
                    model's inputs by name; or an array of them all
        output      by default the model's first
        pooling     "none", "mean", "cls", "last" or "max"; by default as the model is served
        normalize   whether vectors get the length one; by default as the model is served
        truncation  "left" or "right": what is cut off texts that are too long; "none": they are refused; without it
                    the model's option decides
        prompt_name of the model's prompt that stands before each text; by default its default one, if it has one
        """
        if isinstance(inputs, (str, bytes, dict)):
            raise TypeError(f"inputs is a {type(inputs).__name__}, expected a list of sequences")
        options = pb.EmbedOptions(outputs=[output] if output else [], pooling=_choice("POOLING_", pb.Pooling, pooling),
                                  normalize=normalize, truncation=_choice("TRUNCATION_", pb.Truncation, truncation),
                                  prompt_name=prompt_name)
        results, faults = [], {}
        for request in _requests([_sequence(one) for one in inputs]):
            request.MergeFrom(pb.EmbedRequest(model=model or self._model, version=version, options=options,
                                              priority=priority))
            answers = _gathered(self._answers(request), len(request.sequences))
            faults.update((len(results) + index, answer) for index, answer in enumerate(answers)
                          if isinstance(answer, str))
            results += [None if isinstance(answer, str) else answer for answer in answers]
        if faults:
            raise SequenceFaults(faults, results)
        if not results and pooling != "none":
            return np.empty((0, 0), np.float32)  # no result tells the width
        return np.stack(results) if results and results[0].ndim == 1 else results

    def session(self, *, model=None, version=0, output=None):
        """Begins a sequence of a causal model, which is read chunk by chunk."""
        return Session(self._answers, pb.EmbedRequest(
            model=model or self._model, version=version,
            options=pb.EmbedOptions(outputs=[output] if output else [], pooling=pb.POOLING_NONE)))

    def _answers(self, request):
        """All that the server sends for a request. Where it says when to come back, or was there and is gone, this
        tries again."""
        timeout = self.arguments["timeout"]
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            try:
                responses = list(self.stub.Embed(request, **{**self.arguments, "timeout": left}))
                self._answered = True
                return responses
            except grpc.RpcError as error:
                gone = self._answered and error.code() == grpc.StatusCode.UNAVAILABLE
                pause = dict(error.trailing_metadata() or ()).get("grpc-retry-pushback-ms", 500 if gone else None)
                if pause is None:
                    raise
                pause = int(pause) / 1000 * random.uniform(1, 1.5)  # those refused together do not return together
                if end is not None and time.monotonic() + pause >= end:
                    raise
            time.sleep(pause)


class Session:
    """A sequence in chunks. The rows of each are those of the whole, however it is cut."""

    def __init__(self, answers, request):
        self._answers, self._request, self._id = answers, request, uuid.uuid4().hex
        self.position = 0  # how many rows were read

    def read(self, chunk, *, last=False):
        """The rows of the next chunk; after the `last` one the server forgets the session."""
        request = pb.EmbedRequest(sequences=[_sequence(chunk)])
        request.MergeFrom(self._request)
        request.sequences[0].session.MergeFrom(pb.SessionChunk(
            id=self._id, start=self.position == 0, end=last, position=self.position))
        responses = self._answers(request)
        rows = _gathered(responses, 1)[0]
        if isinstance(rows, str):
            raise SequenceFaults({0: rows}, [None])
        self.position = responses[-1].session.position
        return rows


def _choice(kind, enum, name):
    known = {key.removeprefix(kind).lower(): value for key, value in enum.items()}
    if name is None:
        return known["unspecified"]
    if name not in known:
        raise ValueError(f"{name!r} is none of {', '.join(key for key in known if key != 'unspecified')}")
    return known[name]


def _tensor(value):
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = array.astype(np.float32)  # what NumPy makes of Python's floats
    if array.dtype.name not in _TYPES:
        raise TypeError(f"an array of {array.dtype}, expected one of {', '.join(_TYPES)}")
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return pb.Tensor(dtype=_TYPES[array.dtype.name], shape=array.shape, data=data)


def _sequence(value):
    if isinstance(value, str):
        return pb.Sequence(text=value)
    if isinstance(value, dict):
        return pb.Sequence(inputs={name: _tensor(array) for name, array in value.items()})
    return pb.Sequence(x=_tensor(value))


def _requests(sequences):
    """Shares sequences out among requests, each well within the server's bounds if none is large by itself."""
    request, size = pb.EmbedRequest(), 0
    for sequence in sequences:
        size += sequence.ByteSize()
        if request.sequences and (len(request.sequences) == _MOST_SEQUENCES or size > _MOST_BYTES):
            yield request
            request, size = pb.EmbedRequest(), sequence.ByteSize()
        request.sequences.append(sequence)
    if request.sequences:
        yield request


def _gathered(responses, count):
    """The results of a request in its order: an array each, or a text for a fault."""
    chunks = [[] for _ in range(count)]
    for response in responses:
        if response.code:
            code = next((code.name for code in grpc.StatusCode if code.value[0] == response.code), response.code)
            chunks[response.index] = f"{code}: {response.message}"
        elif response.HasField("rows"):
            chunks[response.index].append(np.frombuffer(response.rows.data, "<f4").reshape(response.rows.shape))
    return [chunk if isinstance(chunk, str) else np.concatenate(chunk) for chunk in chunks]
