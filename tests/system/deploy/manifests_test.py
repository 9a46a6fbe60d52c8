"""The manifests of deploy/kubernetes: that they are valid and hang together."""

import json
import re
import unittest
from pathlib import Path

import jsonschema
import kubernetes_validate
from manifests import (DEPLOY, KUBERNETES, SCALERS, beside, compose, each, named, of_kind, pod_labels, pod_spec, renamed,
                       render, render_all, render_from_readme, selectors, strings, type_of)

# The oldest that has all that is used, and the newest whose schemas are known.
VERSIONS = ("1.30", "1.37")
SCHEMAS = {json.loads(path.read_text(encoding="utf-8"))["title"]: json.loads(path.read_text(encoding="utf-8"))
           for path in (Path(__file__).parent / "schemas").glob("*.json")}
# What deploy/kubernetes/models makes, and an image brings along.
CLAIM = "linserve-models"


class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = render_all()

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

    def test_the_instance_of_the_readme_is_one_of_its_own(self):
        documents = render_from_readme("nameSuffix")
        self.assertEqual(pod_labels(documents)["app.kubernetes.io/instance"], "linserve-gpu")
        self.assertEqual(of_kind(documents, "PrometheusRule"), [])

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

    def test_a_changed_configuration_rolls_the_pods(self):
        def names(documents):
            volume = pod_spec(documents)["volumes"][0]
            self.assertTrue(named(documents, "ConfigMap", volume["configMap"]["name"]))
            return volume["configMap"]["name"]
        changed = compose([KUBERNETES / "base"], configMapGenerator=[
            {"name": "linserve-config", "behavior": "merge", "literals": ["linserve.json={}"]}])
        self.assertNotEqual(names(changed), names(self.rendered["base"]))

    @each("Deployment")
    def test_whoever_scales_sets_the_number_of_pods(self, documents):
        deployment, = of_kind(documents, "Deployment")
        scaled = bool(of_kind(documents, *SCALERS))
        self.assertNotEqual("replicas" in deployment["spec"], scaled)

    def test_policies_are_of_routes_that_there_are(self):
        documents = self.rendered["outside"]
        for policy in of_kind(documents, "BackendTrafficPolicy"):
            for target in policy["spec"]["targetRefs"]:
                self.assertTrue(named(documents, target["kind"], target["name"]), target)

    def test_each_api_is_routed(self):
        route = named(self.rendered["outside"], "HTTPRoute", "linserve")
        prefixes = [match["path"]["value"] for rule in route["spec"]["rules"] for match in rule["matches"]]
        for file in ("rest_routes.cc", "tei/tei_routes.cc"):
            text = (DEPLOY.parent / "server/rest" / file).read_text(encoding="utf-8")
            # What is added to a model's path has the model's prefix. "/" is the status page's, too.
            paths = set(re.findall(r'(?<!\+ )"(/[^"]+)"', text))
            self.assertGreater(len(paths), 8)
            for path in paths:
                self.assertTrue(any(f"{path}/".startswith(f"{prefix}/") for prefix in prefixes), path)
        route = named(self.rendered["outside"], "GRPCRoute", "linserve")
        routed = {match["method"]["service"] for rule in route["spec"]["rules"] for match in rule["matches"]}
        services = set()
        for file in (DEPLOY.parent / "proto").rglob("*.proto"):
            text = file.read_text(encoding="utf-8")
            package, = re.findall(r"^package (\S+);", text, re.MULTILINE)
            services |= {f"{package}.{name}" for name in re.findall(r"^service (\w+)", text, re.MULTILINE)}
        # Reflection stays inside, and traces are what the server sends.
        self.assertEqual(routed, {name for name in services if not re.search(r"reflection|opentelemetry", name)})

    def test_recipes_follow_another_name(self):
        sessions = beside("base", [KUBERNETES / "components/gateway", KUBERNETES / "recipes/sessions"])
        policy, = of_kind(sessions, "BackendTrafficPolicy")
        for target in policy["spec"]["targetRefs"]:
            self.assertTrue(named(sessions, target["kind"], target["name"]), target)
        by_queue = renamed("recipes/zero-by-queue")
        scaler, = of_kind(by_queue, "ScaledObject")
        self.assertTrue(named(by_queue, "Deployment", scaler["spec"]["scaleTargetRef"]["name"]))
        asked = scaler["spec"]["triggers"][1]["authenticationRef"]["name"]
        self.assertTrue(named(by_queue, "TriggerAuthentication", asked), asked)
        by_http = renamed("recipes/zero-by-http")
        scaler, = of_kind(by_http, "HTTPScaledObject")
        target = scaler["spec"]["scaleTargetRef"]
        self.assertTrue(named(by_http, "Deployment", target["name"]), target)
        self.assertTrue(named(by_http, "Service", target["service"]), target)

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
