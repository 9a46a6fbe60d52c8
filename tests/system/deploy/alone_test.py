"""deploy/alone, by which builds, installations and the tests themselves run: one at a time, and ended as a whole."""

import os
import pty
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from manifests import DEPLOY

# It says whether it would heed Ctrl-C, which shells have their background processes ignore, and is a grandchild.
LONG = ("bash", "-c", "python3 -c 'import signal, time; "
                      "print(\"begun\", signal.getsignal(signal.SIGINT) != signal.SIG_IGN, flush=True); "
                      "time.sleep(600)'; echo 'it went on'")


def descendants(process):
    path = Path(f"/proc/{process}/task/{process}/children")
    children = [int(child) for child in path.read_text(encoding="utf-8").split()] if path.exists() else []
    return [*children, *(deeper for child in children for deeper in descendants(child))]


def runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class AloneTest(unittest.TestCase):
    def setUp(self):
        checkout = tempfile.TemporaryDirectory()
        self.addCleanup(checkout.cleanup)
        self.alone = Path(checkout.name, "deploy/alone")
        self.alone.parent.mkdir()
        shutil.copy(DEPLOY / "alone", self.alone)

    def begin(self, terminal, *command):
        process = subprocess.Popen([self.alone, "test", *command], stdin=terminal, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        return process

    def ends_all(self, end):
        begun = self.begin(subprocess.DEVNULL, *LONG)
        self.assertEqual(begun.stdout.readline(), "begun True\n")
        family = descendants(begun.pid)
        self.assertGreater(len(family), 1)
        end(begun.pid)
        self.assertNotEqual(begun.wait(60), 0)
        self.assertNotIn("it went on", begun.stdout.read())  # which ends when the last of them does
        deadline = time.monotonic() + 60
        while any(map(runs, family)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([process for process in family if runs(process)], [])
        self.assertEqual(subprocess.run([self.alone, "test", "true"], timeout=60, check=False).returncode, 0)

    def test_whoever_ends_it_ends_all_that_it_runs(self):
        for signal_ in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal_):
                self.ends_all(lambda process, signal_=signal_: os.kill(process, signal_))

    def test_ctrl_c_ends_all_that_it_runs(self):
        # A terminal sends it to all of its foreground.
        self.ends_all(lambda process: os.killpg(process, signal.SIGINT))

    def test_what_it_runs_has_its_input_and_its_exit_code(self):
        done = subprocess.run([self.alone, "test", "bash", "-c", "cat; exit 7"], input="text", capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.stdout, done.returncode), ("text", 7))
        leader, follower = pty.openpty()
        try:
            begun = self.begin(follower, "bash", "-c", "read -r word; echo $word")
            os.write(leader, b"typed\n")
            self.assertEqual(begun.communicate(timeout=60)[0], "typed\n")
        finally:
            os.close(leader)
            os.close(follower)

    def test_a_second_one_waits_and_says_so_and_another_kind_does_not(self):
        first = self.begin(subprocess.DEVNULL, *LONG)
        first.stdout.readline()
        second = self.begin(subprocess.DEVNULL, "true")
        self.assertIn("waiting for it", second.stdout.readline())
        subprocess.run([self.alone, "other", "true"], timeout=60, check=True)
        self.assertIsNone(second.poll())
        first.terminate()
        self.assertEqual(second.wait(60), 0)
        first.wait(60)

    def test_what_a_command_leaves_running_holds_nothing_up(self):
        subprocess.run([self.alone, "test", "bash", "-c", "sleep 600 >/dev/null 2>&1 & echo $! >left"],
                       cwd=self.alone.parent, timeout=60, check=True)
        left = int((self.alone.parent.parent / "left").read_text(encoding="utf-8"))
        self.addCleanup(os.kill, left, signal.SIGKILL)
        subprocess.run([self.alone, "test", "true"], timeout=60, check=True)


if __name__ == "__main__":
    unittest.main()
