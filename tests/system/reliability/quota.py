"""Control groups that give processes a share of the processors, by version 1 or 2."""

import os
from pathlib import Path

from harness import end_children

# So short that a server that has used up its share goes on soon.
PERIOD_US = 10000


def own_groups(controller):
    """This process's group of each hierarchy in which the controller may be."""
    with open("/proc/self/cgroup", encoding="ascii") as groups:
        for line in groups:
            _, controllers, path = line.strip().split(":", 2)
            if controller in controllers.split(","):
                yield Path(f"/sys/fs/cgroup/{controller}{path}")
            elif not controllers:
                yield Path(f"/sys/fs/cgroup{path}")


class Quotas:
    """So many groups of so many processors each, for a `with`; empty, and with a reason, where there can be none."""

    def __init__(self, count, processors):
        self.count, self.processors = count, processors
        self.groups, self.reason = [], "there is no control group of processors"

    def __enter__(self):
        for parent in own_groups("cpu"):
            try:
                for i in range(self.count):
                    self.groups.append(parent / f"linserve-{os.getpid()}-{i}")
                    self.groups[-1].mkdir()
                    self.bound(self.groups[-1])
                return self
            except OSError as error:
                self.reason = f"{type(error).__name__}: {error}"
                self.remove()
        return self

    def bound(self, group):
        quota = int(self.processors * PERIOD_US)
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
            weight = group / "cpu.shares", 10240
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            weight = group / "cpu.weight", 1000
        # Up to its quota it goes before others, so that it gets that also on a machine that is busy otherwise.
        weight[0].write_text(str(weight[1]))

    def add(self, which, process):
        (self.groups[which] / "cgroup.procs").write_text(str(process.pid))

    def remove(self):
        for group in self.groups:
            if group.exists():
                group.rmdir()
        self.groups = []

    def __exit__(self, *_):
        end_children()  # a group with processes cannot be removed
        self.remove()
