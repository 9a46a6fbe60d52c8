"""Dashboard, rules and scalers of deploy/monitoring and deploy/kubernetes, in a Prometheus that scrapes the server."""

import json
import math
import re
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

import yaml
from alerts import CASES, unit_tests
from manifests import DEPLOY, KUBERNETES, strings
from metric_names import mentioned, of_gpus
from prometheus import Prometheus
from served import BIN, Server

RULES = DEPLOY / "monitoring/rules.yaml"
DASHBOARD = json.loads((DEPLOY / "monitoring/dashboard.json").read_text(encoding="utf-8"))
# Long enough for a rate, short enough for a test.
SCRAPE_INTERVAL, RATE_INTERVAL = "250ms", "5s"
PATIENCE_S = 40


def plain_rules():
    """As the comment in the file says, for a Prometheus without the operator."""
    command, = re.findall(r"^# +(sed .*) rules\.yaml > ", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    return subprocess.run(f"{command} {RULES}", shell=True, check=True, capture_output=True, text=True).stdout


def rules(kind):
    """Those of a kind, `record` or `alert`."""
    groups = yaml.safe_load(plain_rules())["groups"]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def with_variables(query):
    """A query of the dashboard, as Grafana sends it with `All` chosen."""
    query = query.replace("$__rate_interval", RATE_INTERVAL)
    for variable in DASHBOARD["templating"]["list"]:
        query = query.replace("$" + variable["name"], variable.get("allValue", ""))
    return query


def dashboard_queries():
    return [(f"{panel['title']}: {target['legendFormat']}", with_variables(target["expr"]))
            for panel in panels() for target in panel["targets"]]


def scaler_queries():
    """What autoscalers ask Prometheus for."""
    adapter = yaml.safe_load((DEPLOY / "monitoring/prometheus-adapter.yaml").read_text(encoding="utf-8"))
    for rule in adapter["rules"]["custom"]:
        query = rule["metricsQuery"].replace("<<.Series>>", rule["seriesQuery"].split("{")[0])
        query = query.replace("<<.LabelMatchers>>", 'namespace="linserve",pod=~"linserve-0"')
        yield "prometheus-adapter", query.replace("<<.GroupBy>>", "pod")
    for path in ("components/keda/scaledobject.yaml", "overlays/kserve/inferenceservice.yaml"):
        manifest = yaml.safe_load((KUBERNETES / path).read_text(encoding="utf-8"))
        found = [text for text in strings(manifest) if mentioned(text)]
        assert found, path
        yield from ((path, query) for query in found)


def selectors(query):
    """The parts of a query that choose series."""
    return re.findall(r"(?<![\w:])(?:linserve_\w+|process_\w+|up|\w+:\w+:\w+)(?:\{[^}]*\})?(?![\w:({])", query)


def send_texts(server, ended):
    """Beside the load, which is of token ids."""
    body = json.dumps({"model": "m", "inputs": "the server answers"}).encode()
    while not ended.wait(0.05):
        urllib.request.urlopen(urllib.request.Request(f"http://{server.http}/embed", body)).close()


def generate(server, ended):
    """Sessions that are begun and ended."""
    while not ended.wait(0.05):
        subprocess.run([BIN / "linserve-client", "--target", server.grpc, "generate", "[1, 2]", "--model", "causal",
                        "--max-tokens", "8"], check=True, capture_output=True, timeout=60)


class MonitoringTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.rules = Path(directory.name) / "rules.yaml"
        cls.rules.write_text(plain_rules(), encoding="utf-8")
        # A cache that holds a part of the load's sequences, which come again and again.
        server = Server("--padding", "bucket", "--cache-bytes", "1024", text=True, causal=True)
        cls.addClassCleanup(server.close)
        load = subprocess.Popen(
            [BIN / "linserve-client", "--target", server.grpc, "load", "--duration", "600", "--rate", "100",
             "--model", "m", "--lengths", "uniform:1,32"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(load.wait, 60)
        cls.addClassCleanup(load.terminate)
        ended = threading.Event()
        for callers in (send_texts, generate):
            thread = threading.Thread(target=callers, args=(server, ended))
            thread.start()
            cls.addClassCleanup(thread.join)
        cls.addClassCleanup(ended.set)
        cls.prometheus = Prometheus(server.http, cls.rules, SCRAPE_INTERVAL)
        cls.addClassCleanup(cls.prometheus.close)

    def answered(self, queries):
        """Asks until each query has an answer with a number in it."""
        limit = time.monotonic() + PATIENCE_S
        unanswered = dict(queries)
        while unanswered:
            unanswered = {name: query for name, query in unanswered.items()
                          if not any(map(math.isfinite, self.prometheus.values(query)))}
            if unanswered and time.monotonic() > limit:
                self.fail("empty, or NaN: " + "\n".join(f"{name}: {query}" for name, query in unanswered.items()))
            time.sleep(0.1)

    def test_dashboard_is_answered(self):
        queries = dashboard_queries()
        self.assertEqual(len(dict(queries)), len(queries), "two queries have one name")
        # This server has no GPU.
        self.answered((name, query) for name, query in queries if not mentioned(query) & of_gpus())

    def test_dashboard_variables_have_values(self):
        for variable in DASHBOARD["templating"]["list"]:
            if variable["type"] == "query":
                series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
                self.assertEqual(variable["definition"], variable["query"]["query"])
                self.assertTrue(self.prometheus.label_values(label, with_variables(series)), variable["name"])

    def test_dashboard_is_whole(self):
        numbers = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(set(numbers)), len(numbers))
        names = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
        for text in strings(DASHBOARD["panels"]):
            self.assertLessEqual(set(re.findall(r"\$(\w+)", text)), names)
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]}
        self.assertEqual(len(places), len(numbers))

    def test_scalers_are_answered(self):
        self.answered(scaler_queries())

    def test_pods_whose_models_are_still_loaded_scale_nothing(self):
        pods = {pod: f'{{namespace="linserve", pod="{pod}", model="m", version="1"}}' for pod in "ab"}
        busy = 'linserve_compute_duration_seconds_sum{phase="forward", '
        series = {f"linserve_replicas{pods['a']}": "1x10", f"linserve_replicas{pods['b']}": "0x10",
                  busy + pods["a"][1:]: "0+30x10", busy + pods["b"][1:]: "0x10"}  # a computes half of each minute
        queries = [query for name, query in scaler_queries() if "linserve_replicas" in query and "adapter" not in name]
        self.assertEqual(len(queries), 2)
        half = [{"labels": "{}", "value": 0.5}]
        test = {"interval": "1m", "input_series": [{"series": name, "values": text} for name, text in series.items()],
                "promql_expr_test": [{"expr": query, "eval_time": "10m", "exp_samples": half} for query in queries]}
        path = self.rules.with_name("scalers.yaml")
        path.write_text(json.dumps({"tests": [test]}), encoding="utf-8")
        done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_recorded_series_are_there(self):
        self.answered((rule["record"], rule["record"]) for rule in rules("record"))
        self.answered((rule["record"], rule["expr"]) for rule in rules("record"))

    def test_alerts_are_about_series_that_are_there(self):
        for rule in rules("alert"):
            self.prometheus.values(rule["expr"])
            self.assertTrue(selectors(rule["expr"]), rule["expr"])
        self.answered((selector, selector) for rule in rules("alert") for selector in selectors(rule["expr"]))

    def test_prometheus_evaluates_every_rule(self):
        self.prometheus.wait_until_rules_ran()
        health = {rule["name"]: rule["health"] for rule in self.prometheus.rules()}
        self.assertEqual(health, {rule[kind]: "ok" for kind in ("record", "alert") for rule in rules(kind)})

    def test_rules_are_well_formed(self):
        done = subprocess.run(["promtool", "check", "rules", "--lint-fatal", self.rules], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_fires_when_it_should_and_alone(self):
        self.assertEqual({alert for alert, _, _ in CASES}, {rule["alert"] for rule in rules("alert")})
        path = self.rules.with_name("alerts.yaml")
        path.write_text(json.dumps(unit_tests(self.rules.name)), encoding="utf-8")
        done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
