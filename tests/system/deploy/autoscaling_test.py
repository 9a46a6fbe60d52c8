"""The targets of the HorizontalPodAutoscaler on the curve that deploy/README.md gives: whether the number of pods settles."""

import math
import re
import unittest

import yaml
from manifests import DEPLOY, KUBERNETES

# kube-controller-manager changes nothing for less.
TOLERANCE = 0.1
ESTIMATE, COMPUTING = "linserve_queue_delay_estimate_seconds", "linserve_computing_ratio"


def measured_curve():
    """Of a server's load, as a share of its capacity: the estimate of the wait and the share of time computing."""
    readme = (DEPLOY / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) %[^|]*\|[^|]*\|[^|]*\| ([\d.]+) s \| (\d+) % \|$", readme, re.MULTILINE)
    return [(0, 0, 0), *((int(load) / 100, float(wait), int(busy) / 100) for load, wait, busy in rows)]


def at(curve, load):
    """Between two rows what lies between them; beyond the last one its own."""
    for (load_0, *values_0), (load_1, *values_1) in zip(curve, curve[1:]):
        if load <= load_1:
            part = (load - load_0) / (load_1 - load_0)
            return [a + part * (b - a) for a, b in zip(values_0, values_1)]
    return curve[-1][1:]


class Autoscaler:
    def __init__(self, without=()):
        scaler = yaml.safe_load(
            (KUBERNETES / "components/autoscale/horizontalpodautoscaler.yaml").read_text(encoding="utf-8"))["spec"]
        self.least, self.most = scaler["minReplicas"], scaler["maxReplicas"]
        metrics = [metric["pods"] for metric in scaler["metrics"]]
        self.targets = {metric["metric"]["name"]: int(metric["target"]["averageValue"].removesuffix("m")) / 1000
                        for metric in metrics}
        assert set(self.targets) == {ESTIMATE, COMPUTING}
        for name in without:
            del self.targets[name]

    def next(self, pods, values):
        """As Kubernetes computes it: the most that any metric asks for, and down by one at a time."""
        wanted = self.least
        for name, target in self.targets.items():
            ratio = values[name] / target
            wanted = max(wanted, pods if abs(ratio - 1) <= TOLERANCE else math.ceil(pods * ratio))
        return min(self.most, 2 * pods, max(wanted, pods - 1))


def loads_in_the_end(scaler, curve, total):
    """Of each pod, with as many pods as there are in turn once the first ones have been added or removed."""
    pods, counts = scaler.most, []
    for _ in range(80):
        pods = scaler.next(pods, dict(zip((ESTIMATE, COMPUTING), at(curve, total / pods))))
        counts.append(pods)
    return {total / count for count in counts[-20:]}


class AutoscalingTest(unittest.TestCase):
    # In the capacity of one pod: less than the least number of pods do easily, up to what the most can do at all.
    TOTALS = [tenths / 10 for tenths in range(16, 125)]

    def ends(self, **how):
        scaler, curve = Autoscaler(**how), measured_curve()
        self.assertEqual(len(curve), 9)
        return [loads_in_the_end(scaler, curve, total) for total in self.TOTALS]

    def test_pods_settle_with_little_to_spare_before_anybody_waits(self):
        ends = self.ends()
        settled = [load for loads in ends if len(loads) == 1 for load in loads]
        self.assertGreaterEqual(len(settled), 0.95 * len(ends))
        self.assertLess(max(max(loads) for loads in ends), 0.9)  # where p99 has begun to climb
        self.assertGreater(min(settled), 0.5)

    def test_by_the_wait_alone_pods_would_come_and_go(self):
        ends = self.ends(without=[COMPUTING])
        self.assertGreater(sum(len(loads) > 1 for loads in ends), len(ends) / 2)


if __name__ == "__main__":
    unittest.main()
