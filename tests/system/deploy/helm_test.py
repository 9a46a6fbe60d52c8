"""The chart deploy/helm/linserve, as Helm renders it: it gives what kustomize gives, and heeds each of its values."""

import contextlib
import copy
import json
import os
import re
import tempfile
import unittest

import yaml
from helm_python.chart import Chart, lint, package
from helm_python.errors import HelmError
from manifests import DEPLOY, KUBERNETES, compose, of_kind, pod_labels, render, selectors

CHART = DEPLOY / "helm/linserve"
COMPONENTS = [KUBERNETES / "components" / name for name in ("gateway", "weigh-by-load", "openshift")]
MONITORING = {"monitoring": {"enabled": True}}
DIGEST = "sha256:" + 64 * "a"

# For each value another one than in values.yaml.
OTHERS = {
    "image.repository": "registry.example/linserve", "image.tag": "1-cpu", "image.digest": DIGEST,
    "image.pullPolicy": "Always", "imagePullSecrets": [{"name": "registry"}], "replicas": 3,
    "resources.requests.cpu": "4", "resources.requests.memory": "8Gi", "resources.limits.memory": "8Gi", "gpus": 2,
    "nodeSelector": {"pool": "fast"}, "tolerations": [{"key": "fast", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}}, "priorityClassName": "high", "podAnnotations": {"team": "search"},
    "extraEnv": [{"name": "OTEL_SERVICE_NAME", "value": "words"}],
    "config": {"cache_bytes": 1000000}, "models.claim": "mine", "models.image": "models:7", "autoscaling.by": "keda",
    "autoscaling.minReplicas": 3, "autoscaling.maxReplicas": 5, "autoscaling.prometheus": "http://other:9090",
    "monitoring.enabled": True, "monitoring.rules": False, "monitoring.release": "mine",
    "monitoring.certificate": "of-prometheus", "tls.secret": "my-tls",
    "tokens.secret": "my-tokens", "gateway.name": "outside", "gateway.weighByLoad": True, "openshift": True}
# What must be set for another value to mean anything.
WITH = {"autoscaling.minReplicas": ["autoscaling.by"], "autoscaling.maxReplicas": ["autoscaling.by"],
        "autoscaling.prometheus": ["autoscaling.by"], "monitoring.rules": ["monitoring.enabled"],
        "monitoring.release": ["monitoring.enabled"], "monitoring.certificate": ["monitoring.enabled", "tls.secret"],
        "gateway.weighByLoad": ["gateway.name"]}


@contextlib.contextmanager
def without_log():
    """Helm, which is no Python, says on standard error that links are followed."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def helm(values, name="linserve", namespace="linserve", path=CHART):
    with without_log(), Chart.load(path) as chart:
        chart.validate_schema(values)
        texts = chart.render(values, name=name, namespace=namespace)
    return [document for path, text in sorted(texts.items()) if path.endswith(".yaml")
            for document in yaml.safe_load_all(text) if document]


def nested(paths):
    """Values of dotted names."""
    values = {}
    for path, value in paths.items():
        *folders, leaf = path.split(".")
        place = values
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = value
    return values


def leaves(values, before=""):
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{name}.")
        else:
            yield before + name


def in_order(value):
    """Lists of named things by their names: neither program heeds their order."""
    if isinstance(value, dict):
        return {name: in_order(part) for name, part in value.items()}
    if isinstance(value, list):
        parts = [in_order(part) for part in value]
        return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True)) if all(
            isinstance(part, dict) and ("name" in part or "mountPath" in part) for part in parts) else parts
    return value


def comparable(documents):
    """Without what each does in its own way: labels, the namespace, how a changed configuration rolls pods."""
    found = {}
    for document in copy.deepcopy(documents):
        for field in ("namespace", "labels"):
            document["metadata"].pop(field, None)
        if document["kind"] == "Deployment":
            document["spec"]["template"]["metadata"]["annotations"].pop("checksum/config", None)
        document = json.loads(re.sub(r"(-config)-[0-9a-z]{10}\b", r"\1", json.dumps(document)))
        if document["metadata"]["name"].endswith("-config"):
            document["data"]["linserve.json"] = "the user's own"
        found[document["kind"], document["metadata"]["name"]] = in_order(document)
    return found


class HelmTest(unittest.TestCase):
    maxDiff = None

    def test_it_gives_what_kustomize_gives(self):
        base = [KUBERNETES / "base"]
        secured = {"tls": {"secret": "linserve-tls"}, "tokens": {"secret": "linserve-tokens"}}
        hpa = {"autoscaling": {"by": "hpa"}, **MONITORING}
        cases = {
            "base": ({}, render(KUBERNETES / "base")),
            "overlays/cpu": (hpa, render(KUBERNETES / "overlays/cpu")),
            "overlays/gpu": ({**hpa, "gpus": 1}, render(KUBERNETES / "overlays/gpu")),
            "secured": ({**MONITORING, **secured},
                        compose(base, [DEPLOY / "monitoring", *(KUBERNETES / "components" / name for name in (
                            "tls", "tokens"))])),
            "keda, models from an image": (
                {"autoscaling": {"by": "keda"}, "models": {"image": "linserve-models:1"}},
                compose(base, [KUBERNETES / "components" / name for name in ("keda", "models-from-image")])),
            "components": ({"gateway": {"name": "linserve", "weighByLoad": True}, "openshift": True},
                           compose(base, COMPONENTS)),
        }
        for what, (values, documents) in cases.items():
            with self.subTest(what):
                self.assertEqual(comparable(helm(values)), comparable(documents))
                labels = {document["kind"] + document["metadata"]["name"]: document["metadata"]["labels"].items()
                          for document in helm(values)}
                for document in documents:
                    if "-config-" not in document["metadata"]["name"]:
                        wanted = document["metadata"].get("labels", {}).items()
                        self.assertLessEqual(wanted, labels[document["kind"] + document["metadata"]["name"]])

    def test_each_value_is_heeded(self):
        with without_log(), Chart.load(CHART) as chart:
            self.assertEqual(set(leaves(chart.values)), set(OTHERS))
        for path, value in OTHERS.items():
            paths = {other: OTHERS[other] for other in WITH.get(path, [])}
            self.assertNotEqual(helm(nested({**paths, path: value})), helm(nested(paths)), path)

    def test_a_value_that_there_is_not_or_that_is_wrong_is_refused(self):
        for values in ({"replica": 2}, {"autoscaling": {"by": "hap"}}, {"image": {"digest": "sha256:1"}},
                       {"resources": {"requests": {"cpu": "2"}, "limits": 1}}, {"gpus": -1},
                       {"config": {"drain_timeout_seconds": "30 parsecs"}}, {"config": {"drain_delay_seconds": -5}}, {"gateway": {"weighByLoad": True}},
                       {"config": {"grpc_address": "0.0.0.0:9000"}}, {"config": {"metrics_address": ""}},
                       {"config": {"tls_certificate": "/tls.crt", "tls_private_key": "/tls.key"}},
                       {"autoscaling": {"by": "hpa", "minReplicas": 5, "maxReplicas": 3}}):
            with self.assertRaises(HelmError, msg=values):
                helm(values)

    def test_what_is_added_to_pods_replaces_nothing(self):
        added = {"nodeSelector": {"pool": "fast"}, "tolerations": [{"key": "fast", "operator": "Exists"}],
                 "podAnnotations": {"team": "search"}, "extraEnv": [{"name": "ANY", "value": "1"}]}
        before, after = (of_kind(helm({"gpus": 1, **values}), "Deployment")[0]["spec"]["template"]
                         for values in ({}, added))
        self.assertEqual(after["metadata"]["annotations"], {**before["metadata"]["annotations"], "team": "search"})
        for field in ("tolerations", "nodeSelector"):
            self.assertGreater(len(before["spec"][field]), 0)
        self.assertEqual(after["spec"]["tolerations"], before["spec"]["tolerations"] + added["tolerations"])
        self.assertEqual(after["spec"]["nodeSelector"], {**before["spec"]["nodeSelector"], "pool": "fast"})
        first, second = (pod["spec"]["containers"][0] for pod in (before, after))
        self.assertEqual(second["env"], first["env"] + added["extraEnv"])

    def test_pods_have_time_to_drain(self):
        for drain, seconds in ((7, 32), (2.5, 28), ("90s", 115), ("2 min", 145), ("1500ms", 27), ("300d", 25_920_025),
                               (1e6, 1_000_025)):
            deployment, = of_kind(helm({"config": {"drain_timeout_seconds": drain}}), "Deployment")
            self.assertEqual(deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], seconds, drain)

    def test_releases_have_nothing_in_common(self):
        values = {"autoscaling": {"by": "keda"}, **MONITORING, "tls": {"secret": "linserve-tls"}}
        first, second = helm(values), helm({**values, "monitoring": {"enabled": True, "rules": False}}, "blue", "other")
        for own, others in ((first, second), (second, first)):
            for kind, selector in selectors(own):
                self.assertTrue(selector.items() <= pod_labels(own).items(), kind)
                self.assertFalse(selector.items() <= pod_labels(others).items(), kind)
        scaler, = of_kind(second, "ScaledObject")
        self.assertEqual(scaler["spec"]["scaleTargetRef"]["name"], "blue")
        self.assertIn('{namespace="other",job="blue"}', scaler["spec"]["triggers"][0]["metadata"]["query"])
        monitor, = of_kind(second, "ServiceMonitor")
        self.assertEqual(monitor["spec"]["endpoints"][0]["tlsConfig"]["serverName"], "blue.other.svc")
        self.assertEqual(of_kind(second, "PrometheusRule"), [])
        self.assertEqual({document["metadata"]["name"] for document in second},
                         {"blue", "blue-headless", "blue-config"})

    def test_what_is_packaged_has_the_files_that_are_linked(self):
        values = {"autoscaling": {"by": "hpa"}, **MONITORING, "tls": {"secret": "t"}, "gateway": {"name": "g"}}
        with tempfile.TemporaryDirectory() as directory:
            with without_log():
                path = package(CHART, destination=directory)
            self.assertEqual(helm(values, path=path), helm(values))
            self.assertLess(os.path.getsize(path), 100_000)

    def test_helm_finds_nothing_to_say_against_it(self):
        with without_log():
            messages = lint(CHART, strict=True)["messages"]
        self.assertEqual([message["error"] for message in messages], ["icon is recommended"])


if __name__ == "__main__":
    unittest.main()
