"""The autoscalers of deploy/kubernetes in a simulated cluster, beside the rule that they had before."""

import itertools
import math
import re
import statistics
import unittest

import yaml
from manifests import DEPLOY, KUBERNETES
from simulated_cluster import Autoscaler, mean, of_each, rate, simulate, wanted_of_sum

SECONDS = 1500
STARTUPS = (5, 20, 40, 60)
SEEDS = range(3)
# What a pod may compute of its time before its 99th percentile climbs: deploy/monitoring/README.md, Scale.
AT_MOST_BUSY = 0.75
# The load over the time, in pods' worth of work.
LOADS = {
    "steady 3.1": lambda time: 3.1,
    "step 1.2 to 2.4": lambda time: 1.2 if time < 300 else 2.4,
    "step 1.2 to 6": lambda time: 1.2 if time < 300 else 6,
    "bursts of 60 s, 1.2 to 4": lambda time: 4 if time % 400 >= 340 else 1.2,
    "ramp of 10 min, 1 to 8": lambda time: 1 + 7 * min(1, max(0, (time - 300) / 600)),
}
# The rule of before: seconds of queued work over a minute, which pile up as long as there are too few pods; and the
# share of its time that a pod computes.
BEFORE = ([(of_each(lambda samples, now: mean(samples, "delay", now, 60)), 0.1),
           (of_each(lambda samples, now: rate(samples, "computing", now, 120)), 0.75)],
          {"scaleUp": {"stabilizationWindowSeconds": 0,
                       "policies": [{"type": "Percent", "value": 100, "periodSeconds": 30}]},
           "scaleDown": {"stabilizationWindowSeconds": 600,
                         "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}]}})


def read(path):
    return yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8"))


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


SCRAPED_S = seconds(read("monitoring/servicemonitor.yaml")["spec"]["endpoints"][0]["interval"])


def offered():
    """The recorded series, as a function of the pods: one token is one second of work here."""
    group, = read("monitoring/scaling.yaml")["spec"]["groups"]
    arriving, waiting, servers, share = (rule["expr"] for rule in group["rules"])
    interval = seconds(group["interval"])
    window = seconds(re.search(r"rate\(linserve_arrived_tokens_total\[(\w+)\]", arriving)[1])
    full_s = float(re.fullmatch(r"clamp_max\(.* / ([\d.]+), 1\)", waiting)[1])
    more = float(re.search(r"\+ clamp_max\(.*, ([\d.]+)\)\)$", servers)[1])
    assert share.startswith("0 * count by")

    def values_of(pods, now):
        evaluated = now // interval * interval
        scraped = [seen for pod in pods if (seen := [each for each in pod.samples if each.time <= evaluated])]
        if not scraped:
            return []
        waits = sum(min(1, samples[-1].delay / full_s) for samples in scraped)
        arrives = sum(rate(samples, "arrived", evaluated, window) or 0 for samples in scraped)
        return [(max(arrives, waits) + min(waits, more)) / len(scraped)] * len(scraped)
    return values_of


def scalers():
    """Of each manifest what makes a new autoscaler."""
    hpa = read("kubernetes/components/autoscale/horizontalpodautoscaler.yaml")["spec"]
    keda = read("kubernetes/components/keda/scaledobject.yaml")["spec"]
    kserve = read("kubernetes/overlays/kserve/inferenceservice.yaml")["spec"]["predictor"]
    values_of = offered()
    metric, = hpa["metrics"]
    target = int(metric["pods"]["target"]["averageValue"].removesuffix("m")) / 1000
    trigger, = keda["triggers"]
    external, = kserve["autoScaling"]["metrics"]
    # The query holds on to the most of so many minutes, and Kubernetes to what it wanted in its own window.
    query = external["external"]["metric"]["query"]
    held, step = map(int, re.fullmatch(r"max_over_time\(.*\[(\d+)m:(\d+)s\]\)", query).groups())
    assert step <= seconds(read("monitoring/scaling.yaml")["spec"]["groups"][0]["interval"]), "it would look back"
    leave = {**Autoscaler.DOWN, "stabilizationWindowSeconds": 60 * held + Autoscaler.DOWN["stabilizationWindowSeconds"]}
    bounds = {(hpa["minReplicas"], hpa["maxReplicas"]), (keda["minReplicaCount"], keda["maxReplicaCount"]),
              (kserve["minReplicas"], kserve["maxReplicas"])}
    (least, most), = bounds

    def of(target, behavior, *how):
        return lambda: Autoscaler([(values_of, float(target))], least, most, behavior, *how)
    return {
        "before": lambda: Autoscaler(BEFORE[0], least, most, BEFORE[1]),
        "HPA": of(target, hpa["behavior"]),
        "KEDA": of(trigger["metadata"]["threshold"], keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
                   wanted_of_sum),
        "KServe": of(external["external"]["target"]["value"], {"scaleDown": leave}, wanted_of_sum),
    }


class AutoscalingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Prints for each load, start and rule: peak pods, pod-hours, share of calls that waited over a second."""
        cls.outcomes = {}
        makers = scalers()
        print(f"{'load, seconds until pods are ready':32}", *(f"{name:^20}" for name in makers), sep=" | ")
        for load, startup in itertools.product(LOADS, STARTUPS):
            row = cls.outcomes[load, startup] = {
                name: [simulate(LOADS[load], SECONDS, startup, make(), SCRAPED_S, seed) for seed in SEEDS]
                for name, make in makers.items()}
            print(f"{load:28}{startup:4}", *(
                f"{max(each.peak for each in runs):2} pods {cls.mean(runs, 'pod_hours'):4.1f} h "
                f"{cls.mean(runs, 'late'):5.1%}" for runs in row.values()), sep=" | ")

    @staticmethod
    def mean(runs, name):
        return statistics.fmean(getattr(run, name) for run in runs)

    def each(self):
        """What was tried, the load, the outcomes by the rule of before, and those by the manifest."""
        for (load, startup), row in self.outcomes.items():
            for name in ("HPA", "KEDA", "KServe"):
                yield f"{load}, {startup} s, {name}", LOADS[load], row["before"], row[name]

    def test_the_peak_is_within_one_and_a_half_times_of_what_is_needed(self):
        for what, load, _, runs in self.each():
            needed = max(2, math.ceil(max(map(load, range(SECONDS))) / AT_MOST_BUSY))
            self.assertLessEqual(max(run.peak for run in runs), 1.5 * needed, what)

    def test_it_takes_fewer_pods_than_by_what_has_piled_up(self):
        for what, _, before, runs in self.each():
            self.assertLessEqual(self.mean(runs, "pod_hours"), 1.05 * self.mean(before, "pod_hours"), what)

    def test_no_more_calls_are_late_than_by_what_has_piled_up(self):
        for what, _, before, runs in self.each():
            # One in two thousand is chance.
            self.assertLessEqual(self.mean(runs, "late"), self.mean(before, "late") + 0.0005, what)

    def test_under_a_steady_load_pods_settle(self):
        for startup in STARTUPS:
            for run in self.outcomes["steady 3.1", startup]["HPA"]:
                self.assertLessEqual(run.changes, 2)


if __name__ == "__main__":
    unittest.main()
