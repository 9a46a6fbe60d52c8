"""GET /metrics in both of its formats, read by the readers of PyPI's prometheus_client."""

import json
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from served import Server

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
# Prometheus asks so.
ACCEPT = ("application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
          "text/plain;version=0.0.4;q=0.3,*/*;q=0.2")


class OpenMetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.server = Server("--trace", f"{directory.name}/trace.json", "--cache-bytes", "1024", text=True, causal=True)
        cls.addClassCleanup(lambda: cls.server.close())
        for body in ({"inputs": [[7, 8]], "model": "m"}, {"inputs": "x"}):
            request = urllib.request.Request(f"http://{cls.server.http}/embed", json.dumps(body).encode(),
                                             {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
            try:
                urllib.request.urlopen(request).close()
            except urllib.error.HTTPError as error:
                assert error.code in (422, 404), error.code  # which of the two models?
        while cls.requests() < 2:  # they are counted after they are answered
            time.sleep(0.01)

    @classmethod
    def requests(cls):
        return sum(sample.value for family in read_text(cls.page()[1]) for sample in family.samples
                   if sample.name == "linserve_requests_total")

    @classmethod
    def page(cls, accept=None):
        request = urllib.request.Request(f"http://{cls.server.http}/metrics", headers={"Accept": accept} if accept else {})
        answer = urllib.request.urlopen(request)
        return answer.headers["Content-Type"], answer.read().decode()

    def test_it_is_chosen_by_accept(self):
        for accept, content in [(None, TEXT), ("*/*", TEXT), ("text/plain", TEXT), (ACCEPT, OPEN),
                                ("application/openmetrics-text", OPEN), ("application/openmetrics-text;q=0", TEXT),
                                ("text/plain, application/openmetrics-text;q=0.5", TEXT)]:
            self.assertEqual(self.page(accept)[0], content, accept)

    def test_both_formats_hold_the_same_series(self):
        def name(sample):  # the parser of texts gives counters the ending that Triton's do not have
            return sample.name.removesuffix("_total") if sample.name.startswith("nv_") else sample.name

        def series(families):
            return {(name(sample), frozenset((key, float(value) if key == "le" else value)
                                            for key, value in sample.labels.items()))
                    for family in families for sample in family.samples}
        text = series(read_text(self.page()[1]))
        self.assertGreater(len(text), 500)
        self.assertEqual(series(read_open_metrics(self.page(ACCEPT)[1])), text)

    def test_help_and_types_are_there(self):
        for family in read_open_metrics(self.page(ACCEPT)[1]):
            self.assertTrue(family.documentation, family.name)
            triton = family.name.startswith("nv_")
            self.assertIn(family.type, ("counter", "gauge", "unknown" if triton else "histogram"), family.name)

    def test_buckets_name_a_traced_request(self):
        families = {family.name: family for family in read_open_metrics(self.page(ACCEPT)[1])}
        exemplars = [(sample.labels, sample.exemplar) for sample in families["linserve_request_duration_seconds"].samples
                     if sample.exemplar]
        self.assertEqual(len(exemplars), 1)
        labels, exemplar = exemplars[0]
        self.assertEqual((labels["rpc"], labels["model"]), ("/embed", "m"))
        self.assertEqual(exemplar.labels, {"trace_id": TRACE})
        self.assertLessEqual(exemplar.value, float(labels["le"]))

    def test_the_certificate_and_callers_have_series_where_there_are_any(self):
        with tempfile.TemporaryDirectory() as directory:
            key, certificate, tokens = (Path(directory, name) for name in ("tls.key", "tls.crt", "tokens.json"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                            "-days", "2", "-subj", "/CN=linserve", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                            key, "-out", certificate], check=True, capture_output=True)
            tokens.write_text(json.dumps({"tokens": [{"name": "team \"a\"", "token": "the token of this team",
                                                      "may": ["infer", "metrics"]}]}))
            server = Server("--tls-certificate", certificate, "--tls-private-key", key, "--tokens-file", tokens)
            self.addCleanup(server.close)

            def ask(path, body=None):
                request = urllib.request.Request(f"https://{server.http}{path}", body,
                                                 {"Authorization": "Bearer the token of this team", "Accept": ACCEPT})
                return urllib.request.urlopen(request, context=ssl.create_default_context(cafile=certificate)).read()
            ask("/embed", json.dumps({"inputs": [[7, 8, 9], [7]]}).encode())
            samples = {sample.name: sample for family in read_open_metrics(ask("/metrics").decode())
                       for sample in family.samples if sample.name.startswith(("linserve_caller", "linserve_cert"))}
            self.assertAlmostEqual(samples["linserve_certificate_remaining_seconds"].value, 2 * 86400, delta=3600)
            tokens_of_caller = samples["linserve_caller_tokens_total"]
            self.assertEqual((tokens_of_caller.labels, tokens_of_caller.value), ({"caller": 'team "a"'}, 4))


if __name__ == "__main__":
    unittest.main()
