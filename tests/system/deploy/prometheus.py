"""A Prometheus process that scrapes one server."""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from ports import free_port


class Prometheus:
    """On a port of its own, ready, with the labels that a pod's series have in a cluster. `how`: more of the scrape's
    configuration."""

    def __init__(self, target, rules, interval, **how):
        self.directory = Path(tempfile.mkdtemp())
        config = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "linserve", **how, "static_configs": [
                {"targets": [target], "labels": {"namespace": "linserve", "pod": "linserve-0"}}]}]}
        (self.directory / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        self.address = f"http://127.0.0.1:{free_port()}"
        self.log_path = self.directory / "log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.directory}/prometheus.yaml",
                 f"--storage.tsdb.path={self.directory}/data",
                 f"--web.listen-address={self.address.removeprefix('http://')}"], stdout=log, stderr=log)
        try:
            self.wait_for(self.ready, "Prometheus")
        except Exception:
            self.close()
            raise

    def ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("Prometheus did not start:\n" + self.log_path.read_text(errors="replace"))
        try:
            return urllib.request.urlopen(f"{self.address}/-/ready", timeout=5).status == 200
        except urllib.error.URLError:
            return False

    def wait_for(self, condition, what, seconds=40):
        limit = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > limit:
                raise TimeoutError(f"waited {seconds} s for {what}")
            time.sleep(0.05)

    def ask(self, path, **parameters):
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            return json.load(urllib.request.urlopen(url, timeout=30))["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def values(self, query):
        """Of the series that a query gives now."""
        return [float(series["value"][1]) for series in self.ask("query", query=query)["result"]]

    def label_values(self, label, selector):
        return self.ask(f"label/{label}/values", **{"match[]": selector})

    def rules(self):
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def wait_until_rules_ran(self):
        self.wait_for(lambda: all(rule["health"] != "unknown" for rule in self.rules()), "the rules")

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.directory)
