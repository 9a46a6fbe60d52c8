"""A control group that bounds the memory of the processes in it, by version 1 or 2."""

import os

from harness import end_children
from quota import own_groups


class MemoryGroup:
    """For a `with`. Where no such group can be made, `note` says so, and nothing is bounded."""

    def __init__(self, limit):
        self.limit, self.group, self.note = limit, None, ", without a control group"

    def __enter__(self):
        for parent in own_groups("memory"):
            group = parent / f"linserve-{os.getpid()}-memory"
            try:
                group.mkdir()
                self.group = group
                bound = "memory.limit_in_bytes" if (group / "memory.limit_in_bytes").exists() else "memory.max"
                (group / bound).write_text(str(self.limit))
                self.note = ""
                return self
            except OSError:
                self.remove()
        return self

    def prefix(self):
        """Begins a command that runs in the group."""
        if not self.group:
            return ()
        return ("bash", "-c", f'echo $$ >{self.group}/cgroup.procs && exec "$@"', "bounded")

    def remove(self):
        if self.group:
            self.group.rmdir()
        self.group = None

    def __exit__(self, *_):
        end_children()  # a group with processes cannot be removed
        self.remove()
