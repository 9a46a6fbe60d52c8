"""Dashboard, rules and scalers of deploy/monitoring and deploy/kubernetes, in a Prometheus that scrapes the server."""

import json
import math
import re
import ssl
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
SCALING = DEPLOY / "monitoring/scaling.yaml"
DASHBOARD = json.loads((DEPLOY / "monitoring/dashboard.json").read_text(encoding="utf-8"))
# Long enough for a rate, short enough for a test.
SCRAPE_INTERVAL, RATE_INTERVAL = "250ms", "5s"
TOKEN = "the token of those who load it"
PATIENCE_S = 40


def plain_rules():
    """As the comment in the file says, for a Prometheus without the operator; and what autoscalers go by."""
    command, = re.findall(r"^# +(sed .*) rules\.yaml > ", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    plain = subprocess.run(f"{command} {RULES}", shell=True, check=True, capture_output=True, text=True).stdout
    scaling = yaml.safe_load(SCALING.read_text(encoding="utf-8"))["spec"]["groups"]
    return yaml.safe_dump({"groups": yaml.safe_load(plain)["groups"] + scaling})


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
        found = [text for text in strings(manifest) if "sum(" in text]
        assert found, path
        yield from ((path, query) for query in found)


def selectors(query):
    """The parts of a query that choose series."""
    return re.findall(r"(?<![\w:])(?:linserve_\w+|process_\w+|up|\w+:\w+:\w+)(?:\{[^}]*\})?(?![\w:({])", query)


def let_callers_in(directory):
    """Writes a certificate and a token, and returns the server's options for them."""
    certificate, key, tokens = (directory / name for name in ("tls.crt", "tls.key", "tokens.json"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days",
                    "30", "-subj", "/CN=linserve", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    certificate], check=True, capture_output=True)
    tokens.write_text(json.dumps({"tokens": [{"name": "load", "token": TOKEN, "may": ["infer", "metrics"]}]}))
    return ["--tls-certificate", certificate, "--tls-private-key", key, "--tokens-file", tokens]


def client(server, certificate, *arguments, **how):
    """A client that runs."""
    return subprocess.Popen([BIN / "linserve-client", "--target", server.grpc, "--tls-ca", certificate, *arguments],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"LINSERVE_TOKEN": TOKEN}, **how)


def send_texts(server, certificate, ended):
    """Beside the load, which is of token ids."""
    request = urllib.request.Request(f"https://{server.http}/embed", headers={"Authorization": f"Bearer {TOKEN}"},
                                     data=json.dumps({"model": "m", "inputs": "the server answers"}).encode())
    trusting = ssl.create_default_context(cafile=certificate)
    while not ended.wait(0.05):
        urllib.request.urlopen(request, context=trusting).close()


def generate(server, certificate, ended):
    """Sessions that are begun and ended."""
    while not ended.wait(0.05):
        generating = client(server, certificate, "generate", "[1, 2]", "--model", "causal", "--max-tokens", "8")
        assert generating.wait(60) == 0


class MonitoringTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        options = let_callers_in(Path(directory.name))
        certificate = options[1]
        cls.rules = Path(directory.name) / "rules.yaml"
        cls.rules.write_text(plain_rules(), encoding="utf-8")
        # A cache that holds a part of the load's sequences, which come again and again.
        server = Server("--padding", "bucket", "--cache-bytes", "1024", *options, text=True, causal=True)
        cls.addClassCleanup(server.close)
        load = client(server, certificate, "load", "--duration", "600", "--rate", "100", "--model", "m", "--lengths",
                      "uniform:1,32")
        cls.addClassCleanup(load.wait, 60)
        cls.addClassCleanup(load.terminate)
        ended = threading.Event()
        for callers in (send_texts, generate):
            thread = threading.Thread(target=callers, args=(server, certificate, ended))
            thread.start()
            cls.addClassCleanup(thread.join)
        cls.addClassCleanup(ended.set)
        cls.prometheus = Prometheus(server.http, cls.rules, SCRAPE_INTERVAL, scheme="https",
                                    tls_config={"ca_file": str(certificate)}, authorization={"credentials": TOKEN})
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
        for panel in panels():
            self.assertRegex(panel.get("description", ""), r"^[A-Z\d].*\.$", panel["title"])
            if panel["type"] == "stat":
                self.assertTrue(panel["fieldConfig"]["defaults"]["thresholds"]["steps"], panel["title"])
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]}
        self.assertEqual(len(places), len(numbers))

    def test_scalers_are_answered(self):
        self.answered(scaler_queries())

    def test_pods_have_equal_shares_of_what_is_offered_to_them(self):
        def pod(name, job="linserve", model="m", arrived=0, tokens=0, busy=0, delay=0):
            """Counters by what they grow in ten seconds."""
            labels = f'{{namespace="linserve", job="{job}", pod="{name}", model="{model}", version="1"}}'
            return {
                f"linserve_arrived_tokens_total{labels}": f"0+{arrived}x60",
                f"linserve_tokens_total{labels}": f"0+{tokens}x60",
                f"linserve_busy_seconds_total{labels}": f"0+{busy}x60",
                f"linserve_queue_delay_estimate_seconds{labels}": f"{delay}x60"}
        series = {
            # 0.5 of a server's time, and 2 servers'; one of them waits: half a server more.
            **pod("steady", arrived=100, tokens=100, busy=5),
            **pod("overloaded", arrived=160, tokens=80, busy=10, delay=9),
            **pod("idle"), **pod("loading"), **pod("idle", model="another", arrived=8, tokens=8, busy=1),
            # Not long ago nobody asked: two wait, which is more than what the rate says, and little is added.
            **pod("first", "blue", arrived=1, tokens=10, busy=10, delay=9), **pod("second", "blue", delay=0.03),
            **pod("alone", "green", arrived=80, tokens=80, busy=8),
            # Elsewhere than on Kubernetes servers differ in their addresses alone.
            **pod('", instance="a', "static", arrived=80, tokens=80, busy=8),
            **pod('", instance="b', "static", arrived=40, tokens=80, busy=8)}
        shares = {"steady": 0.75, "overloaded": 0.75, "idle": 0.75, "loading": 0.75, "first": 0.8, "second": 0.8,
                  "alone": 0.8}
        recorded = "namespace_job_pod:linserve_offered_utilization"
        expected = [{"expr": f'round(sum by (pod) ({recorded}{{pod="{name}"}}), 0.001)', "eval_time": "10m",
                     "exp_samples": [{"labels": f'{{pod="{name}"}}', "value": share}]} for name, share in shares.items()]
        expected.append({"expr": f'round(sum by (job) ({recorded}{{job="static"}}), 0.001)', "eval_time": "10m",
                         "exp_samples": [{"labels": '{job="static"}', "value": 1.2}]})
        queries = [query for name, query in scaler_queries() if "adapter" not in name]
        self.assertEqual(len(queries), 2)
        expected += [{"expr": f"round({query}, 0.001)", "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 3}]}
                     for query in queries]
        self.promtool_tests("scalers.yaml", {
            "interval": "10s", "promql_expr_test": expected,
            "input_series": [{"series": name, "values": text} for name, text in series.items()]})

    def promtool_tests(self, name, test):
        path = self.rules.with_name(name)
        path.write_text(json.dumps({"rule_files": [self.rules.name], "evaluation_interval": "5s", "tests": [test]}),
                        encoding="utf-8")
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

    def test_rules_are_of_every_instance(self):
        for rule in (*rules("record"), *rules("alert")):
            self.assertNotIn('job="linserve"', rule["expr"], "others are linserve-gpu, say")

    def test_prometheus_evaluates_every_rule(self):
        self.prometheus.wait_until_rules_ran()
        health = {rule["name"]: rule["health"] for rule in self.prometheus.rules()}
        self.assertEqual(health, {rule[kind]: "ok" for kind in ("record", "alert") for rule in rules(kind)})

    def test_rules_are_well_formed(self):
        done = subprocess.run(["promtool", "check", "rules", "--lint-fatal", self.rules], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_leads_to_a_section_of_the_runbook(self):
        page = (DEPLOY / "monitoring/README.md").read_text(encoding="utf-8")
        sections = {heading.lower() for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
        found = {rule["alert"].lower(): rule["annotations"]["runbook_url"] for rule in rules("alert")}
        self.assertEqual(sections, set(found))
        for alert, url in found.items():
            self.assertRegex(url, rf"^https://github\.com/OWNER/linserve/blob/main/deploy/monitoring/README\.md#{alert}$")

    def test_each_alert_fires_when_it_should_and_alone(self):
        self.assertEqual({alert for alert, _, _ in CASES}, {rule["alert"] for rule in rules("alert")})
        path = self.rules.with_name("alerts.yaml")
        path.write_text(json.dumps(unit_tests(self.rules.name)), encoding="utf-8")
        done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
