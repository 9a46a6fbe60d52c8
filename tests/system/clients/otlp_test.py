"""The server's spans, taken by the service that a collector of OpenTelemetry has."""

import json
import os
import queue
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

from served import Server

PATIENCE_S = 30
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"


def values(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps the spans that it gets, each with its resource's attributes. `answers`: codes with which it refuses the
    first ones."""

    def __init__(self, credentials=None, answers=()):
        self.spans = queue.Queue()
        self.kept = []
        self.answers = list(answers)
        self.server = grpc.server(ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self.server)
        address = "127.0.0.1:0"
        self.port = (self.server.add_secure_port(address, credentials) if credentials
                     else self.server.add_insecure_port(address))
        self.server.start()

    def Export(self, request, context):
        if self.answers:
            context.abort(self.answers.pop(0), "not now")
        for of_resource in request.resource_spans:
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    self.spans.put((span, values(of_resource.resource.attributes)))
        return trace_service_pb2.ExportTraceServiceResponse()

    def find(self, name, count=1, **ids):
        """Spans of a name, and of a trace or parent."""
        limit = time.monotonic() + PATIENCE_S
        while True:
            found = [(span, resource) for span, resource in self.kept
                     if span.name == name and all(getattr(span, key).hex() == value for key, value in ids.items())]
            if len(found) >= count:
                return found
            self.kept.append(self.spans.get(timeout=max(0.01, limit - time.monotonic())))

    def all(self):
        """The names of all spans that have come."""
        while not self.spans.empty():
            self.kept.append(self.spans.get())
        return [span.name for span, _ in self.kept]

    def stop(self):
        self.server.stop(None).wait()


class OtlpTest(unittest.TestCase):
    def start(self, *options, scheme="http", variables=None, **how):
        self.collector = Collector(**how)
        self.addCleanup(self.collector.stop)
        before = dict(os.environ)
        os.environ.update(variables or {})
        try:
            self.server = Server("--otlp-endpoint", f"{scheme}://127.0.0.1:{self.collector.port}", *options)
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.addCleanup(self.close)

    def close(self):
        if self.server:
            self.assertEqual(self.server.close(), 0)
        self.server = None

    def post(self, path, body, flags="01", expected=200):
        headers = {"traceparent": f"00-{TRACE}-{CALLER}-{flags}"} if flags else {}
        request = urllib.request.Request(f"http://{self.server.http}{path}", json.dumps(body).encode(), headers)
        try:
            self.assertEqual(urllib.request.urlopen(request).status, expected)
        except urllib.error.HTTPError as error:
            self.assertEqual(error.code, expected)

    def embed(self, flags="01"):
        self.post("/embed", {"inputs": [[7, 8, 9], [7]]}, flags)

    def metric(self, series):
        page = urllib.request.urlopen(f"http://{self.server.http}/metrics").read().decode()
        return next(float(line.split()[-1]) for line in page.splitlines() if line.startswith(series + " "))

    def test_a_requests_parent_is_the_callers_span_and_its_parts_are_in_it(self):
        self.start()
        begun = time.time_ns()
        self.embed()
        (request, resource), = self.collector.find("/embed", trace_id=TRACE)
        self.assertEqual(request.parent_span_id.hex(), CALLER)
        self.assertEqual(request.kind, trace_pb2.Span.SPAN_KIND_SERVER)
        self.assertEqual(request.flags, 0x301)
        self.assertLessEqual(begun - 10**9, request.start_time_unix_nano)
        self.assertLess(request.start_time_unix_nano, request.end_time_unix_nano)
        self.assertLessEqual(request.end_time_unix_nano, time.time_ns() + 10**9)
        attributes = values(request.attributes)
        self.assertEqual(attributes["linserve.model"], "m")
        self.assertEqual(attributes["linserve.tokens"], 4)
        self.assertEqual(attributes["linserve.sequences"], 2)
        self.assertEqual(attributes["http.route"], "/embed")
        self.assertEqual(attributes["rpc.grpc.status_code"], 0)
        sequences = self.collector.find("sequence", 2, parent_span_id=request.span_id.hex())
        self.assertEqual({values(span.attributes)["linserve.tokens"] for span, _ in sequences}, {1, 3})
        self.collector.find("stream", parent_span_id=request.span_id.hex())
        for span, _ in sequences:
            for part in ("queue", "form", "compute"):
                (inner, _), = self.collector.find(part, parent_span_id=span.span_id.hex())
                self.assertEqual(inner.trace_id.hex(), TRACE)
                self.assertEqual(inner.kind, trace_pb2.Span.SPAN_KIND_INTERNAL)
                self.assertLessEqual(span.start_time_unix_nano, inner.start_time_unix_nano + 1000)
        self.assertEqual(resource["service.name"], "linserve")
        self.assertTrue({"service.version", "service.instance.id", "host.name"} <= set(resource))

    def test_grpc_requests_have_their_traces_too(self):
        self.start()
        channel = grpc.insecure_channel(self.server.grpc)
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with self.assertRaises(grpc.RpcError):
            infer(b"", metadata=[("traceparent", f"00-{TRACE}-{CALLER}-01")])
        channel.close()
        (request, _), = self.collector.find("ModelInfer")
        self.assertEqual((request.trace_id.hex(), request.parent_span_id.hex()), (TRACE, CALLER))
        attributes = values(request.attributes)
        self.assertEqual((attributes["rpc.system"], attributes["rpc.method"]), ("grpc", "ModelInfer"))
        self.assertEqual(attributes["rpc.grpc.status_code"], grpc.StatusCode.INVALID_ARGUMENT.value[0])
        self.assertEqual(request.status.code, trace_pb2.Status.STATUS_CODE_UNSET, "the fault is the caller's")

    def test_no_proxy_is_asked_for_a_collector_on_this_machine(self):
        self.start(variables={"http_proxy": "http://127.0.0.1:1"})
        self.embed()
        self.collector.find("/embed", trace_id=TRACE)

    def test_the_caller_decides_and_else_the_ratio(self):
        self.start("--trace-sample-ratio", "0")
        self.embed(flags="00")
        self.embed(flags=None)
        self.embed(flags="01")
        self.collector.find("/embed", trace_id=TRACE)
        self.close()
        self.assertEqual(self.collector.all().count("/embed"), 1)

    def test_without_a_callers_trace_a_request_begins_its_own(self):
        self.start()
        self.embed(flags=None)
        (request, _), = self.collector.find("/embed")
        self.assertEqual(request.parent_span_id, b"")
        self.assertEqual(len(request.trace_id), 16)
        self.assertNotEqual(request.trace_id.hex(), TRACE)
        self.assertEqual(request.flags, 0x101)

    def test_variables_of_opentelemetry_describe_the_server(self):
        self.start(variables={"OTEL_SERVICE_NAME": "search",
                              "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=pod-7,note=a%2Cb,service.instance.id=seven"})
        self.embed()
        (_, resource), = self.collector.find("/embed")
        self.assertEqual(resource["service.name"], "search")
        self.assertEqual(resource["service.instance.id"], "seven")
        self.assertEqual((resource["k8s.pod.name"], resource["note"]), ("pod-7", "a,b"))

    def test_what_waits_is_sent_at_the_drain(self):
        self.start()
        for _ in range(20):
            self.embed()
        self.close()
        self.assertEqual(len(self.collector.find("/embed", 20)), 20)

    def test_a_collector_that_is_away_for_a_moment_gets_the_spans_later(self):
        self.start(answers=[grpc.StatusCode.UNAVAILABLE])
        self.embed()
        self.assertEqual(len(self.collector.find("/embed")), 1)
        self.assertEqual(self.metric('linserve_spans_total{result="failed"}'), 0)

    def test_without_a_collector_requests_are_served_and_the_server_ends_in_time(self):
        self.start()
        self.collector.stop()
        for _ in range(5):
            self.embed()
        begun = time.monotonic()
        self.close()
        self.assertLess(time.monotonic() - begun, 10)

    def test_tls_is_spoken_where_the_address_says_so(self):
        with tempfile.TemporaryDirectory() as directory:
            key, certificate = Path(directory, "tls.key"), Path(directory, "tls.crt")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                            "-days", "2", "-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                            key, "-out", certificate], check=True, capture_output=True)
            self.start(scheme="https", variables={"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate)},
                       credentials=grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())]))
            self.embed()
            self.collector.find("/embed")
            self.close()


if __name__ == "__main__":
    unittest.main()
