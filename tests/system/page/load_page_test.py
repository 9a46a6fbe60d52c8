"""The page that `linserve-client load --html` writes of a real server, in headless Chromium."""

import argparse
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from chromium import Browser
from served import BIN, Server

DURATION = "1.4"  # seconds, which make a second interval in the charts


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

    def open(self, *options, code=0, **how):
        """A page of a load, whose name looks like an element."""
        path = self.directory / "<b>report.html"
        command = [BIN / "linserve-client", "--target", self.server.grpc, "load", "--model", "m", "--warmup", "0.2",
                   "--html", path, *options]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
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

    def texts(self, page, selector):
        return page.evaluate(f"Array.from(document.querySelectorAll({json.dumps(selector)}), (one) => one.textContent)")

    def assert_charts_are_drawn(self, page):
        """Each has a line, and all points in the place that it has."""
        drawn = page.evaluate("""Array.from(document.querySelectorAll('.charts svg:has(polyline)'), (chart) =>
            Array.from(chart.querySelectorAll('polyline'), (line) => line.getAttribute('points')))""")
        self.assertGreaterEqual(len(drawn), 4)
        for lines in drawn:
            for line in lines:
                places = [tuple(map(float, point.split(","))) for point in line.split()]
                self.assertGreaterEqual(len(places), 2)
                self.assertTrue(all(0 <= x <= 400 and 0 <= y <= 190 for x, y in places), places)

    def assert_fits(self, page, width):
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
        self.assertEqual(page.evaluate("""Array.from(document.querySelectorAll('body > *, .card *'))
            .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML)"""), [])

    def test_compares_loads_and_protocols(self):
        page = self.open("--concurrency", "1,4", "--duration", DURATION, "--against", "oip", "--slo", "p99=10s")
        self.assertEqual(page.evaluate("document.querySelectorAll('#steps tr').length"), 5)
        self.assertEqual(self.texts(page, "h3"),
                         ["Throughput and latency", "Where a request’s time goes", "Batches", "Latency over time",
                          "Answers over time", "Batches over time", "Latency by percentile"])
        # Who was measured stands at the head, as far as a protocol tells of it.
        self.assertRegex(self.texts(page, "#servers p")[0],
                         r": linserve \S+, linformer.LinformerLM, in f32, replicas: \d+, threads of each at most: \d+, on \S+")
        self.assert_charts_are_drawn(page)
        # There are lines of both protocols, but one of them tells of no batches.
        lines = page.evaluate("""Array.from(document.querySelectorAll('.charts svg:has(polyline)'), (chart) =>
            chart.querySelectorAll('polyline').length)""")
        self.assertEqual(lines, [4, 1, 4, 4, 2, 4])
        self.assertEqual(page.evaluate("document.querySelectorAll('.charts rect title').length"), 2 * 4)
        # Its objective is a line of its own, which all but the answers and the batches are held against.
        self.assertEqual(page.evaluate("document.querySelectorAll('.limit').length"), 3)
        self.assertEqual(self.texts(page, "#figures .good"), ["met up to 4 in flight"] * 2)
        self.assertIn(f"{self.server.grpc} (oip) over {self.server.grpc}", self.texts(page, "#figures dt"))
        self.assert_fits(page, 1280)
        self.shoot(page, "load")
        self.assert_clean(page)

    def test_lays_four_loads_into_one_set_of_charts(self):
        page = self.open("--concurrency", "1,2,4,8", "--duration", DURATION)
        self.assertLess(page.evaluate("document.documentElement.scrollHeight"), 1800)
        colours = page.evaluate("""Array.from(document.querySelectorAll('.charts svg:has(polyline)'), (chart) =>
            new Set(Array.from(chart.querySelectorAll('polyline'), (line) => line.getAttribute('stroke'))).size)""")
        self.assertEqual(colours[-4:], [4] * 4)
        self.assert_charts_are_drawn(page)
        self.assert_fits(page, 1280)
        self.shoot(page, "load_four")
        self.assert_clean(page)

    def test_tells_no_percentile_that_too_few_answers_tell(self):
        page = self.open("--rate", "40", "--requests", "80")
        row = dict(page.evaluate("""Array.from(document.querySelectorAll('#steps td[data-label]'),
            (cell) => [cell.dataset.label, cell.textContent])"""))
        self.assertEqual([row[name] for name in ("p99 ms", "p99.9 ms")], ["–", "–"])
        self.assertRegex(row["p90 ms"], r"^[\d.]+$")
        self.assertNotIn("p99", " ".join(self.texts(page, "#figures dd") + self.texts(page, ".legend")))

    def test_says_what_is_missed(self):
        page = self.open("--concurrency", "2", "--duration", DURATION, "--slo", "p99=1us", code=3)
        self.assertEqual(self.texts(page, "#figures .bad"), ["missed "])
        self.assertIn("misses an objective", self.texts(page, "#steps td"))
        self.assert_charts_are_drawn(page)
        self.assert_clean(page)

    def test_is_readable_on_a_phone_and_at_night(self):
        page = self.open("--rate", "50", "--duration", DURATION, width=390, height=800, dark=True)
        self.assert_fits(page, 390)
        self.assertIn("offered/s", page.evaluate("document.querySelector('#steps td[data-label]').dataset.label"))
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
