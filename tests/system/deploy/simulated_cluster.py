"""A Deployment of linserve under load, which Prometheus scrapes and Kubernetes scales, half a second at a time.

Work is measured in the time that a pod takes for it: each does one second of it in a second. A load of 2 is what keeps
two pods busy. The pods that are ready have equal shares of what arrives, give or take what chance does to single calls.
"""

import collections
import math
import random

TICK_S = 0.5
SYNC_S = 15  # kube-controller-manager looks so often
TOLERANCE = 0.1  # and changes nothing for less
# deploy/monitoring/README.md measured this: 24 calls a second keep a pod busy, and log-normal lengths vary by as much
# as their mean.
CALL_S, VARIATION = 1 / 24, 1.0
LATE_S = 1
DEADLINE_S = 4  # of callers, who are refused what would come later
WARM_UP_S = 180  # at the first load, so that every window has something in it

Sample = collections.namedtuple("Sample", "time arrived computing delay")
Outcome = collections.namedtuple("Outcome", "peak pod_hours late changes")


def within(samples, now, window):
    return [sample for sample in samples if now - window < sample.time <= now]


def rate(samples, name, now, window):
    """Prometheus' rate() of a counter: what it grows by, extrapolated to the window's ends; None without two samples."""
    inside = within(samples, now, window)
    if len(inside) < 2:
        return None
    first, last = inside[0], inside[-1]
    increase = getattr(last, name) - getattr(first, name)
    sampled = last.time - first.time
    interval = sampled / (len(inside) - 1)
    ends = [first.time - (now - window), now - last.time]
    before, after = (end if end < 1.1 * interval else interval / 2 for end in ends)
    if increase > 0:  # not to where the counter would have been negative
        before = min(before, sampled * getattr(first, name) / increase)
    return increase * (sampled + before + after) / sampled / window


def mean(samples, name, now, window):
    values = [getattr(sample, name) for sample in within(samples, now, window)]
    return sum(values) / len(values) if values else None


def of_each(value_of):
    """The values of the pods that have one, by a function of a pod's samples and the time."""
    return lambda pods, now: [value for pod in pods if (value := value_of(pod.samples, now)) is not None]


class Pod:
    def __init__(self, now, startup, scrape_interval, draw):
        self.ready_at = now + startup
        self.scrape_interval = scrape_interval
        self.next_scrape = now + draw.uniform(0, scrape_interval)
        self.backlog = self.arrived = self.computing = 0.0
        self.samples = collections.deque(maxlen=16)

    def take(self, work):
        """Of a tick. How much of it is refused or waits for more than a second."""
        self.arrived += work
        late = work if self.backlog > LATE_S else 0
        if self.backlog <= DEADLINE_S:
            self.backlog += work
        done = min(self.backlog, TICK_S)
        self.backlog -= done
        self.computing += done
        return late

    def scrape(self, now):
        """Also while models are loaded, when nothing arrives."""
        if now >= self.next_scrape:
            self.next_scrape += self.scrape_interval
            self.samples.append(Sample(now, self.arrived, self.computing, self.backlog))


def wanted_of_pods(values, count, target):
    """By metrics of type Pods, as replica_calculator.go has it. Pods without a value change nothing by themselves: they
    count as idle where more pods are wanted, and as on target where fewer are."""
    missing = count - len(values)
    if not values:
        return count
    ratio = sum(values) / len(values) / target
    if missing:
        whole = (sum(values) + (missing * target if ratio < 1 else 0)) / count / target
        if (ratio < 1) != (whole < 1):
            return count
        ratio = whole
    return count if abs(ratio - 1) <= TOLERANCE else math.ceil(ratio * count - 1e-9)


def wanted_of_sum(values, count, target):
    """By an external metric with an average value, which is what KEDA makes of a query."""
    if not values or abs(sum(values) / count / target - 1) <= TOLERANCE:
        return count
    return math.ceil(sum(values) / target - 1e-9)


class Autoscaler:
    """Metrics are pairs of a function of the pods and the time, which gives the values of pods that have one, and the
    target. `behavior` is a manifest's."""

    # Kubernetes has these where a manifest says nothing.
    UP = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15},
                                                        {"type": "Pods", "value": 4, "periodSeconds": 15}]}
    DOWN = {"stabilizationWindowSeconds": 300, "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}

    def __init__(self, metrics, least, most, behavior, wanted=wanted_of_pods):
        self.metrics, self.least, self.most, self.wanted = metrics, least, most, wanted
        self.up, self.down = behavior.get("scaleUp", self.UP), behavior.get("scaleDown", self.DOWN)
        assert self.up["stabilizationWindowSeconds"] == 0
        self.wishes, self.changes = collections.deque(), []

    def next(self, now, pods):
        wish = 0
        for values_of, target in self.metrics:
            wish = max(wish, self.wanted(values_of(pods, now), len(pods), target))
        wish = self.paced(now, len(pods), self.stable(now, len(pods), max(self.least, min(self.most, wish))))
        if wish != len(pods):
            self.changes.append((now, wish - len(pods)))
        return wish

    def stable(self, now, count, wish):
        """Fewer pods only once none of the last while has asked for more."""
        self.wishes.append((now, wish))
        while self.wishes[0][0] <= now - self.down["stabilizationWindowSeconds"]:
            self.wishes.popleft()
        return max(wish, min(count, max(each for _, each in self.wishes)))

    def paced(self, now, count, wish):
        if wish > count:
            return min(wish, max(count, *(self.reach(now, count, policy, 1) for policy in self.up["policies"])))
        return max(wish, min(count, *(self.reach(now, count, policy, -1) for policy in self.down["policies"])))

    def reach(self, now, count, policy, sign):
        """How far a policy lets the number go, from what it was a period ago."""
        since = sum(change for time, change in self.changes
                    if time > now - policy["periodSeconds"] and change * sign > 0)
        start = count - since
        if policy["type"] == "Pods":
            return start + sign * policy["value"]
        return math.ceil(start * (1 + sign * policy["value"] / 100))


def simulate(load, seconds, startup, scaler, scrape_interval, seed):
    """`load` is a function of the time. Late is the share of the work that was refused or waited."""
    draw = random.Random(seed)
    scale = CALL_S * (1 + VARIATION ** 2)
    pods = [Pod(-WARM_UP_S, 0, scrape_interval, draw) for _ in range(max(scaler.least, math.ceil(load(0) / 0.7)))]
    peak, pod_seconds, late, total = 0, 0.0, 0.0, 0.0
    for tick in range(int(-WARM_UP_S / TICK_S), int(seconds / TICK_S)):
        now = tick * TICK_S
        ready = [pod for pod in pods if pod.ready_at <= now]
        share = load(max(0, now)) / len(ready) * TICK_S
        # It varies as a random number of calls does, and is never negative: however many share it, the sum is the load.
        arrived = [draw.gammavariate(share / scale, scale) for _ in ready]
        waited = sum(pod.take(work) for pod, work in zip(ready, arrived))
        for pod in pods:
            pod.scrape(now)
        if now < 0:
            continue
        late += waited
        total += sum(arrived)
        pod_seconds += len(pods) * TICK_S
        peak = max(peak, len(pods))
        if now % SYNC_S == 0:
            count = scaler.next(now, pods)
            pods += [Pod(now, startup, scrape_interval, draw) for _ in range(count - len(pods))]
            del pods[count:]
    return Outcome(peak, pod_seconds / 3600, late / total, len(scaler.changes))
