"""The page that `linserve-client load --html` writes of a real server, in headless Chromium."""

import argparse
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from chromium import Browser
from served import BIN, Server


class LoadPageTest(unittest.TestCase):
    screenshots = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)

    def open(self, *options, **how):
        """A page of a load, whose name looks like an element."""
        path = self.directory / "<b>report.html"
        subprocess.run([BIN / "linserve-client", "--target", self.server.grpc, "load", "--model", "m", "--warmup", "0.2",
                        "--html", path, *options], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        page = self.browser.open(path.as_uri(), **how)
        self.addCleanup(page.close)
        page.wait_for("document.querySelectorAll('svg polyline').length")
        return page

    def shoot(self, page, name):
        if self.screenshots:
            page.screenshot(Path(self.screenshots) / f"{name}.png")

    def assert_clean(self, page):
        self.assertEqual(page.faults, [])
        self.assertEqual([url for url in page.requests if not url.startswith("file://")], [])

    def test_compares_loads_and_protocols(self):
        page = self.open("--concurrency", "1,4", "--duration", "3", "--against", "oip")
        self.assertEqual(page.evaluate("document.querySelectorAll('#steps tr').length"), 5)
        titles = page.evaluate("Array.from(document.querySelectorAll('#charts h2'), (title) => title.textContent)")
        self.assertEqual(titles[0], "Throughput and latency")
        for load in ("1 in flight", "4 in flight"):
            for what in ("Latency over time", "Answers over time", "Batch that the server made", "Percentiles"):
                self.assertIn(f"{what}, {load}", titles)
        # Each chart has lines of both, with points in the place that it has.
        lines = page.evaluate("""Array.from(document.querySelectorAll('svg'), (chart) =>
            Array.from(chart.querySelectorAll('polyline'), (line) => line.getAttribute('points')))""")
        for chart in lines:
            self.assertGreaterEqual(len(chart), 2)
            self.assertTrue(chart[0])
            for line in filter(None, chart):  # the other protocol tells of no batches
                places = [tuple(map(float, point.split(","))) for point in line.split()]
                self.assertGreaterEqual(len(places), 2)
                self.assertTrue(all(0 <= x <= 520 and 0 <= y <= 260 for x, y in places), places)
        self.shoot(page, "load")
        self.assert_clean(page)

    def test_is_readable_on_a_phone_and_at_night(self):
        page = self.open("--rate", "50", "--duration", "3", width=390, height=800, dark=True)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 390)
        self.assertIn("offered/s", page.evaluate("document.getElementById('steps').innerText"))
        self.shoot(page, "load_phone")
        self.assert_clean(page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshots", help="directory for pictures of the page")
    arguments, rest = parser.parse_known_args()
    if arguments.screenshots:
        Path(arguments.screenshots).mkdir(parents=True, exist_ok=True)
        LoadPageTest.screenshots = arguments.screenshots
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
