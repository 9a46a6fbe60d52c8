"""Promise 11: no message hurts. Each field is sent at 0, 1, its bound, one past it and a thousand times past it, alone and by many."""

import http.client
import json
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from harness import Figure, Server, Settings, channel_of, init_model, load, wait_for
from input_fields import EMBED, EMBED_STREAM, GENERATE, INFER_STREAM, LENGTH, MESSAGES, Field, fields
from memory_group import MemoryGroup

ROOT = Path(__file__).resolve().parents[3]
MEMORY = 1 << 30
AT_ONCE = 64
AT_ONCE_QUICKLY = 4
MOST_BYTES = 16 << 20  # of a message that is sent; the callers are on the same machine
DRAIN_SECONDS = 5
HEAVIEST = {"EmbedRequest.sequences", "/similarity sentences"}
DENIED = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "429", "503"}  # of many at once some may be sent away
STREAMED = {EMBED, EMBED_STREAM, GENERATE, INFER_STREAM}
CODES = {code.value[0]: code.name for code in grpc.StatusCode}


def at_once():
    return AT_ONCE_QUICKLY if Settings.quick else AT_ONCE


def sizes(field: Field):
    """What is tried of a field, as far as its message fits."""
    bound = field.bound
    for size in sorted({0, 1, bound, bound + 1, 1000 * (bound + 1)}):
        if size * least_bytes(field) <= MOST_BYTES:
            yield size
        else:
            yield min(size, max(bound + 1, MOST_BYTES // least_bytes(field)))
            return


def least_bytes(field: Field):
    """The bytes that a message grows by with the field, at least."""
    return max(1, (len(field.request(11)) - len(field.request(1))) // 10)


def answers_code(method, answer):
    """The code within a streamed answer."""
    if method in (EMBED, EMBED_STREAM):
        return CODES[MESSAGES["linserve.v1.EmbedResponse"].FromString(answer).code]
    return "OK"


def call_grpc(channel, method, request, timeout=60):
    """The code of a call, or of the first of its answers that has another than OK."""
    try:
        if method not in STREAMED:
            channel.unary_unary(method)(request, timeout=timeout)
            return "OK"
        if method in (EMBED_STREAM, INFER_STREAM):
            answers = channel.stream_stream(method)(iter([request]), timeout=timeout, metadata=(("triton_grpc_error", "true"),))
        else:
            answers = channel.unary_stream(method)(request, timeout=timeout)
        codes = [answers_code(method, answer) for answer in answers]
        return next((code for code in codes if code != "OK"), "OK")
    except grpc.RpcError as error:
        return error.code().name


def call_http(address, method, body, timeout=60):
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request("POST", method.split()[1], body, {"Content-Type": "application/json"})
        return str(connection.getresponse().status)
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()


class Attack:
    """Sends fields to a server, and holds what went wrong."""

    def __init__(self, server):
        self.server, self.calls, self.wrong, self.kept = server, 0, [], []

    def make_busy(self, crowd):
        """Sends what takes most. What a server that was busy once keeps, such as its threads' scratch, is no field's."""
        for field in fields():
            if field.name in HEAVIEST:
                list(crowd.map(self.send, [field] * at_once(), [field.request(field.bound)] * at_once()))

    def send(self, field, request):
        if field.method.startswith("POST "):
            return call_http(self.server.http, field.method, request)
        with channel_of(self.server.grpc) as channel:
            return call_grpc(channel, field.method, request)

    def expect(self, field, size, codes, allowed):
        self.calls += len(codes)
        if unexpected := set(codes) - allowed:
            self.wrong.append(f"{field.name} of {size}: {', '.join(sorted(unexpected))} for {', '.join(sorted(allowed))}")

    def try_field(self, field, crowd):
        before = self.server.memory()
        for size in sizes(field):
            request = field.request(size)
            self.expect(field, size, [self.send(field, request)], field.codes(size))
            if crowd:
                codes = list(crowd.map(lambda _, made=request: self.send(field, made), range(at_once())))
                self.expect(field, size, codes, field.codes(size) | DENIED)
        if not Settings.judges_memory():
            return
        try:
            wait_for(lambda: self.server.memory() <= 1.05 * before + (16 << 20), "memory to come back", 20)
        except TimeoutError:
            self.kept.append(f"{field.name} {(self.server.memory() - before) / 2**20:+.0f} MiB")


def start(group):
    directory = tempfile.TemporaryDirectory()
    repository = Path(directory.name)
    subprocess.run(["cp", "-r", ROOT / "deploy/models/sentence-encoder", repository / "words"], check=True)
    init_model(repository / "lm", {"num_tokens": 256, "dim": 16, "depth": 1, "heads": 2, "max_seq_len": LENGTH, "causal": True},
               architecture="linear_attention_transformer.LinearAttentionTransformerLM")
    server = Server(repository=repository, prefix=group.prefix(),
                    options=("--threads", "1", "--drain-timeout-seconds", str(DRAIN_SECONDS),
                             "--grpc-unix-socket", repository / "socket"))
    server.models = directory
    return server


def end_amid(server, crowd):
    """How long SIGTERM takes while the largest requests are computed."""
    most = max((field for field in fields() if field.name == "EmbedRequest.sequences"), key=lambda field: field.bound)
    attack, request = Attack(server), most.request(most.bound)
    sent = [crowd.submit(attack.send, most, request) for _ in range(at_once())]
    wait_for(lambda: server.total("linserve_in_flight_requests") > 1, "the requests to arrive")
    begin = time.monotonic()
    code = server.stop(signal.SIGTERM)
    for one in sent:
        one.result()
    return code, time.monotonic() - begin


def every_field():
    """All fields of all protocols, under a memory limit, beside a caller who does no harm."""
    with MemoryGroup(MEMORY) as group, ThreadPoolExecutor(at_once()) as crowd:
        server = start(group)
        attack = Attack(server)
        attack.make_busy(crowd)
        # By the Unix socket it is another caller than those who attack. gRPC hangs up on idle connections where
        # messages that are not whole yet take too much: who is told UNAVAILABLE tries again, as service_config.json
        # has clients do.
        innocent = load(f"unix:{server.models.name}/socket", "--model", "words", "--rate", "20", "--lengths", "fixed:16", "--duration", "36000", balance=True)
        begin = time.monotonic()
        tried = fields()
        for field in tried:
            attack.try_field(field, crowd)
            if server.process.poll() is not None:
                break
        seconds = time.monotonic() - begin
        innocent.send_signal(signal.SIGINT)
        report = json.loads(innocent.communicate()[0])
        alive = server.process.poll() is None
        most = server.kib("VmHWM") / 1024 if alive else 0
        figures = [
            Figure(f"{attack.calls} calls of {len(tried)} fields in {seconds:.0f} s", f"the server {'is' if alive else 'IS NOT'} alive",
                   "alive", alive),
            Figure("their codes", "; ".join(attack.wrong) or "as promised", "as in inputs.md", not attack.wrong),
            Figure("memory after each field", "; ".join(attack.kept) or "came back", "5 % and 16 MiB over that before", not attack.kept),
            Figure(f"memory at most{group.note}", f"{most:.0f} MiB", f"{MEMORY >> 20} MiB", most < MEMORY >> 20 or not Settings.judges_memory())]
        figures.append(innocent_figure(report))
        if alive:
            code, took = end_amid(server, crowd)
            figures.append(Figure("SIGTERM amid the largest requests", f"exit code {code} after {took:.1f} s",
                                  f"0, within {DRAIN_SECONDS + 5} s", code == 0 and took < DRAIN_SECONDS + 5))
        return figures


def innocent_figure(report):
    latency, errors = report["latency_ms"]["p99"], report["request_errors"]
    return Figure("a caller who does no harm meanwhile", f"p99 {latency:.0f} ms, {errors or 'no'} errors", "p99 under 500 ms, no errors",
                  (latency < 500 or not Settings.judges_speed()) and not errors)
