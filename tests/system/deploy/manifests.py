"""Manifests as `kubectl kustomize` renders them, and what is in them."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
# requirements.txt brings it, since Debian's knows no components.
KUBECTL = Path(sys.prefix) / "bin" / "kubectl"
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject", "HTTPScaledObject")


def render(directory):
    done = subprocess.run([KUBECTL, "kustomize", directory], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{directory}: {done.stderr}")
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def compose(resources, components=(), transformers=(), **more):
    """Renders a kustomization as a user might write one."""
    with tempfile.TemporaryDirectory() as directory:
        # kustomize takes relative paths only, and not through links.
        place = os.path.realpath(directory)
        paths = {"resources": resources, "components": components, "transformers": transformers}
        kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                         "namespace": "linserve", **more,
                         **{name: [os.path.relpath(path, place) for path in of] for name, of in paths.items()}}
        Path(place, "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
        return render(place)


def render_all():
    base = [KUBERNETES / "base"]
    rendered = {name: render(KUBERNETES / name)
                for name in ("base", "overlays/try", "overlays/cpu", "overlays/gpu", "overlays/kserve")}
    rendered["keda"] = compose(base, [KUBERNETES / "components/keda"])
    rendered["models-from-image"] = compose(base, [KUBERNETES / "components/models-from-image"])
    rendered["secured"] = compose([KUBERNETES / "overlays/cpu"],
                                  [KUBERNETES / "components/tls", KUBERNETES / "components/tokens"])
    rendered["outside"] = compose(base, [KUBERNETES / "components" / name for name in (
        "gateway", "weigh-by-load", "openshift")] + [KUBERNETES / "recipes/sessions"])
    for name in ("zero-by-http", "zero-by-queue", "models-from-bucket"):
        rendered[name] = render(KUBERNETES / "recipes" / name)
    return rendered


def render_from_readme(what):
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


def beside(name, components=()):
    """A second instance in the namespace of the first one, as deploy/kubernetes/README.md says to write it."""
    return compose([KUBERNETES / name], components, nameSuffix="-blue",
                   transformers=[KUBERNETES / "transformers/names", KUBERNETES / "transformers/beside"])


def renamed(name):
    """Renders a folder with a `nameSuffix` of its own, as whoever copies and adapts it would write one."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(KUBERNETES, Path(directory, "kubernetes"))) / name
        with open(copy / "kustomization.yaml", "a", encoding="utf-8") as kustomization:
            kustomization.write('nameSuffix: "-blue"\n')
        return render(copy)


def selectors(documents):
    """What chooses pods, by labels: kind of the document, and the labels."""
    for document in documents:
        spec = document.get("spec") or {}
        if document["kind"] == "Service":
            yield "Service", spec["selector"]
        for field in ("selector", "podSelector"):
            if document["kind"] not in ("Service", "ServiceMonitor") and field in spec:
                yield document["kind"], spec[field]["matchLabels"]
    for deployment in of_kind(documents, "Deployment"):
        for spread in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
            yield "Deployment", spread["labelSelector"]["matchLabels"]


def type_of(document):
    return f"{document['apiVersion']} {document['kind']}"


def of_kind(documents, *kinds):
    return [document for document in documents if document["kind"] in kinds]


def named(documents, kind, name):
    found = [document for document in of_kind(documents, kind) if document["metadata"]["name"] == name]
    return found[0] if found else None


def pod_spec(documents):
    """Of the Deployment, or of the pod that KServe makes of runtime and service."""
    for deployment in of_kind(documents, "Deployment"):
        return deployment["spec"]["template"]["spec"]
    runtime, = of_kind(documents, "ServingRuntime")
    service, = of_kind(documents, "InferenceService")
    fields = ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds")
    return {**{field: runtime["spec"][field] for field in ("containers", "volumes", "nodeSelector")},
            **{field: service["spec"]["predictor"][field] for field in fields}}


def pod_labels(documents):
    """Of the Deployment's pods, or of those that KServe makes."""
    for deployment in of_kind(documents, "Deployment"):
        return deployment["spec"]["template"]["metadata"]["labels"]
    service, = of_kind(documents, "InferenceService")
    return {"serving.kserve.io/inferenceservice": service["metadata"]["name"]}


def probes(container):
    return {name: container[name] for name in ("startupProbe", "readinessProbe", "livenessProbe")}


def environment(container):
    """Variables of the server, those from requested processors resolved."""
    found = {}
    for variable in container.get("env", ()):
        if "valueFrom" in variable:
            assert variable["valueFrom"] == {"resourceFieldRef": {"resource": "requests.cpu"}}, variable
            found[variable["name"]] = container["resources"]["requests"]["cpu"]
        else:
            found[variable["name"]] = variable["value"]
    return found


def lay_files(documents, spec, container, directory):
    """Lays the files of mounted ConfigMaps below the directory, as they would lie below /."""
    config_maps = {volume["name"]: volume["configMap"]["name"] for volume in spec["volumes"]
                   if "configMap" in volume}
    for mount in container["volumeMounts"]:
        if mount["name"] in config_maps:
            data = named(documents, "ConfigMap", config_maps[mount["name"]])["data"]
            place = Path(directory, mount["mountPath"].lstrip("/"))
            place.mkdir(parents=True)
            for name, text in data.items():
                (place / name).write_text(text, encoding="utf-8")


def strings(value):
    """Every string of a document."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(part)
