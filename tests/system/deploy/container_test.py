"""The image as podman runs it, and the pods of deploy/kubernetes as it plays them, confined as they say.

Called by tests/system/image/run, which makes the image. What podman does not know of pods (gRPC probes, preStop)
is asked for here in the kubelet's place.
"""

import json
import os
import subprocess
import tempfile
import time
import unittest

import yaml
from manifests import DEPLOY, KUBERNETES, compose, of_kind, pod_spec, probes

IMAGE = os.environ["LINSERVE_TEST_IMAGE"]
BASE = os.environ["LINSERVE_TEST_BASE"]
INIT_TYPE = "io.podman.annotations.init.container.type"
BUNDLED = "/opt/linserve/share/linserve/models"
SAMPLE = DEPLOY / "models" / "sentence-encoder"


def podman(*arguments, check=True, **more):
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=300, **more)
    if check and done.returncode:
        raise RuntimeError(f"podman {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def split(image):
    """Name and tag, as kustomize wants them."""
    name, _, tag = image.rpartition(":")
    return {"newName": name, "newTag": tag}


def state(container):
    return json.loads(podman("inspect", container).stdout)[0]["State"]


def log(container):
    done = podman("logs", container, check=False)
    return done.stdout + done.stderr


def eventually(condition, container):
    limit = time.monotonic() + 120
    while not condition():
        if time.monotonic() > limit or not state(container)["Running"]:
            raise RuntimeError(f"{container} does not become ready:\n{log(container)}")
        time.sleep(0.2)


class Pod:
    """A pod with no network but its own loopback. Ports are those of its containers alone."""

    def __init__(self, documents):
        self.spec = pod_spec(documents)
        self.container, = self.spec["containers"]
        del self.container["ports"]
        deployment, = of_kind(documents, "Deployment")
        deployment["spec"]["replicas"] = 1
        # Else podman 4.3 removes an init container that has just ended, and fails where it has not noticed its end.
        deployment["metadata"]["annotations"] = {INIT_TYPE: "always"}
        self.name = "linserve-pod-0-linserve"
        self.manifest = yaml.safe_dump_all(of_kind(documents, "ConfigMap", "Deployment"))
        self.volumes = [document["metadata"]["name"] for document in of_kind(documents, "ConfigMap")]

    def play(self):
        podman("kube", "play", "--network", "none", "-", input=self.manifest)
        eventually(lambda: self.health() == "SERVING", self.name)

    def run(self, *command, **more):
        return podman("exec", "-i", self.name, *command, **more)

    def health(self, service=""):
        return self.run("linserve-client", "health", "--service", service, check=False).stdout.strip()

    def close(self):
        podman("kube", "down", "-", input=self.manifest, check=False)
        podman("volume", "rm", *self.volumes, check=False)


def play(clean, documents):
    pod = Pod(documents)
    clean(pod.close)
    pod.play()
    return pod


class ImageTest(unittest.TestCase):
    def test_its_health_is_the_servers_and_it_ends_when_told_to(self):
        name = podman("run", "--detach", "--read-only", "--network", "none", IMAGE, "serve",
                      "--model-repository", BUNDLED).stdout.strip()
        self.addCleanup(podman, "rm", "--force", name)
        eventually(lambda: podman("healthcheck", "run", name, check=False).returncode == 0, name)
        if ":cpu" in IMAGE:
            self.assertNotIn("computing on the CPU because", log(name))
        podman("stop", "--time", "30", name)
        self.assertEqual(state(name)["ExitCode"], 0, log(name))


    def test_it_runs_as_any_user_that_openshift_gives_it(self):
        name = podman("run", "--detach", "--read-only", "--network", "none", "--user", "1000650000:0", "--cap-drop",
                      "all", IMAGE, "serve", "--model-repository", BUNDLED).stdout.strip()
        self.addCleanup(podman, "rm", "--force", name)
        eventually(lambda: podman("healthcheck", "run", name, check=False).returncode == 0, name)
        self.assertEqual(podman("exec", name, "id", "-u").stdout.strip(), "1000650000")


class TryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pod = play(cls.addClassCleanup,
                       compose([KUBERNETES / "overlays/try"], images=[{"name": "linserve", **split(IMAGE)}]))

    def test_one_command_serves_the_bundled_model(self):
        sample = (SAMPLE / "sample.txt").read_text(encoding="utf-8")
        done = self.pod.run("linserve-client", "embed", "-", "--neighbours", input=sample)
        self.assertEqual(len(done.stdout.splitlines()), 1 + len(sample.splitlines()), done.stdout)
        self.assertRegex(done.stdout, r"password.* 0\.6\d+ .*new password")

    def test_probes_are_answered(self):
        for name, probe in probes(self.pod.container).items():
            self.assertEqual(self.pod.health(probe["grpc"].get("service", "")), "SERVING", name)

    def test_it_is_confined_as_the_manifest_says(self):
        self.assertEqual(self.pod.run("id", "-u").stdout.strip(), "65532")
        self.assertIn("Read-only", self.pod.run("touch", "/file", check=False).stderr)
        status = self.pod.run("cat", "/proc/1/status").stdout.split()
        self.assertEqual(int(status[status.index("CapBnd:") + 1], 16), 0)
        self.assertEqual(status[status.index("NoNewPrivs:") + 1], "1")
        self.assertEqual(status[status.index("Seccomp:") + 1], "2")

    def metrics(self):
        return self.pod.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8081; "
                            r"printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3").stdout

    def test_it_keeps_to_its_memory_and_its_processors(self):
        self.assertIn(f"\nlinserve_memory_limit_bytes {1 << 30}\n", self.metrics())
        self.assertIn('"threads":1', log(self.pod.name).replace(" ", ""))
        self.pod.run("linserve-client", "load", "--requests", "300", "--concurrency", "16", "--lengths",
                     "uniform:1,512")
        self.assertFalse(state(self.pod.name)["OOMKilled"])
        self.assertEqual(self.pod.health(), "SERVING")


class ModelsFromImageTest(unittest.TestCase):
    def test_models_come_from_an_image_and_the_end_keeps_to_the_grace_period(self):
        with tempfile.TemporaryDirectory() as folder:
            # deploy/kubernetes/README.md says to make it so.
            subprocess.run(["cp", "-r", str(SAMPLE), f"{folder}/mine"], check=True)
            podman("build", "-q", "-t", "localhost/linserve-models:test", "-f", "-", folder,
                   input=f"FROM {BASE}\nCOPY mine /models/mine\n")
        self.addCleanup(podman, "rmi", "--force", "localhost/linserve-models:test")
        images = {"linserve": IMAGE, "linserve-models": "localhost/linserve-models:test"}
        documents = compose([KUBERNETES / "base"], [KUBERNETES / "components/models-from-image"],
                            images=[{"name": name, **split(image)} for name, image in images.items()])
        pod = play(self.addCleanup, documents)
        self.assertIn("mine", pod.run("linserve-client", "models").stdout)
        podman("stop", "--time", str(pod.spec["terminationGracePeriodSeconds"]), pod.name)
        self.assertEqual(state(pod.name)["ExitCode"], 0, log(pod.name))


if __name__ == "__main__":
    unittest.main()
