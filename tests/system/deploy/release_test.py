"""What a release is made of: one version everywhere, the workflows, the service, and what Docker Compose starts."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from manifests import DEPLOY
from served import BIN

ROOT = DEPLOY.parent
VERSION = re.search(r"^project\(linserve VERSION ([\d.]+) ", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"),
                    re.MULTILINE)[1]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def files(*patterns):
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split("\0") if path]


class VersionTest(unittest.TestCase):
    def test_it_is_the_same_everywhere(self):
        places = {
            "Dockerfile": r"^ARG VERSION=(.*)$", "client/python/pyproject.toml": r'^version = "(.*)"$',
            "deploy/helm/linserve/Chart.yaml": r'^(?:version|appVersion): "?([^"\n]*)"?$',
            "CHANGELOG.md": r"\A.*?^## (\S+)"}
        for path, pattern in places.items():
            found = re.findall(pattern, read(path), re.MULTILINE | (re.DOTALL if path == "CHANGELOG.md" else 0))
            self.assertEqual(set(found), {VERSION}, path)
        mentions = r"app.kubernetes.io/version: \"?([\d.]+)|(?<![\w/])linserve:([\d.]+)-\w+"
        named = {path: set(re.findall(mentions, read(path)))
                 for path in files("deploy/*.md", "deploy/*.yaml", "Dockerfile", ".github/*")}
        versions = {path: {version for pair in found for version in pair if version} for path, found in named.items()}
        self.assertIn("deploy/kubernetes/base/deployment.yaml", [path for path, found in versions.items() if found])
        self.assertEqual(set().union(*versions.values()), {VERSION}, versions)

    def test_images_are_named_by_their_version(self):
        for path in files("deploy/*.md", "deploy/*.yaml", "Dockerfile"):
            self.assertEqual(re.findall(r"(?<![\w/-])linserve:(?:cpu|cuda|latest)\b", read(path)), [], path)

    def test_both_programs_say_it(self):
        for program in ("linserve", "linserve-client"):
            said = subprocess.run([BIN / program, "--version"], capture_output=True, text=True, timeout=30).stdout
            self.assertRegex(said, rf"^{program} {re.escape(VERSION)} \(\w+")


class WorkflowsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.workflows = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
                         for path in (ROOT / ".github/workflows").glob("*.yml")}
        cls.steps = {name: [step for job in workflow["jobs"].values() for step in job["steps"]]
                     for name, workflow in cls.workflows.items()}

    def test_every_action_is_pinned(self):
        self.assertEqual(set(self.workflows), {"test", "release"})
        for name in self.workflows:
            for line in re.findall(r"uses: .*", read(f".github/workflows/{name}.yml")):
                self.assertRegex(line, r"^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")

    def test_rights_are_given_job_by_job(self):
        for workflow in self.workflows.values():
            self.assertEqual(workflow["permissions"], {"contents": "read"})

    def test_what_runs_on_every_change_is_the_one_script(self):
        self.assertIn(".ci/run", [step.get("run") for step in self.steps["test"]])

    def test_both_images_are_built_and_those_released_are_described_and_signed(self):
        stages = re.findall(r"^FROM \S+ AS (\w+)$", read("Dockerfile"), re.MULTILINE)
        arguments = set(re.findall(r"^ARG (\w+)", read("Dockerfile"), re.MULTILINE))
        for name, workflow in self.workflows.items():
            job = workflow["jobs"]["images"]
            self.assertEqual(job["strategy"]["matrix"]["target"], ["cpu", "cuda"])
            self.assertLessEqual({"cpu", "cuda"}, set(stages))
            build, = [step["with"] for step in job["steps"] if "build-push" in step.get("uses", "")]
            self.assertLessEqual({line.split("=")[0] for line in build["build-args"].splitlines()}, arguments)
            self.assertEqual(build["push"], name == "release")
            if name == "release":
                self.assertEqual((build["sbom"], build["provenance"]), (True, "mode=max"))
                self.assertEqual(job["permissions"]["id-token"], "write")
                self.assertIn('cosign sign --yes "$IMAGE@${{ steps.build.outputs.digest }}"',
                              [step.get("run") for step in job["steps"]])

    def test_scripts_that_are_run_are_there_and_shells_understand_them(self):
        for steps in self.steps.values():
            for script in (step["run"] for step in steps if "run" in step):
                plain = re.sub(r"\$\{\{.*?\}\}", "x", script)
                done = subprocess.run(["bash", "-n"], input=plain, capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 0, done.stderr)
                for path in re.findall(r"^(?:\.ci|deploy)/\S+$", script, re.MULTILINE):
                    self.assertTrue((ROOT / path).stat().st_mode & 0o100, path)

    def test_what_is_released_names_the_repository(self):
        naming, = [line for step in self.steps["release"] for line in step.get("run", "").splitlines()
                   if "OWNER/linserve" in line]
        named = {path: read(path) for path in files("*.md", "*.yaml", ".github") if path.endswith((".md", ".yaml"))}
        named = {path: text for path, text in named.items() if re.search(r"(?:github\.com|ghcr\.io)/OWNER", text)}
        self.assertEqual(set(named), {".github/SECURITY.md", "deploy/monitoring/rules.yaml"})
        with tempfile.TemporaryDirectory() as place:
            for path, text in named.items():
                Path(place, path).parent.mkdir(parents=True)
                Path(place, path).write_text(text, encoding="utf-8")
            subprocess.run(["bash", "-c", naming], cwd=place, check=True, timeout=30,
                           env={"PATH": "/usr/bin:/bin", "GITHUB_REPOSITORY": "me/mine"})
            for path in named:
                self.assertNotIn("OWNER", Path(place, path).read_text(encoding="utf-8"))

    def test_pages_for_contributors_lead_somewhere(self):
        for name in ("SECURITY.md", "CONTRIBUTING.md"):
            for target in re.findall(r"\]\((?!http)([^)#]+)", read(f".github/{name}")):
                self.assertTrue((ROOT / ".github" / target).exists(), target)
        self.assertIn("Apache License", read("LICENSE"))


class ServiceTest(unittest.TestCase):
    UNIT = DEPLOY / "systemd/linserve.service"

    def test_it_exposes_little(self):
        rated = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", self.UNIT],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(rated.returncode, 0, rated.stdout[-300:])  # 20 is a level of 2.0

    def test_the_server_knows_its_options(self):
        start = re.search(r"^ExecStart=/usr/bin/linserve (.*)$", self.UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1]
        arguments = start.replace("/etc/linserve/linserve.json", str(DEPLOY / "systemd/linserve.json")).split()
        done = subprocess.run([BIN / "linserve", *arguments, "--print-config"], capture_output=True, text=True,
                              timeout=30, env={"LINSERVE_DEFAULTS": str(DEPLOY / "systemd/service.json")})
        self.assertEqual(done.returncode, 0, done.stderr)
        config = json.loads(done.stdout)
        self.assertEqual(config["model_repository"], "/var/lib/linserve/models")
        stop = int(re.search(r"^TimeoutStopSec=(\d+)$", self.UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1])
        self.assertGreaterEqual(stop, config["drain_delay_seconds"] + config["drain_timeout_seconds"] + 5)


class ComposeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.services = yaml.safe_load(read("deploy/compose.yaml"))["services"]

    def mounted(self, service):
        """Files of the repository by their places in the container."""
        found = {}
        for volume in self.services[service]["volumes"]:
            if isinstance(volume, dict):
                volume = f"{volume['source']}:{volume['target']}"
            source, place, *_ = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).split(":")
            if source.startswith("."):
                found[place] = DEPLOY / source
        return found

    def test_what_is_mounted_is_there_and_ports_are_this_machines(self):
        for name, service in self.services.items():
            for place, path in self.mounted(name).items():
                self.assertTrue(path.exists(), place)
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), port)
            self.assertRegex(service["image"], r":v?\d+\.\d+\.\d+")

    def test_prometheus_reads_its_configuration_and_rules_and_asks_the_server(self):
        service = self.services["prometheus"]
        shell, flag, script = service["entrypoint"]
        self.assertEqual((shell, flag), ("/bin/sh", "-c"))
        mounted = self.mounted("prometheus")
        with tempfile.TemporaryDirectory() as directory:
            made = script.replace("$$", "$").replace("/tmp/", f"{directory}/").split("exec ")[0]
            for place, path in mounted.items():
                made = made.replace("/etc/linserve/$name.yaml", str(DEPLOY / "monitoring/$name.yaml"))
            subprocess.run(["sh", "-ec", made], check=True, timeout=30)
            text = mounted["/etc/linserve/prometheus.yaml"].read_text(encoding="utf-8")
            config = Path(directory, "prometheus.yaml")
            config.write_text(text.replace("/tmp/", f"{directory}/"), encoding="utf-8")
            done = subprocess.run(["promtool", "check", "config", config], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        scrape, = yaml.safe_load(text)["scrape_configs"]
        (name, port), = [target.split(":") for target in scrape["static_configs"][0]["targets"]]
        defaults = re.search(r'"http_address": ".*:(\d+)"', read("deploy/container.json"))[1]
        self.assertEqual((name in self.services, port), (True, defaults))

    def test_grafana_finds_prometheus_and_the_dashboard(self):
        mounted = self.mounted("grafana")
        provisioned = {place: yaml.safe_load(path.read_text(encoding="utf-8")) for place, path in mounted.items()
                       if "/provisioning/" in place}
        source, = [each for config in provisioned.values() for each in config.get("datasources", ())]
        name, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()
        self.assertIn(f"127.0.0.1:{port}:{port}", self.services[name]["ports"])
        provider, = [each for config in provisioned.values() for each in config.get("providers", ())]
        dashboard, = [path for place, path in mounted.items() if place.startswith(provider["options"]["path"] + "/")]
        self.assertEqual(json.loads(dashboard.read_text(encoding="utf-8"))["uid"], "linserve")
        home = self.services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        self.assertIn(home, mounted)


if __name__ == "__main__":
    unittest.main()
