"""The programs as OpenShift runs the image's: a user that no file names, of group 0, without capabilities, and nothing
that it might write. It needs root, but no container."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from manifests import DEPLOY
from served import BIN, Server

# OpenShift gives a namespace a range, of which this is the user, and the group of its volumes.
USER = 1000680000
# In mounts of its own, all of which it may only read.
READ_ONLY = r"""
set -euo pipefail
mount --make-rprivate /
while read -r _ place _; do
  case $place in
    /proc*|/sys*|/dev*) ;;
    *) mount -o remount,bind,ro "$(printf '%b' "$place")" ;;
  esac
done < <(cat /proc/self/mounts)
exec "$@"
"""
CONFINED = ("unshare", "--mount", "bash", "-c", READ_ONLY, "bash", "setpriv", "--reuid", str(USER), "--regid", "0",
            "--groups", str(USER), "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs",
            "env", "-i", "PATH=/usr/bin:/bin")


def confined(*command, **more):
    return subprocess.run([*CONFINED, *command], capture_output=True, text=True, timeout=60, **more)


class ConfinedTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root may take another user")
        if (done := confined("true")).returncode:
            self.skipTest(f"no mounts of its own: {done.stderr}")
        if confined(BIN / "linserve", "--version").returncode:
            self.skipTest("other users may not run what is in this clone")
        self.server = Server(repository=DEPLOY / "models", within=CONFINED)
        self.addCleanup(self.server.process.kill)

    def test_the_server_serves_and_ends_as_any_user(self):
        status = dict(re.findall(r"^(\w+):\s+(.*)$", Path(f"/proc/{self.server.process.pid}/status").read_text(), re.M))
        self.assertEqual(set(status["Uid"].split()), {str(USER)})
        self.assertEqual(set(status["Gid"].split()), {"0"})
        self.assertEqual({int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")}, {0})
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertIn("Read-only", confined("touch", "/file").stderr)

        client = BIN / "linserve-client"
        self.assertEqual(confined(client, "health", "--target", self.server.grpc).stdout.strip(), "SERVING")
        done = confined(client, "embed", "--target", self.server.grpc, input="a line of text\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"embedding"', done.stdout)
        self.assertEqual(self.server.close(), 0)
        self.assertNotRegex("".join(self.server.log), r" (WARNING|ERROR) ")


if __name__ == "__main__":
    unittest.main()
