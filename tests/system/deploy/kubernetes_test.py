"""The manifests of deploy/kubernetes: that they fit the server."""

import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from manifests import (DEPLOY, each, environment, lay_files, named, of_kind, pod_spec, probes, render_all,
                       render_from_readme, strings, type_of)
from metric_names import exposed, mentioned, of_gpus, of_secured
from served import BIN, Server

READER = "reader-0123456789abcdef"
IMAGE_DEFAULTS = DEPLOY / "container.json"


def adapted():
    """Names of the metrics that prometheus-adapter gives to autoscalers."""
    adapter = yaml.safe_load((DEPLOY / "monitoring/prometheus-adapter.yaml").read_text(encoding="utf-8"))
    return {rule.get("name", {}).get("as", rule["seriesQuery"].split("{")[0]) for rule in adapter["rules"]["custom"]}


def port_of(address):
    return int(address.rsplit(":", 1)[1])


def get(address, path):
    return urllib.request.urlopen(f"http://{address}{path}", timeout=10).read().decode()


class KubernetesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = render_all()
        cls.configs = {}
        cls.server = Server("--metrics-address", "127.0.0.1:0")
        cls.addClassCleanup(cls.server.close)
        cls.metrics = "127.0.0.1:" + re.search(r" metrics_port=(\d+)", "".join(cls.server.log))[1]
        # Some metrics are there from the first request on.
        subprocess.run([BIN / "linserve-client", "--target", cls.server.grpc, "load", "--requests", "1",
                        "--warmup", "0"], check=True, capture_output=True, timeout=60)
        cls.known_metrics = exposed(get(cls.metrics, "/metrics")) | of_gpus() | of_secured()

    def config(self, documents):
        """What results for the server from its arguments, variables and files."""
        if id(documents) not in self.configs:
            self.configs[id(documents)] = self.print_config(documents)
        return self.configs[id(documents)]

    def print_config(self, documents):
        spec = pod_spec(documents)
        container = spec["containers"][0]
        with tempfile.TemporaryDirectory() as root:
            lay_files(documents, spec, container, root)

            def below(text):
                return text.replace("/etc/linserve/", f"{root}/etc/linserve/")
            arguments = [below(argument) for argument in container["args"]]
            variables = {name: below(value) for name, value in environment(container).items()}
            # It refuses what it does not know, but for variables.
            done = subprocess.run([BIN / "linserve", *arguments, "--print-config"], capture_output=True, text=True,
                                  timeout=30, env={"PATH": os.environ["PATH"], "LINSERVE_DEFAULTS": IMAGE_DEFAULTS,
                                                   **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def addresses(self, documents):
        """Of the running server, by the port that the pod has there."""
        config = self.config(documents)
        found = {port_of(config["grpc_address"]): self.server.grpc, port_of(config["http_address"]): self.server.http}
        if config["metrics_address"]:
            found[port_of(config["metrics_address"])] = self.metrics
        return found

    def test_the_kustomization_of_the_readme_keeps_what_it_does_not_change(self):
        documents = render_from_readme("configMapGenerator")
        config = self.print_config(documents)
        self.assertEqual((config["max_batch_delay_ms"], config["metrics_address"]), (2, "0.0.0.0:8081"))
        spec = pod_spec(documents)
        self.assertEqual([container["image"] for container in (*spec["containers"], *spec["initContainers"])],
                         ["registry.example/linserve:1", "registry.example/models:7"])
        self.assertTrue(of_kind(documents, "ScaledObject") and of_kind(documents, "ServiceMonitor"))

    @each()
    def test_the_server_knows_every_option(self, documents):
        config = self.config(documents)
        for name in environment(pod_spec(documents)["containers"][0]):
            if name.startswith("LINSERVE_") and name != "LINSERVE_DEFAULTS":
                self.assertIn(name.removeprefix("LINSERVE_").lower(), config)
        self.assertGreater(config["processors"], 0)

    @each()
    def test_ports_are_the_servers(self, documents):
        addresses = self.addresses(documents)
        ports = {port["name"]: port["containerPort"] for port in pod_spec(documents)["containers"][0]["ports"]}
        self.assertEqual(sorted(ports.values()), sorted(addresses))
        for service in of_kind(documents, "Service"):
            for port in service["spec"]["ports"]:
                self.assertEqual(ports[port["targetPort"]], port["port"])
        for policy in of_kind(documents, "NetworkPolicy"):
            admitted = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
            self.assertEqual(admitted, set(ports))

    @each()
    def test_probes_are_answered(self, documents):
        if documents is self.rendered["secured"]:
            return  # which the next test is about
        addresses = self.addresses(documents)
        for name, probe in probes(pod_spec(documents)["containers"][0]).items():
            target = addresses[probe["grpc"]["port"]]
            service = probe["grpc"].get("service", "")
            done = subprocess.run([BIN / "linserve-client", "--target", target, "health", "--service", service],
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual(done.stdout.strip(), "SERVING", f"{name}: service '{service}'")
            # What turns to NOT_SERVING while requests drain would have the pod killed.
            self.assertEqual(service, "live" if name == "livenessProbe" else "")

    def secured_server(self, directory):
        """With the options that the manifest sets, on files that lie elsewhere. The address of its metrics."""
        certificate, key = f"{directory}/tls.crt", f"{directory}/tls.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "2", "-subj", "/CN=any",
                        "-addext", "subjectAltName=DNS:linserve.linserve.svc", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True, timeout=60)
        tokens = {"tokens": [{"name": "prometheus", "token": READER, "may": ["metrics"]}]}
        Path(directory, "tokens.json").write_text(json.dumps(tokens), encoding="utf-8")
        files = {name: Path(path).name for name, path in self.config(self.rendered["secured"]).items()
                 if str(path).startswith(("/etc/linserve-tls/", "/etc/linserve-tokens/"))}
        self.assertEqual(set(files), {"tls_certificate", "tls_private_key", "tokens_file"})
        server = Server("--metrics-address", "127.0.0.1:0", *(f"--{name.replace('_', '-')}={directory}/{file}"
                                                              for name, file in files.items()))
        self.addCleanup(server.close)
        return "127.0.0.1:" + re.search(r" metrics_port=(\d+)", "".join(server.log))[1]

    def test_secured_probes_and_prometheus_are_answered(self):
        documents = self.rendered["secured"]
        with tempfile.TemporaryDirectory() as directory:
            address = self.secured_server(directory)

            def ask(path, name, *options):
                command = ["curl", "-sSf", "--max-time", "10", "--cacert", f"{directory}/tls.crt", "--connect-to",
                           f"::{address}", *options, f"https://{name}{path}"]
                return subprocess.run(command, capture_output=True, text=True)
            monitor, = of_kind(documents, "ServiceMonitor")
            endpoint, = monitor["spec"]["endpoints"]
            self.assertEqual(endpoint["scheme"], "https")
            self.assertEqual(endpoint["authorization"]["credentials"], {"name": "linserve-tokens", "key": "prometheus"})
            name = endpoint["tlsConfig"]["serverName"]
            self.assertIn("linserve_build_info", ask(endpoint["path"], name, "--oauth2-bearer", READER).stdout)
            self.assertIn("401", ask(endpoint["path"], name).stderr)
            for probe in probes(pod_spec(documents)["containers"][0]).values():
                self.assertNotIn("grpc", probe)
                self.assertEqual((probe["httpGet"]["scheme"], probe["httpGet"]["port"]), ("HTTPS", "metrics"))
                self.assertEqual(ask(probe["httpGet"]["path"], name).returncode, 0)
        for service in of_kind(documents, "Service"):
            self.assertLessEqual({port.get("appProtocol") for port in service["spec"]["ports"]}, {"https", None})

    @each("ServiceMonitor")
    def test_metrics_are_scraped_where_they_are(self, documents):
        addresses = self.addresses(documents)
        monitor, = of_kind(documents, "ServiceMonitor")
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        service, = [service for service in of_kind(documents, "Service")
                    if wanted <= service["metadata"]["labels"].items()]
        self.assertEqual(service["metadata"]["labels"][monitor["spec"]["jobLabel"]], monitor["metadata"]["name"])
        ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
        for endpoint in monitor["spec"]["endpoints"]:
            self.assertIn("linserve_build_info", get(addresses[ports[endpoint["port"]]], endpoint["path"]))

    def test_kserves_pods_are_scraped_where_metrics_are(self):
        documents = self.rendered["overlays/kserve"]
        monitor, = of_kind(documents, "PodMonitor")
        service, = of_kind(documents, "InferenceService")
        self.assertEqual(monitor["spec"]["selector"]["matchLabels"],
                         {"serving.kserve.io/inferenceservice": service["metadata"]["name"]})
        ports = {port["name"]: port["containerPort"] for port in pod_spec(documents)["containers"][0]["ports"]}
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            self.assertEqual(ports[endpoint["port"]], port_of(self.config(documents)["metrics_address"]))
            self.assertIn("linserve_build_info", get(self.metrics, endpoint["path"]))
            self.assertIn({"targetLabel": "job", "replacement": "linserve"}, endpoint["relabelings"])

    @each()
    def test_metrics_are_the_servers(self, documents):
        for document in documents:
            for text in strings(document):
                self.assertEqual(mentioned(text) - self.known_metrics - adapted(), set(), type_of(document))

    @each("HorizontalPodAutoscaler")
    def test_the_adapter_gives_what_the_autoscaler_asks_for(self, documents):
        scaler, = of_kind(documents, "HorizontalPodAutoscaler")
        self.assertEqual({metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}, adapted())

    @each()
    def test_there_is_time_to_drain_and_to_start(self, documents):
        spec = pod_spec(documents)
        config = self.config(documents)
        container = spec["containers"][0]
        drain = (container["lifecycle"]["preStop"]["sleep"]["seconds"] + config["drain_delay_seconds"] +
                 config["drain_timeout_seconds"])
        # The server waits 2 s for its last writes.
        self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], drain + 5)
        self.assertLess(config["max_connection_age_seconds"], 3600)
        startup = container["startupProbe"]
        for deployment in of_kind(documents, "Deployment"):
            self.assertGreater(deployment["spec"]["progressDeadlineSeconds"],
                               startup["periodSeconds"] * startup["failureThreshold"])

    def test_routes_lead_to_what_the_server_answers(self):
        documents = self.rendered["outside"]
        routes = of_kind(documents, "GRPCRoute", "HTTPRoute")
        for rule in (rule for route in routes for rule in route["spec"]["rules"]):
            for backend in rule["backendRefs"]:
                service = named(documents, "Service", backend["name"])
                self.assertIn(backend["port"], [port["port"] for port in service["spec"]["ports"]])
        matches = [match for route in routes for rule in route["spec"]["rules"] for match in rule["matches"]]
        protos = "".join(path.read_text(encoding="utf-8") for path in (DEPLOY.parent / "proto").rglob("*.proto"))
        services = {f"{package}.{service}" for package, rest in re.findall(
            r"^package ([\w.]+);(.*?)(?=^package |\Z)", protos, re.MULTILINE | re.DOTALL)
            for service in re.findall(r"^service (\w+)", rest, re.MULTILINE)}
        wanted = {match["method"]["service"] for match in matches if "method" in match}
        self.assertLessEqual(wanted - {"grpc.health.v1.Health"}, services)
        for path in (match["path"]["value"] for match in matches if "path" in match):
            self.assertTrue(any(self.status(path + more) != 404 for more in ("", "/models")), path)
        self.assertEqual({404}, {self.status(path) for path in ("/v3", "/embedding")})

    def status(self, path):
        try:
            return urllib.request.urlopen(f"http://{self.server.http}{path}", timeout=10).status
        except urllib.error.HTTPError as error:
            return error.code


if __name__ == "__main__":
    unittest.main()
