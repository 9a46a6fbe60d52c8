"""The manifests of deploy/kubernetes: that they are valid, hang together, and fit the server."""

import functools
import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml
from manifests import (DEPLOY, KUBERNETES, beside, compose, environment, lay_files, named, of_kind, pod_labels,
                       pod_spec, probes, render, render_all, selectors, strings)
from metric_names import exposed, mentioned, of_gpus, of_secured
from served import BIN, Server

# The oldest that has all that is used, and the newest whose schemas are known.
VERSIONS = ("1.30", "1.37")
SCHEMAS = {json.loads(path.read_text(encoding="utf-8"))["title"]: json.loads(path.read_text(encoding="utf-8"))
           for path in (Path(__file__).parent / "schemas").glob("*.json")}
# What deploy/kubernetes/models makes, and an image brings along.
CLAIM = "linserve-models"
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject", "HTTPScaledObject")
READER = "reader-0123456789abcdef"
IMAGE_DEFAULTS = DEPLOY / "container.json"


def type_of(document):
    return f"{document['apiVersion']} {document['kind']}"


def each(needed_kind=None):
    """A test of every rendered target, or of those that have a document of the kind."""
    def of_each(test):
        @functools.wraps(test)
        def run(self):
            for target, documents in self.rendered.items():
                if needed_kind is None or of_kind(documents, needed_kind):
                    with self.subTest(target):
                        test(self, documents)
        return run
    return of_each


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

    @each()
    def test_validates(self, documents):
        for document in documents:
            if type_of(document) in SCHEMAS:
                jsonschema.Draft202012Validator(SCHEMAS[type_of(document)]).validate(document)
                continue
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)

    def test_what_comes_before_the_server_validates(self):
        models = render(KUBERNETES / "models")
        self.assertTrue(named(models, "Namespace", "linserve"))
        self.assertTrue(named(models, "PersistentVolumeClaim", CLAIM))
        loader, = render(KUBERNETES / "models/loader")
        for document in [*models, loader]:
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)
        self.assert_restricted(loader["spec"])

    def rendered_from_readme(self, what):
        """The kustomization of the page that holds a text."""
        readme = (KUBERNETES / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```yaml\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
        example, = [block for block in blocks if what in block]
        with tempfile.TemporaryDirectory() as directory:
            place = os.path.realpath(directory)
            example = example.replace("../linserve/", os.path.relpath(DEPLOY.parent, place) + "/")
            Path(place, "kustomization.yaml").write_text(example, encoding="utf-8")
            Path(place, "linserve.json").write_text('{"max_batch_delay_ms": 2}', encoding="utf-8")
            return render(place)

    def test_the_instance_of_the_readme_is_one_of_its_own(self):
        documents = self.rendered_from_readme("nameSuffix")
        self.assertEqual(pod_labels(documents)["app.kubernetes.io/instance"], "linserve-gpu")
        self.assertEqual(of_kind(documents, "PrometheusRule"), [])

    def test_the_kustomization_of_the_readme_keeps_what_it_does_not_change(self):
        documents = self.rendered_from_readme("configMapGenerator")
        config = self.print_config(documents)
        self.assertEqual((config["max_batch_delay_ms"], config["metrics_address"]), (2, "0.0.0.0:8081"))
        spec = pod_spec(documents)
        self.assertEqual([container["image"] for container in (*spec["containers"], *spec["initContainers"])],
                         ["registry.example/linserve:1", "registry.example/models:7"])
        self.assertTrue(of_kind(documents, "ScaledObject") and of_kind(documents, "ServiceMonitor"))

    @each("Deployment")
    def test_deleting_the_server_deletes_no_models(self, documents):
        claims = [volume for volume in pod_spec(documents)["volumes"] if volume.get("persistentVolumeClaim")]
        self.assertEqual(of_kind(documents, "PersistentVolumeClaim"), [])
        self.assertFalse(claims and of_kind(documents, "Namespace"))

    def test_containers_of_kserve_validate(self):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"},
               "spec": pod_spec(self.rendered["overlays/kserve"])}
        for version in VERSIONS:
            kubernetes_validate.validate(pod, version, strict=True)

    @each()
    def test_is_all_in_one_namespace(self, documents):
        # What is only tried is deleted with its namespace, which must not be that of anything else.
        wanted = "linserve-try" if documents is self.rendered["overlays/try"] else "linserve"
        for document in documents:
            where = "name" if document["kind"] == "Namespace" else "namespace"
            self.assertEqual(document["metadata"].get(where), wanted, type_of(document))

    @each("Deployment")
    def test_what_is_referred_to_is_there(self, documents):
        spec = pod_spec(documents)
        self.assertTrue(named(documents, "ServiceAccount", spec["serviceAccountName"]))
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for volume in volumes.values():
            if "configMap" in volume:
                self.assertTrue(named(documents, "ConfigMap", volume["configMap"]["name"]))
            if "persistentVolumeClaim" in volume:
                self.assertEqual(volume["persistentVolumeClaim"]["claimName"], CLAIM)
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            for mount in container["volumeMounts"]:
                self.assertIn(mount["name"], volumes)
        for scaler in of_kind(documents, *SCALERS):
            self.assertTrue(named(documents, "Deployment", scaler["spec"]["scaleTargetRef"]["name"]))

    @each()
    def test_selectors_choose_the_pods(self, documents):
        found = list(selectors(documents))
        self.assertEqual(len(found), 7 if of_kind(documents, "Deployment") else 3)
        for kind, selector in found:
            # An empty one chooses every pod of the namespace.
            self.assertTrue(selector and selector.items() <= pod_labels(documents).items(), (kind, selector))

    def test_two_instances_in_one_namespace_have_nothing_in_common(self):
        for name in ("overlays/gpu", "overlays/kserve"):
            first, second = self.rendered[name], beside(name)
            for own, other in ((first, second), (second, first)):
                for kind, selector in selectors(own):
                    self.assertFalse(selector.items() <= pod_labels(other).items(), (name, kind, selector))
            services = {service["metadata"]["name"]: service["metadata"]["labels"] for service in
                        of_kind([*first, *second], "Service")}
            for monitor in of_kind([*first, *second], "ServiceMonitor"):
                chosen = [service for service, labels in services.items()
                          if monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()]
                self.assertEqual(chosen, [monitor["metadata"]["name"].replace("linserve", "linserve-headless")])
            names = [{(document["kind"], document["metadata"]["name"]) for document in documents}
                     for documents in (first, second)]
            self.assertEqual(names[0] & names[1], set())
            # Rules of both would be recorded twice, and each alert sent twice.
            self.assertEqual(of_kind(second, "PrometheusRule"), [])

    def test_what_a_second_instance_asks_prometheus_for_is_its_own(self):
        keda = beside("base", [KUBERNETES / "components/keda", DEPLOY / "monitoring", KUBERNETES / "components/tls"])
        kserve = beside("overlays/kserve")
        for documents in (keda, kserve):
            asked, = [text for text in strings(documents) if "sum(namespace_job_pod" in text]
            self.assertIn('{namespace="linserve",job="linserve-blue"}', asked)
        scaler, = of_kind(keda, "ScaledObject")
        self.assertEqual(scaler["spec"]["scaleTargetRef"]["name"], "linserve-blue")
        monitor, = of_kind(keda, "ServiceMonitor")
        self.assertEqual(monitor["spec"]["endpoints"][0]["tlsConfig"]["serverName"], "linserve-blue.linserve.svc")
        monitor, = of_kind(kserve, "PodMonitor")
        self.assertEqual(monitor["spec"]["podMetricsEndpoints"][0]["relabelings"][0]["replacement"], "linserve-blue")

    @each()
    def test_every_object_says_what_it_is_part_of(self, documents):
        for document in of_kind(documents, "Deployment", "Service", "PodDisruptionBudget", "InferenceService"):
            labels = document["metadata"]["labels"]
            self.assertEqual(labels["app.kubernetes.io/part-of"], "linserve")
            self.assertIn("app.kubernetes.io/version", labels)

    @each()
    def test_the_server_knows_every_option(self, documents):
        config = self.config(documents)
        for name in environment(pod_spec(documents)["containers"][0]):
            if name.startswith("LINSERVE_") and name != "LINSERVE_DEFAULTS":
                self.assertIn(name.removeprefix("LINSERVE_").lower(), config)
        self.assertGreater(config["processors"], 0)

    def test_a_changed_configuration_rolls_the_pods(self):
        def names(documents):
            volume = pod_spec(documents)["volumes"][0]
            self.assertTrue(named(documents, "ConfigMap", volume["configMap"]["name"]))
            return volume["configMap"]["name"]
        changed = compose([KUBERNETES / "base"], configMapGenerator=[
            {"name": "linserve-config", "behavior": "merge", "literals": ["linserve.json={}"]}])
        self.assertNotEqual(names(changed), names(self.rendered["base"]))

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

    @each("Deployment")
    def test_whoever_scales_sets_the_number_of_pods(self, documents):
        deployment, = of_kind(documents, "Deployment")
        scaled = bool(of_kind(documents, *SCALERS))
        self.assertNotEqual("replicas" in deployment["spec"], scaled)

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

    def test_policies_are_of_routes_that_there_are(self):
        documents = self.rendered["outside"]
        for policy in of_kind(documents, "BackendTrafficPolicy"):
            for target in policy["spec"]["targetRefs"]:
                self.assertTrue(named(documents, target["kind"], target["name"]), target)

    def test_openshift_chooses_users_and_groups(self):
        spec = pod_spec(self.rendered["outside"])
        self.assertEqual(spec["securityContext"], {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})

    def test_without_pods_a_queue_alone_brings_one(self):
        scaler, = of_kind(self.rendered["zero-by-queue"], "ScaledObject")
        self.assertEqual(scaler["spec"]["minReplicaCount"], 0)
        # Else "no answer", which is what there is without pods, would bring those of the fallback.
        self.assertNotIn("fallback", scaler["spec"])
        prometheus, queue = scaler["spec"]["triggers"]
        self.assertEqual(prometheus["metadata"]["ignoreNullValues"], "true")
        authentication = queue["authenticationRef"]["name"]
        self.assertTrue(named(self.rendered["zero-by-queue"], "TriggerAuthentication", authentication))

    def test_models_from_a_bucket_may_be_fetched(self):
        policy, = of_kind(self.rendered["models-from-bucket"], "NetworkPolicy")
        self.assertEqual({port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}, {443, 53})
        init, = pod_spec(self.rendered["models-from-bucket"])["initContainers"]
        self.assertEqual(init["command"][-1], init["volumeMounts"][0]["mountPath"])

    @each()
    def test_pods_are_restricted(self, documents):
        spec = pod_spec(documents)
        self.assertIs(spec["enableServiceLinks"], False)
        self.assert_restricted(spec)

    def assert_restricted(self, spec):
        self.assertIs(spec["automountServiceAccountToken"], False)
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            security = {**spec.get("securityContext", {}), **container["securityContext"]}
            self.assertIs(security["runAsNonRoot"], True)
            self.assertIs(security["readOnlyRootFilesystem"], True)
            self.assertIs(security["allowPrivilegeEscalation"], False)
            self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
            self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertLessEqual({"cpu", "memory"}, set(container["resources"]["requests"]))
            self.assertIn("memory", container["resources"]["limits"])


if __name__ == "__main__":
    unittest.main()
